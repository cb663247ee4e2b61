#include "study/step_profile.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "engine/placement/layout.h"
#include "ops/erase.h"

namespace sluice::study {

namespace {

struct Call {
  std::string op;
  std::string detail;
  double bytes;
  std::function<void(ops::Backend&)> run;
  std::size_t row = 0;  // of the profile
};

// The rows a slot of a cache has, by the contract's symbol for them; 0 for anything else.
std::int64_t cache_rows(const ops::FieldView& field) {
  if (!field.pooled) return 0;
  for (int d = 0; d < field.shape->rank; ++d) {
    const ops::DimExpression& e = field.shape->dims[d];
    if (e.lone_symbol() && ops::kSymbols[static_cast<std::size_t>(e.code[0])] == "S")
      return field.view.dim(d + 1);
  }
  return 0;
}

// Bytes the op must move: of experts as many as tokens can choose, of a cache the rows in use, of pooled
// states those of the step's sequences, read and written.
template <class Op>
double bytes_moved(const Op& op, std::int64_t sequences, std::int64_t position) {
  const ops::ErasedOp<Op> erased(op);
  double bytes = 0;
  std::int64_t choices = 0;
  if constexpr (requires { op.experts.elements(); }) choices = op.experts.elements();
  for (const ops::FieldView& field : erased.fields) {
    if (!field.present()) continue;
    if (field.weight != nullptr) {
      // A token reads one row of a table.
      const bool lookup = Op::kName == ops::Embed::kName;
      bytes += static_cast<double>(field.weight->bytes()) *
               (lookup ? static_cast<double>(sequences) / static_cast<double>(field.weight->shape()[0]) : 1);
    } else if (field.experts != nullptr) {
      const auto all = static_cast<double>(field.experts->shape()[0]);
      bytes += static_cast<double>((*field.experts)[0].bytes()) * std::min(all, static_cast<double>(choices));
    } else if (const std::int64_t rows = cache_rows(field); rows > 0) {
      const double row = static_cast<double>(engine::bytes_of(field.view)) /
                         static_cast<double>(field.view.dim(0)) / static_cast<double>(rows);
      const bool appends = field.role == ops::Role::in_place;
      bytes += row * static_cast<double>(sequences) * static_cast<double>(appends ? 1 : position + 1);
    } else if (field.pooled) {
      bytes += 2.0 * static_cast<double>(engine::bytes_of(field.view)) * static_cast<double>(sequences) /
               static_cast<double>(field.view.dim(0));
    } else {
      bytes += static_cast<double>(engine::bytes_of(field.view));
    }
  }
  return bytes;
}

// The largest shape says which of a layer's products it is.
template <class Op>
std::string detail(const Op& op) {
  const ops::ErasedOp<Op> erased(op);
  for (const ops::FieldView& field : erased.fields) {
    if (field.weight != nullptr && field.present()) return to_string(field.weight->shape());
    if (field.experts != nullptr) return to_string(field.experts->shape());
  }
  return to_string(erased.fields[0].view.shape);
}

// Takes note of ops instead of running them.
class Recorder final : public ops::Backend {
 public:
  Recorder(ops::Backend& backend, std::int64_t sequences, std::int64_t position)
      : backend_(backend), sequences_(sequences), position_(position) {}

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
  bool reads_contents() const override { return false; }  // nothing ran, so there are none
  void execute(const ops::AnyOp& op, ops::Phase phase) override {
    std::visit(
        [&](const auto* known) {
          calls.push_back({std::string(known->kName), detail(*known),
                           bytes_moved(*known, sequences_, position_),
                           [copy = *known, phase](ops::Backend& backend) { backend.run(copy, phase); }});
        },
        op);
  }

  ops::Backend& backend_;
  std::int64_t sequences_;
  std::int64_t position_;
};

double median_seconds(ops::Backend& backend, ops::Program& program) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRuns = 11;
  std::vector<double> times;
  program.run();
  for (int i = 0; i < kRuns; ++i) {
    backend.synchronize();
    const auto start = Clock::now();
    program.run();
    backend.synchronize();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

void sort_by_cost(std::vector<OpProfile>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const OpProfile& a, const OpProfile& b) {
    return a.microseconds * static_cast<double>(a.calls) > b.microseconds * static_cast<double>(b.calls);
  });
}

// Steps whose ops are timed where they stand: with nothing to launch that costs little, and an op finds in
// the caches what it finds in a real step.
void time_in_order(ops::Backend& backend, const std::vector<Call>& calls, std::vector<OpProfile>& rows,
                   double peak_bytes_per_second) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRuns = 11;
  std::vector<std::vector<double>> seconds(rows.size(), std::vector<double>(kRuns));
  for (int run = 0; run < kRuns; ++run)
    for (const Call& call : calls) {
      const auto start = Clock::now();
      call.run(backend);
      seconds[call.row][run] += std::chrono::duration<double>(Clock::now() - start).count();
    }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::nth_element(seconds[i].begin(), seconds[i].begin() + kRuns / 2, seconds[i].end());
    const double each = seconds[i][kRuns / 2] / static_cast<double>(rows[i].calls);
    rows[i].microseconds = each * 1e6;
    rows[i].percent_of_bound = 100 * rows[i].bytes / peak_bytes_per_second / each;
  }
}

}  // namespace

std::vector<OpProfile> profile_step(engine::Core& core, engine::ForwardPass& pass, std::int64_t position,
                                    double peak_bytes_per_second) {
  ops::Backend& backend = *core.backend;
  Recorder recorder(backend, pass.slots(), position);
  pass.describe_step(recorder, pass.slots());
  std::vector<OpProfile> rows;
  std::vector<std::vector<const Call*>> groups;
  for (Call& call : recorder.calls) {
    const auto same = [&](const OpProfile& row) { return row.op == call.op && row.detail == call.detail; };
    const auto found = std::find_if(rows.begin(), rows.end(), same);
    const std::size_t at = found - rows.begin();
    if (found == rows.end()) {
      rows.push_back({call.op, call.detail, 0, 0, call.bytes, 0});
      groups.emplace_back();
    }
    call.row = at;
    ++rows[at].calls;
    groups[at].push_back(&call);
  }
  if (!backend.traits().records) {
    time_in_order(backend, recorder.calls, rows, peak_bytes_per_second);
    sort_by_cost(rows);
    return rows;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    // Few equal ops are repeated, so that the start of a program does not count.
    const auto repeats = std::max<std::size_t>(1, 32 / groups[i].size());
    const auto program = backend.record([&] {
      for (std::size_t r = 0; r < repeats; ++r)
        for (const Call* call : groups[i]) call->run(backend);
    });
    OpProfile& row = rows[i];
    const double seconds =
        median_seconds(backend, *program) / static_cast<double>(repeats * groups[i].size());
    row.microseconds = seconds * 1e6;
    row.percent_of_bound = 100 * row.bytes / peak_bytes_per_second / seconds;
  }
  sort_by_cost(rows);
  return rows;
}

}  // namespace sluice::study
