#include "runner/paged_case.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/integer_cast.h"
#include "ops/visit.h"
#include "runner/find_op.h"
#include "runner/random_tensor.h"

namespace sluice::runner {

namespace {

struct CacheField {
  std::string name;
  int row_dimension;  // without the pool
  bool written;
};

// The fields that have rows (dimension S).
std::vector<CacheField> cache_fields(std::string_view op) {
  std::vector<CacheField> fields;
  find_op(op, [&]<class Op>() {
    ops::for_each_entry<Op>([&](const auto& entry) {
      if constexpr (ops::kIsField<std::remove_cvref_t<decltype(entry)>>)
        for (int d = 0; d < entry.shape.rank; ++d) {
          const ops::DimExpression& e = entry.shape.dims[d];
          if (entry.pooled && e.lone_symbol() && e.code[0] == ops::symbol_index("S"))
            fields.push_back({std::string(entry.name), d, entry.role == ops::Role::in_place});
        }
    });
  });
  return fields;
}

std::int64_t attribute(const OpFile& file, const std::string& name) {
  const auto found = file.attributes.find(name);
  return found == file.attributes.end() ? 0 : std::stoll(found->second);
}

std::int64_t sequence_value(const OpFile& file, const std::string& name, std::int64_t b) {
  const auto found = file.tensors.find(name);
  return found == file.tensors.end() ? attribute(file, name) : static_cast<std::int64_t>(found->second.at(b));
}

// One cache as [slots, outer, rows, bytes].
struct RowLayout {
  std::int64_t slots = 1;
  std::int64_t outer = 1;
  std::int64_t rows;
  std::size_t bytes;

