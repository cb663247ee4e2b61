// Length, iteration, subscripts and slices.
#include <algorithm>

#include "base/integer_cast.h"
#include "jinja/operators.h"
#include "jinja/unicode.h"

namespace sluice::jinja {
namespace {

struct Indices {
  std::int64_t start, count, step;
};

std::int64_t bound(const Value& value, std::int64_t missing) {
  if (value.is_none()) return missing;
  if (!value.is_integer()) fault("slice indices must be integers or None or have an __index__ method");
  return value.integer();
}

// PySlice_AdjustIndices.
Indices slice_indices(std::int64_t size, const Value& start_value, const Value& stop_value,
                      const Value& step_value) {
  std::int64_t step = bound(step_value, 1);
  if (step == 0) fault("slice step cannot be zero");
  step = std::max(step, -INT64_MAX);
  auto clamp = [&](std::int64_t index) {
    if (index < 0) index += size;
    if (index < 0) return step < 0 ? std::int64_t{-1} : std::int64_t{0};
    if (index >= size) return step < 0 ? size - 1 : size;
    return index;
  };
  std::int64_t start = start_value.is_none() ? (step < 0 ? size - 1 : 0) : clamp(bound(start_value, 0));
  std::int64_t stop = stop_value.is_none() ? (step < 0 ? -1 : size) : clamp(bound(stop_value, 0));
  std::int64_t span = step < 0 ? start - stop : stop - start;
  return {start, span <= 0 ? 0 : (span - 1) / (step < 0 ? -step : step) + 1, step};
}

bool indexable(const Value& value) {
  return is_list(value) || is_tuple(value) || is_kind(value, SequenceKind::range);
}

std::optional<std::size_t> position(std::int64_t index, std::size_t size) {
  if (index < 0) index += size;
  if (index < 0 || index >= static_cast<std::int64_t>(size)) return std::nullopt;
  return to_size(index);
}

}  // namespace

std::int64_t length(const Value& value) {
  switch (value.type()) {
    case Type::undefined:
      return 0;
    case Type::text:
      return count_code_points(value.text());
    case Type::dict:
      return std::ssize(value.dict());
    case Type::sequence:
      if (is_kind(value, SequenceKind::iterator)) break;
      return std::ssize(value.sequence().items);
    default:
      break;
  }
  fault("object of type '{}' has no len()", type_name(value));
}

Values iterate(Budget& budget, const Value& value) {
  Values items;
  switch (value.type()) {
    case Type::undefined:
      return items;
    case Type::sequence:
      if (is_kind(value, SequenceKind::iterator) && std::exchange(value.sequence().consumed, true))
        return items;
      budget.grow(value.sequence().items.size() * sizeof(Value));
      return value.sequence().items;
    case Type::dict:
      budget.grow(value.dict().size() * sizeof(Value));
      for (const auto& entry : value.dict().entries()) items.push_back(entry.first);
      return items;
    case Type::text: {
      const std::string& text = value.text();
      budget.grow(text.size());
      budget.step(text.size());
      for (std::size_t i = 0; i < text.size();) {
        std::size_t start = i;
        next_code_point(text, i);
        items.emplace_back(text.substr(start, i - start));
      }
      return items;
    }
    default:
      fault("'{}' object is not iterable", type_name(value));
  }
}

std::optional<Value> subscript(Budget& budget, const Value& container, const Value& key) {
  if (container.is_dict()) {
    const Value* found = is_hashable(key) ? container.dict().find(key) : nullptr;
    return found ? std::optional<Value>(*found) : std::nullopt;
  }
  if (!key.is_integer()) return std::nullopt;
  if (indexable(container)) {
    auto index = position(key.integer(), container.sequence().items.size());
    return index ? std::optional<Value>(container.sequence().items[*index]) : std::nullopt;
  }
  if (!container.is_text()) return std::nullopt;
  const std::string& text = container.text();
  budget.step(1 + text.size() / 64);
  std::vector<std::size_t> offsets = code_point_offsets(text);
  auto index = position(key.integer(), offsets.size() - 1);
  if (!index) return std::nullopt;
  std::size_t begin = offsets[*index], end = offsets[*index + 1];
  return Value(text.substr(begin, end - begin), container.is_markup());
}

Value slice(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step) {
  require_defined(value);
  if (indexable(value)) {
    const Values& items = value.sequence().items;
    Indices range = slice_indices(std::ssize(items), start, stop, step);
    budget.grow(to_size(range.count) * sizeof(Value));
    Values result;
    for (std::int64_t i = 0; i < range.count; ++i) result.push_back(items[range.start + i * range.step]);
    return make_sequence(is_tuple(value) ? SequenceKind::tuple : SequenceKind::list, std::move(result));
  }
  if (!value.is_text()) fault("'{}' object is not subscriptable", type_name(value));
  const std::string& text = value.text();
  budget.grow(text.size());
  std::vector<std::size_t> offsets = code_point_offsets(text);
  Indices range = slice_indices(std::ssize(offsets) - 1, start, stop, step);
  std::string result;
  for (std::int64_t i = 0; i < range.count; ++i) {
    std::int64_t at = range.start + i * range.step;
    result.append(text, offsets[at], offsets[at + 1] - offsets[at]);
  }
  return Value(std::move(result), value.is_markup());
}

}  // namespace sluice::jinja
