// The methods that values have, and those of dicts and sequences.
#include <algorithm>
#include <unordered_map>

#include "jinja/builtins/builtins.h"
#include "jinja/builtins/parameters.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace sluice::jinja::builtins {
namespace {

using Table = std::unordered_map<std::string_view, Builtin>;

Value get(Runtime&, const Value& self, const Call& call) {
  Parameters given(call, {"key", "default"}, 1);
  if (const Value* found = self.dict().find(given.value(0))) return *found;
  return given.find(1) ? given.value(1) : Value();
}

template <SequenceKind kind>
Value view(Runtime& runtime, const Value& self, const Call& call) {
  Parameters none(call, {});
  runtime.budget().grow(self.dict().size() * 3 * sizeof(Value));
  Values items;
  for (const auto& [key, value] : self.dict().entries())
    items.push_back(kind == SequenceKind::keys     ? key
                    : kind == SequenceKind::values ? value
                                                   : make_tuple({key, value}));
  return make_sequence(kind, std::move(items));
}

Value copy(Runtime&, const Value& self, const Call& call) {
  Parameters none(call, {});
  return self;
}

Value count(Runtime& runtime, const Value& self, const Call& call) {
  Parameters given(call, {"value"}, 1);
  const Values& items = self.sequence().items;
  return std::int64_t{std::count_if(items.begin(), items.end(), [&](const Value& item) {
    return equal(runtime.budget(), item, given.value(0));
  })};
}

Value index(Runtime& runtime, const Value& self, const Call& call) {
  Parameters given(call, {"value"}, 1);
  const Values& items = self.sequence().items;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (equal(runtime.budget(), items[i], given.value(0))) return static_cast<std::int64_t>(i);
  fault("{} is not in list", repr(runtime.budget(), given.value(0)));
}

Table make_table(std::initializer_list<const Builtins*> lists) {
  Table table;
  for (const Builtins* list : lists)
    for (const NamedBuiltin& builtin : *list) table.emplace(builtin.name, builtin.body);
  return table;
}

const Builtin* find_in(const Table& table, std::string_view name) {
  auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace

const Builtin* find_method(const Value& subject, std::string_view name) {
  static const Table kText = make_table({&text_methods(), &split_methods()});
  static const Table kDict = {{"get", get},
                              {"keys", view<SequenceKind::keys>},
                              {"values", view<SequenceKind::values>},
                              {"items", view<SequenceKind::items>},
                              {"copy", copy}};
  static const Table kSequence = {{"count", count}, {"index", index}};
  static const Table kList = {{"count", count}, {"index", index}, {"copy", copy}};
  if (subject.is_text()) return find_in(kText, name);
  if (subject.is_dict()) return find_in(kDict, name);
  if (is_list(subject)) return find_in(kList, name);
  if (is_tuple(subject) || is_kind(subject, SequenceKind::range)) return find_in(kSequence, name);
  return nullptr;
}

const Builtin* find_filter(std::string_view name) {
  static const Table kFilters =
      make_table({&text_filters(), &sequence_filters(), &selection_filters(), &number_filters(),
                  &markup_filters(), &layout_filters(), &pretty_print_filters(), &urlize_filters()});
  return find_in(kFilters, name);
}

}  // namespace sluice::jinja::builtins
