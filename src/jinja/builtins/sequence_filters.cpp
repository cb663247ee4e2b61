#include <algorithm>

#include "jinja/builtins/builtins.h"
#include "jinja/builtins/parameters.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace sluice::jinja::builtins {
namespace {

Value length_filter(Runtime&, const Value& value, const Call& call) {
  Parameters none(call, {});
  return length(value);
}

Value first(Runtime& runtime, const Value& value, const Call&) {
  Values items = iterate(runtime.budget(), value);
  return items.empty() ? make_undefined("No first item, sequence was empty.") : items.front();
}

Value last(Runtime& runtime, const Value& value, const Call&) {
  if (is_kind(value, SequenceKind::iterator)) fault("'generator' object is not reversible");
  Values items = iterate(runtime.budget(), value);
  return items.empty() ? make_undefined("No last item, sequence was empty.") : items.back();
}

Value list(Runtime& runtime, const Value& value, const Call&) {
  return make_list(iterate(runtime.budget(), value));
}

Value reverse(Runtime& runtime, const Value& value, const Call&) {
  if (value.is_text()) return slice(runtime.budget(), value, {}, {}, std::int64_t{-1});
  Values items = iterate(runtime.budget(), value);
  std::reverse(items.begin(), items.end());
  return make_iterator(std::move(items));
}

Value join(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"d", "attribute"});
  Budget& budget = runtime.budget();
  std::string separator = given.find(0) ? str(budget, given.value(0)) : "", result;
  bool first = true;
  for (const Value& item : iterate(budget, value)) {
    if (!std::exchange(first, false)) result += separator;
    result += str(budget, at_path(runtime, item, given.given(1)));
    if (result.size() > budget.limits().output_bytes) budget.grow(result.size());
  }
  return Value(std::move(result));
}

// Sorts items by their keys, stably as Python does.
Values sort_by(Runtime& runtime, std::vector<std::pair<Value, Value>> keyed, bool reverse) {
  auto before = [&](const auto& a, const auto& b) { return less(runtime.budget(), a.first, b.first); };
  if (reverse) std::reverse(keyed.begin(), keyed.end());
  std::stable_sort(keyed.begin(), keyed.end(), before);
  if (reverse) std::reverse(keyed.begin(), keyed.end());
  Values items;
  for (auto& [key, item] : keyed) items.push_back(std::move(item));
  return items;
}

Value sort_key(Runtime& runtime, const Value& item, const Value* paths, bool case_sensitive) {
  Values keys;
  std::string_view rest = paths && paths->is_text() ? std::string_view(paths->text()) : std::string_view();
  do {
    std::size_t comma = std::min(rest.find(','), rest.size());
    Value path = paths && paths->is_text() ? Value(rest.substr(0, comma)) : paths ? *paths : Value();
    Value key = at_path(runtime, item, path.is_none() ? nullptr : &path);
    keys.push_back(case_sensitive ? key : ignore_case(key));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  } while (!rest.empty());
  return make_list(std::move(keys));
}

Value sort(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"reverse", "case_sensitive", "attribute"});
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : iterate(runtime.budget(), value))
    keyed.emplace_back(sort_key(runtime, item, given.given(2), given.truth(1, false)), item);
  return make_list(sort_by(runtime, std::move(keyed), given.truth(0, false)));
}

Value dictsort(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"case_sensitive", "by", "reverse"});
  require_defined(value);
  if (!value.is_dict()) fault("'{}' object has no attribute 'items'", type_name(value));
  std::string by = given.find(1) ? given.text(1) : "key";
  if (by != "key" && by != "value") fault("You can only sort by either \"key\" or \"value\"");
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, item] : value.dict().entries()) {
    const Value& by_value = by == "key" ? key : item;
    keyed.emplace_back(given.truth(0, false) ? by_value : ignore_case(by_value), make_tuple({key, item}));
  }
  return make_list(sort_by(runtime, std::move(keyed), given.truth(2, false)));
}

Value unique(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"case_sensitive", "attribute"});
  Dict seen;
  Values kept;
  for (const Value& item : iterate(runtime.budget(), value)) {
    Value key = at_path(runtime, item, given.given(1));
    if (!given.truth(0, false)) key = ignore_case(key);
    if (seen.find(key)) continue;
    seen.set(key, true);
    kept.push_back(item);
  }
  return make_iterator(std::move(kept));
}