  RowLayout(const HostTensor& tensor, int row_dimension, bool pooled) {
    const int row = row_dimension + (pooled ? 1 : 0);
    if (pooled) slots = tensor.shape[0];
    for (int d = pooled ? 1 : 0; d < row; ++d) outer *= tensor.shape[d];
    rows = tensor.shape[row];
    bytes = tensor.bytes.size() / to_size(slots * outer * rows);
  }
  std::ptrdiff_t at(std::int64_t slot, std::int64_t o, std::int64_t row) const {
    return static_cast<std::ptrdiff_t>(((slot * outer + o) * rows + row)) *
           static_cast<std::ptrdiff_t>(bytes);
  }
};

// A sequence of the call, and the rows of it that are concerned.
struct Rows {
  std::int64_t slot;
  std::int64_t begin;
  std::int64_t end;
};

std::vector<Rows> rows_of_sequences(const OpFile& file, std::int64_t tokens, bool written) {
  const auto starts = file.tensors.find("seq_starts");
  const auto slots = file.tensors.find("slots");
  const std::int64_t count = starts == file.tensors.end() ? 1 : starts->second.shape[0] - 1;
  std::vector<Rows> all;
  for (std::int64_t b = 0; b < count; ++b) {
    const auto own = starts == file.tensors.end()
                         ? tokens
                         : static_cast<std::int64_t>(starts->second.at(b + 1) - starts->second.at(b));
    const std::int64_t length = sequence_value(file, "length", b);
    const std::int64_t start = length != 0 ? length - own : sequence_value(file, "start", b);
    const std::int64_t window = attribute(file, "window");
    const std::int64_t first = written      ? start
                               : window > 0 ? std::max<std::int64_t>(0, start + 1 - window)
                                            : 0;
    const auto slot = slots == file.tensors.end() ? b : static_cast<std::int64_t>(slots->second.at(b));
    all.push_back({slot, own > 0 ? first : 0, own > 0 ? start + own : 0});
  }
  return all;
}

bool on_a_ring(const OpFile& file, const std::vector<Rows>& sequences, std::int64_t capacity) {
  for (std::size_t b = 0; b < sequences.size(); ++b)
    if (sequence_value(file, "ring_start", static_cast<std::int64_t>(b)) != 0 || sequences[b].end > capacity)
      return true;
  return false;
}

std::vector<std::int32_t> shuffled(Random& random, std::int64_t count) {
  std::vector<std::int32_t> numbers(to_size(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::size_t i = numbers.size(); i > 1; --i)
    std::swap(numbers[i - 1], numbers[to_size(random.integer(static_cast<std::int64_t>(i)))]);
  return numbers;
}

// Copies the first page of rows of one slot to another.
void copy_first_page(HostTensor& tensor, const RowLayout& layout, std::int64_t page_rows, std::int64_t from,
                     std::int64_t to) {
  for (std::int64_t o = 0; o < layout.outer; ++o)
    std::copy_n(tensor.bytes.begin() + layout.at(from, o, 0), to_size(page_rows) * layout.bytes,
                tensor.bytes.begin() + layout.at(to, o, 0));
}

HostTensor in_pages(const HostTensor& flat, int row_dimension, bool pooled, const PagedCase& plan,
                    std::int64_t pool, std::byte poison) {
  const RowLayout layout(flat, row_dimension, pooled);
  ops::Shape shape;
  shape.push_back(pool);
  for (int d = pooled ? 1 : 0; d < flat.shape.rank(); ++d) shape.push_back(flat.shape[d]);
  shape[1 + row_dimension] = plan.page_rows;
  HostTensor paged(flat.dtype, shape);
  std::fill(paged.bytes.begin(), paged.bytes.end(), poison);
  const std::int64_t pages_of_slot = plan.pages_of_slot(layout.rows);
  const RowLayout to(paged, row_dimension, true);
  for (std::int64_t slot = 0; slot < layout.slots; ++slot)
    for (std::int64_t o = 0; o < layout.outer; ++o)
      for (std::int64_t row = 0; row < layout.rows; ++row) {
        const auto page = plan.pages[slot * pages_of_slot + row / plan.page_rows];
        std::copy_n(flat.bytes.begin() + layout.at(slot, o, row), layout.bytes,
                    paged.bytes.begin() + to.at(page, o, row % plan.page_rows));
      }
  return paged;
}

}  // namespace

PagedCase make_paged(std::string_view op, OpFile flat, std::int64_t page_rows, std::uint64_t seed) {
  constexpr std::int32_t kNoPages[] = {-1, 0x7fffffff, -0x7fffffff};
  Random random(seed ^ 0x9a9e5);
  PagedCase result;
  result.op = op;
  result.page_rows = page_rows;
  const std::vector<CacheField> fields = cache_fields(op);
  const bool pooled = flat.tensors.contains("seq_starts");
  const bool written = fields.front().written;
  const std::int64_t tokens = flat.tensors
                                  .at(flat.tensors.contains("q")          ? "q"
                                      : flat.tensors.contains("q_latent") ? "q_latent"
                                      : flat.tensors.contains("k")        ? "k"
                                                                          : "kv_latent")
                                  .shape[0];
  const std::vector<Rows> sequences = rows_of_sequences(flat, tokens, written);
  const RowLayout layout(flat.tensors.at(fields.front().name), fields.front().row_dimension, pooled);
  if (on_a_ring(flat, sequences, layout.rows)) {
    result.flat = result.paged = std::move(flat);
    return result;
  }
  result.differs = true;
  const std::int64_t pages_of_slot = result.pages_of_slot(layout.rows);
  const std::int64_t pool = layout.slots * pages_of_slot + 3;
  result.pages = shuffled(random, pool);
  std::vector<const Rows*> sharing;
  for (const Rows& rows : sequences)
    if (!written && rows.begin == 0 && rows.end >= page_rows) sharing.push_back(&rows);
  if (sharing.size() >= 2) {
    for (const CacheField& field : fields) {
      HostTensor& tensor = flat.tensors.at(field.name);
      copy_first_page(tensor, RowLayout(tensor, field.row_dimension, pooled), page_rows, sharing[0]->slot,
                      sharing[1]->slot);
    }
    result.pages[sharing[1]->slot * pages_of_slot] = result.pages[sharing[0]->slot * pages_of_slot];
  }
  result.flat = flat;
  result.paged = std::move(flat);
  for (const CacheField& field : fields) {
    const HostTensor& tensor = result.flat.tensors.at(field.name);
    result.paged.tensors[field.name] = in_pages(tensor, field.row_dimension, pooled, result, pool,
                                                written ? std::byte{0x3c} : std::byte{0xff});
  }
  // One entry more than the rows need.
  const ops::Shape shape =
      pooled ? ops::Shape{layout.slots, pages_of_slot + 1} : ops::Shape{pages_of_slot + 1};
  HostTensor table(ops::DType::i32, shape);
  for (std::int64_t i = 0; i < shape.elements(); ++i) table.data<std::int32_t>()[i] = kNoPages[i % 3];
  for (const Rows& rows : sequences)
    for (std::int64_t page = rows.begin / page_rows; page * page_rows < rows.end; ++page)
      table.data<std::int32_t>()[rows.slot * (pages_of_slot + 1) + page] =
          result.pages[rows.slot * pages_of_slot + page];
  result.paged.tensors["page_table"] = std::move(table);
  return result;
}

void PagedCase::flatten(OpFile& outputs) const {
  if (!differs) return;
  for (const CacheField& field : cache_fields(op)) {
    const auto found = outputs.tensors.find(field.name);
    if (found == outputs.tensors.end()) continue;
    HostTensor rows = flat.tensors.at(field.name);
    const RowLayout to(rows, field.row_dimension, flat.tensors.contains("seq_starts"));
    const RowLayout from(found->second, field.row_dimension, true);
    const std::int64_t pages_of_slot = this->pages_of_slot(to.rows);
    for (std::int64_t slot = 0; slot < to.slots; ++slot)
      for (std::int64_t o = 0; o < to.outer; ++o)
        for (std::int64_t row = 0; row < to.rows; ++row) {
          const auto page = pages[slot * pages_of_slot + row / page_rows];
          std::copy_n(found->second.bytes.begin() + from.at(page, o, row % page_rows), to.bytes,
                      rows.bytes.begin() + to.at(slot, o, row));
        }
    found->second = std::move(rows);
  }
}

void add_paged_cases(std::vector<Case>& table, std::string_view op) {
  constexpr std::size_t kCount = 24;
  const std::size_t own = table.size();
  const std::size_t step = std::max<std::size_t>(1, own / kCount);
  std::int64_t page_rows = 64;
  for (std::size_t i = 0; i < own; i += step) {
    table.push_back({fmt::format("{}, pages of {}", table[i].label, page_rows),
                     [make = table[i].make, op = std::string(op), page_rows](std::uint64_t seed) {
                       return make_paged(op, make(seed), page_rows, seed).paged;
                     }});
    page_rows = page_rows == 256 ? 64 : 2 * page_rows;
  }
}

void add_paged_bench_cases(std::vector<BenchCase>& table, std::string_view op, std::int64_t page_rows) {
  const std::size_t own = table.size();
  for (std::size_t i = 0; i < own; ++i) {
    BenchCase paged = table[i];
    paged.label += fmt::format(", pages of {}", page_rows);
    paged.make = [make = table[i].make, op = std::string(op), page_rows](std::uint64_t seed) {
      return make_paged(op, make(seed), page_rows, seed).paged;
    };
    table.push_back(std::move(paged));
  }
}

}  // namespace sluice::runner
