#include "study/step_profile.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/integer_cast.h"
#include "engine/placement/layout.h"
#include "ops/erase.h"

namespace sluice::study {

namespace {

struct Call {
  std::string op;
  std::string detail;
  double bytes;
  std::function<void(ops::Backend&)> run;
  std::size_t row = 0;  // index into the profile
};

// The tokens and sequences of a pass, and the position where they begin.
struct PassExtent {
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  std::int64_t position = 0;

  // The cache rows that a sequence's last token sees.
  std::int64_t rows() const { return position + tokens / sequences; }
};

// The rows of a cache's slot, found by the symbol in the op's contract; 0 for other fields.
std::int64_t cache_rows(const ops::FieldView& field) {
  if (field.weight != nullptr || field.experts != nullptr) return 0;
  for (int d = 0; d < field.shape->rank; ++d) {
    const ops::DimExpression& e = field.shape->dims[d];
    if (e.lone_symbol() && ops::kSymbols[to_size(e.code[0])] == "S")
      return field.view.dim(field.pooled ? d + 1 : d);
  }
  return 0;
}

// The minimum of bytes the op moves: for experts as many as the tokens can choose, for a cache the rows in
// use, for pooled states those of the step's sequences, read and written.
template <class Op>
double bytes_moved(const Op& op, const PassExtent& extent) {
  const ops::ErasedOp<Op> erased(op);
  const double tokens = extent.tokens;
  const double sequences = extent.sequences;
  double bytes = 0;
  std::int64_t choices = 0;
  if constexpr (requires { op.experts.elements(); }) choices = op.experts.elements();
  for (const ops::FieldView& field : erased.fields) {
    if (!field.present()) continue;
    if (field.weight != nullptr) {
      // Each token reads one row of an embedding table.
      const bool lookup = Op::kName == ops::Embed::kName;
      bytes += to_double(field.weight->bytes()) * (lookup ? tokens / to_double(field.weight->shape()[0]) : 1);
    } else if (field.experts != nullptr) {
      const double all = field.experts->shape()[0];
      bytes += to_double((*field.experts)[0].bytes()) * std::min(all, to_double(choices));
    } else if (const std::int64_t rows = cache_rows(field); rows > 0) {
      const double row = to_double(engine::placement::bytes_of(field.view)) /
                         to_double(field.pooled ? field.view.dim(0) : 1) / to_double(rows);
      const bool appends = field.role == ops::Role::in_place;
      bytes += row * (appends ? tokens : sequences * to_double(extent.rows()));
    } else if (field.pooled) {
      bytes += 2.0 * engine::placement::bytes_of(field.view) * sequences / to_double(field.view.dim(0));
    } else {
      bytes += engine::placement::bytes_of(field.view);
    }
  }
  return bytes;
}

// The largest shape identifies which of a layer's products it is.
template <class Op>
std::string detail(const Op& op) {
  const ops::ErasedOp<Op> erased(op);
  for (const ops::FieldView& field : erased.fields) {
    if (field.weight != nullptr && field.present()) return to_string(field.weight->shape());
    if (field.experts != nullptr) return to_string(field.experts->shape());
  }
  return to_string(erased.fields[0].view.shape);
}

// Records ops instead of running them.
class Recorder final : public ops::Backend {
 public:
  Recorder(ops::Backend& backend, const PassExtent& extent) : backend_(backend), extent_(extent) {}

  std::vector<Call> calls;