Value items(Runtime& runtime, const Value& value, const Call&) {
  if (value.is_undefined()) return make_iterator({});
  if (!value.is_dict()) fault("Can only get item pairs from a mapping.");
  runtime.budget().grow(value.dict().size() * 3 * sizeof(Value));
  Values pairs;
  for (const auto& [key, item] : value.dict().entries()) pairs.push_back(make_tuple({key, item}));
  return make_iterator(std::move(pairs));
}

Value batch(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"linecount", "fill_with"}, 1);
  std::size_t size = std::max<std::int64_t>(given.integer(0, 1), 1);
  Values rows, row;
  for (Value& item : iterate(runtime.budget(), value)) {
    if (row.size() == size) rows.push_back(make_list(std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (row.empty()) return make_iterator(std::move(rows));
  if (given.given(1) && row.size() < size) {
    runtime.budget().grow(std::min(size, SIZE_MAX / sizeof(Value) / 2) * sizeof(Value));
    row.resize(size, given.value(1));
  }
  rows.push_back(make_list(std::move(row)));
  return make_iterator(std::move(rows));
}

// Python's slice filter: `count` columns, the first ones longer.
Value columns(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"slices", "fill_with"}, 1);
  Values items = iterate(runtime.budget(), value);
  std::int64_t count = given.integer(0, 1);
  if (count == 0) fault("integer division or modulo by zero");
  if (count < 0) return make_iterator({});
  std::size_t slices = count;
  runtime.budget().grow(std::min(slices, SIZE_MAX / sizeof(Value) / 2) * sizeof(Value));
  std::size_t per_slice = items.size() / slices, longer = items.size() % slices, at = 0;
  Values result;
  for (std::size_t i = 0; i < slices; ++i) {
    std::size_t size = per_slice + (i < longer ? 1 : 0);
    Values column(items.begin() + at, items.begin() + at + size);
    if (given.given(1) && i >= longer) column.push_back(given.value(1));
    at += size;
    result.push_back(make_list(std::move(column)));
  }
  return make_iterator(std::move(result));
}

template <bool largest>
Value extreme(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"case_sensitive", "attribute"});
  Values items = iterate(runtime.budget(), value);
  if (items.empty()) return make_undefined("No aggregated item, sequence was empty.");
  auto key_of = [&](const Value& item) {
    Value key = at_path(runtime, item, given.given(1));
    return given.truth(0, false) ? key : ignore_case(key);
  };
  std::size_t best = 0;
  Value best_key = key_of(items[0]);
  for (std::size_t i = 1; i < items.size(); ++i) {
    Value key = key_of(items[i]);
    if (!compare(runtime.budget(), largest ? Comparison::greater : Comparison::less, key, best_key)) continue;
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

Value sum(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"attribute", "start"});
  Value total = given.find(1) ? given.value(1) : Value(std::int64_t{0});
  if (total.is_text()) fault("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : iterate(runtime.budget(), value))
    total = binary(runtime.budget(), Binary::add, total, at_path(runtime, item, given.given(0)));
  return total;
}

// Groups items with equal keys, in the order of the keys.
Value groupby(Runtime& runtime, const Value& value, const Call& call) {
  Parameters given(call, {"attribute", "default", "case_sensitive"}, 1);
  Budget& budget = runtime.budget();
  auto key_of = [&](const Value& item) { return at_path(runtime, item, &given.value(0), given.given(1)); };
  auto folded = [&](const Value& key) { return given.truth(2, false) ? key : ignore_case(key); };
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : iterate(budget, value)) keyed.emplace_back(folded(key_of(item)), item);
  Values sorted = sort_by(runtime, std::move(keyed), false), groups;
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    Value key = key_of(sorted[begin]);
    while (end < sorted.size() && equal(budget, folded(key), folded(key_of(sorted[end])))) ++end;
    end = std::max(end, begin + 1);  // a NaN differs even from itself
    groups.push_back(make_tuple({key, make_list(Values(sorted.begin() + begin, sorted.begin() + end))}));
  }
  return make_list(std::move(groups));
}

}  // namespace

const Builtins& sequence_filters() {
  static const Builtins kFilters = {
      {"length", length_filter},
      {"count", length_filter},
      {"first", first},
      {"last", last},
      {"list", list},
      {"reverse", reverse},
      {"join", join},
      {"sort", sort},
      {"dictsort", dictsort},
      {"unique", unique},
      {"items", items},
      {"batch", batch},
      {"slice", columns},
      {"min", extreme<false>},
      {"sum", sum},
      {"max", extreme<true>},
      {"groupby", groupby},
  };
  return kFilters;
}

}  // namespace sluice::jinja::builtins
