// An op's fields with their types erased, collected from its table.
#pragma once

#include <algorithm>
#include <array>

#include "ops/check.h"
#include "ops/visit.h"

namespace sluice::ops {

template <class Op>
constexpr std::size_t field_count() {
  std::size_t count = 0;
  for_each_entry<Op>(
      [&](const auto& entry) { count += kIsField<std::remove_cvref_t<decltype(entry)>> ? 1 : 0; });
  return count;
}

constexpr bool is_symbol(std::string_view name) {
  for (const std::string_view symbol : kSymbols)
    if (symbol == name) return true;
  return false;
}

template <class Op>
constexpr bool kHasSequences = requires(const Op& op) {
  op.seq_starts;
};

template <class Op>
constexpr bool kHasPages = requires(const Op& op) {
  op.page_table;
};

// Limits of attributes that determine shapes, so that an error names the attribute and not the shape.
template <class Op>
void check_attributes(const Op& op) {
  if constexpr (requires { op.check_attributes(); }) op.check_attributes();
}

template <class Op>
struct ErasedOp {
  std::array<FieldView, field_count<Op>()> fields;
  Dims dims;            // attributes and derived dimensions are bound, the rest is free
  bool pooled = false;  // states and caches have the pool dimension

  explicit ErasedOp(const Op& op) {
    std::size_t used = 0;
    for_each_entry<Op>([&](const auto& entry) {
      using Entry = std::remove_cvref_t<decltype(entry)>;
      if constexpr (kIsField<Entry>)
        fields[used++] = erase(op, entry);
      else if constexpr (std::is_same_v<Member<Entry>, std::int64_t>)
        if (is_symbol(entry.name)) dims[entry.name] = op.*entry.member;
    });
    if constexpr (requires { op.derive(dims); }) op.derive(dims);
    if constexpr (kHasSequences<Op>) pooled = op.seq_starts.present();
    if constexpr (kHasPages<Op>) pooled |= op.page_table.present();
  }

  bool pool_written() const {
    return std::any_of(fields.begin(), fields.end(),
                       [](const FieldView& field) { return field.pooled && field.role == Role::in_place; });
  }

 private:
  template <class M>
  static FieldView erase(const Op& op, const Field<Op, M>& field) {
    FieldView erased{field.name,
                     field.role,
                     field.types,
                     &field.shape,
                     &field.other_shape,
                     field.pooled,
                     field.same_as_input,
                     field.or_f32,
                     field.may_be_empty,
                     field.may_be_absent,
                     {}};
    if constexpr (std::is_same_v<M, Weight>)
      erased.weight = &(op.*field.member);
    else if constexpr (std::is_same_v<M, ExpertWeights>)
      erased.experts = &(op.*field.member);
    else
      erased.view = op.*field.member;
    return erased;
  }
};

}  // namespace sluice::ops
