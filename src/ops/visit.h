// Compile-time walks over an op's table of fields.
#pragma once

#include <type_traits>

#include "sluice/ops/field.h"

namespace sluice::ops {

template <class T>
inline constexpr bool kIsField = false;
template <class Op, class M>
inline constexpr bool kIsField<Field<Op, M>> = true;

template <class T>
inline constexpr bool kIsAttribute = false;
template <class Op, class M>
inline constexpr bool kIsAttribute<Attribute<Op, M>> = true;

template <class Entry>
struct MemberOf;
template <class Op, class M>
struct MemberOf<Field<Op, M>> {
  using Type = M;
};
template <class Op, class M>
struct MemberOf<Attribute<Op, M>> {
  using Type = M;
};
template <class Entry>
using Member = typename MemberOf<Entry>::Type;

template <class M>
inline constexpr bool kIsRowValue = false;
template <class T>
inline constexpr bool kIsRowValue<RowValue<T>> = true;
// How a field of such values is stored: the element type, and the number of elements per value.
template <class M>
constexpr DType row_type() {
  return std::is_same_v<M, RowValue<double>> ? DType::f32 : DType::i32;
}
template <class M>
constexpr std::int64_t row_words() {
  return std::is_same_v<M, RowValue<std::uint64_t>> ? 2 : 1;
}

// The table of an op, evaluated once by the compiler.
template <class Op>
inline constexpr auto kFields = Op::template fields<Op>();

// Calls f(entry) for every field and attribute, in the order of the table.
template <class Op, class F>
constexpr void for_each_entry(const F& f) {
  kFields<Op>.for_each(f);
}

}  // namespace sluice::ops