  std::string_view name() const override { return backend_.name(); }
  std::string description() const override { return backend_.description(); }
  const ops::Traits& traits() const override { return backend_.traits(); }
  void upload(void* to, const void* from, std::size_t bytes) override { backend_.upload(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override {
    backend_.download(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override { backend_.copy(to, from, bytes); }
  void clear(void* to, std::size_t bytes) override { backend_.clear(to, bytes); }
  void synchronize() override {}
  ops::Rates measure_rates(std::uint64_t memory) override { return backend_.measure_rates(memory); }

 private:
  ops::Buffer allocate_block(std::size_t bytes) override { return backend_.allocate(bytes); }
  std::unique_ptr<ops::GrowingBuffer> reserve_range(std::size_t most) override {
    return backend_.reserve(most);
  }
  bool reads_contents() const override { return false; }  // nothing ran, so there are none
  void execute(const ops::AnyOp& op, ops::Phase phase) override {
    std::visit(
        [&](const auto* known) {
          calls.push_back({std::string(known->kName), detail(*known), bytes_moved(*known, extent_),
                           [copy = *known, phase](ops::Backend& backend) { backend.run(copy, phase); }});
        },
        op);
  }

  ops::Backend& backend_;
  PassExtent extent_;
};

double median_seconds(ops::Backend& backend, ops::Program& program) {
  constexpr int kRuns = 11;
  std::vector<double> times;
  program.run();
  for (int i = 0; i < kRuns; ++i) {
    backend.synchronize();
    const auto start = Clock::now();
    program.run();
    backend.synchronize();
    times.push_back(seconds_since(start));
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

void sort_by_cost(std::vector<OpProfile>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const OpProfile& a, const OpProfile& b) {
    return a.microseconds * to_double(a.calls) > b.microseconds * to_double(b.calls);
  });
}

struct Repetition {
  int runs;         // of the pass; the median counts
  int per_run = 1;  // of each op
};

// Passes in which every op is timed in its place, so that it finds the caches in the state of a real pass.
// Where ops are launched, each runs several times, so that launch and wait hardly count.
void time_in_order(ops::Backend& backend, const std::vector<Call>& calls, std::vector<OpProfile>& rows,
                   double peak_bytes_per_second, const Repetition& repetition) {
  const auto runs = to_size(repetition.runs);
  std::vector<std::vector<double>> seconds(rows.size(), std::vector<double>(runs));
  for (std::size_t run = 0; run < runs; ++run)
    for (const Call& call : calls) {
      backend.synchronize();
      const auto start = Clock::now();
      for (int i = 0; i < repetition.per_run; ++i) call.run(backend);
      backend.synchronize();
      seconds[call.row][run] += seconds_since(start) / repetition.per_run;
    }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::nth_element(seconds[i].begin(), seconds[i].begin() + repetition.runs / 2, seconds[i].end());
    const double each = seconds[i][runs / 2] / to_double(rows[i].calls);
    rows[i].microseconds = each * 1e6;
    rows[i].percent_of_bound = 100 * rows[i].bytes / peak_bytes_per_second / each;
  }
}

// Groups equal ops, and assigns each call its row.
std::vector<OpProfile> group_by_op(std::vector<Call>& calls) {
  std::vector<OpProfile> rows;
  for (Call& call : calls) {
    const auto same = [&](const OpProfile& row) { return row.op == call.op && row.detail == call.detail; };
    const auto found = std::find_if(rows.begin(), rows.end(), same);
    call.row = to_size(found - rows.begin());
    if (found == rows.end()) rows.push_back({call.op, call.detail, 0, 0, call.bytes, 0});
    ++rows[call.row].calls;
  }
  return rows;
}

}  // namespace

std::vector<OpProfile> profile_prompt(engine::Core& core, engine::ForwardPass& pass,
                                      const engine::Batch& batch, double peak_bytes_per_second) {
  ops::Backend& backend = *core.backend;
  Recorder recorder(backend, {batch.tokens(), 1, batch.sequences.at(0).past});
  pass.describe_prompt(recorder, batch);
  std::vector<OpProfile> rows = group_by_op(recorder.calls);
  const Repetition repetition = backend.traits().records ? Repetition{5, 4} : Repetition{3};
  time_in_order(backend, recorder.calls, rows, peak_bytes_per_second, repetition);
  sort_by_cost(rows);
  return rows;
}

std::vector<OpProfile> profile_step(engine::Core& core, engine::ForwardPass& pass, std::int64_t position,
                                    double peak_bytes_per_second) {
  ops::Backend& backend = *core.backend;
  Recorder recorder(backend, {pass.slots(), pass.slots(), position});
  pass.describe_step(recorder, pass.slots());
  std::vector<OpProfile> rows = group_by_op(recorder.calls);
  if (!backend.traits().records) {
    time_in_order(backend, recorder.calls, rows, peak_bytes_per_second, {11});
    sort_by_cost(rows);
    return rows;
  }
  std::vector<std::vector<const Call*>> groups(rows.size());
  for (const Call& call : recorder.calls) groups[call.row].push_back(&call);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    // Small groups are repeated, so that starting a program does not count.
    const auto repeats = std::max<std::size_t>(1, 32 / groups[i].size());
    const auto program = backend.record([&] {
      for (std::size_t r = 0; r < repeats; ++r)
        for (const Call* call : groups[i]) call->run(backend);
    });
    OpProfile& row = rows[i];
    const double seconds = median_seconds(backend, *program) / to_double(repeats * groups[i].size());
    row.microseconds = seconds * 1e6;
    row.percent_of_bound = 100 * row.bytes / peak_bytes_per_second / seconds;
  }
  sort_by_cost(rows);
  return rows;
}

}  // namespace sluice::study
