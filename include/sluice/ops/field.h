// The language of op contracts. The members of an op are its fields and attributes; fields() states their
// roles, types, symbolic shapes and meanings, once. That table serves the checks, the op runner, the command
// line's --describe and the documentation. It is a template of the op itself, so that only the files that
// read the table compile it: every file that runs ops sees all of them.
//
// An op states what a shape cannot express in functions of its own, if it needs them (src/ops/limits):
// check_attributes() checks attributes from which shapes are derived, check_limits() everything else. The
// latter reads the contents of fields only if they are in host memory.
//
// Names that mean the same in every op:
//   seq_starts  divides the tokens of a call into B sequences
//   slots       the pool row of each sequence, 0 to B-1 by default; a `pooled` field has that dimension
//   page_table  the pages of each sequence, if a cache is paged
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "sluice/ops/view.h"
#include "sluice/ops/weight.h"

namespace sluice::ops {

// Dimension symbols and attributes that may appear in a shape.
inline constexpr std::array<std::string_view, 37> kSymbols = {
    "T",      "D",    "Dv",     "H",          "KH",    "Hk",    "Hv",   "Hg", "Dk",    "E",
    "k",      "K",    "N",      "S",          "V",     "C",     "W",    "B",  "P",     "R",
    "G",      "bits", "k_bits", "v_bits",     "nope",  "rope",  "rank", "v",  "chunk", "groups",
    "bucket", "B1",   "M",      "top_groups", "slots", "pages", "L"};

constexpr int symbol_index(std::string_view symbol) {
  for (std::size_t i = 0; i < kSymbols.size(); ++i)
    if (kSymbols[i] == symbol) return static_cast<int>(i);
  throw "unknown dimension symbol";  // only ever evaluated by the compiler
}

// One dimension: an expression over symbols, in postfix order. Codes below kOperator are symbols, those from
// kLiteral on are numbers.
struct DimExpression {
  static constexpr std::int16_t kOperator = 100;
  static constexpr std::int16_t kLiteral = 200;
  std::array<std::int16_t, 12> code{};
  int size = 0;
  constexpr void emit(int c) { code[static_cast<std::size_t>(size++)] = static_cast<std::int16_t>(c); }
  constexpr bool lone_symbol() const { return size == 1 && code[0] < kOperator; }
};

// A shape such as "T,H,2*D", "..,D" (any leading dimensions) or "*" (any shape, equal wherever "*" stands).
struct ShapeSpec {
  std::string_view text;
  bool whole = false;
  bool leading = false;
  int rank = 0;
  std::array<DimExpression, 4> dims{};
};

namespace detail {

struct ShapeParser {
  std::string_view text;
  std::size_t at = 0;

  constexpr bool eat(char c) {
    if (at < text.size() && text[at] == c) return ++at, true;
    return false;
  }
  static constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static constexpr bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }

  constexpr void factor(DimExpression& e) {
    if (eat('(')) {
      sum(e);
      if (!eat(')')) throw "missing )";
    } else if (is_digit(text[at])) {
      int value = 0;
      while (at < text.size() && is_digit(text[at])) value = value * 10 + (text[at++] - '0');
      e.emit(DimExpression::kLiteral + value);
    } else {
      const std::size_t begin = at;
      while (at < text.size() && (is_name(text[at]) || is_digit(text[at]))) ++at;
      e.emit(symbol_index(text.substr(begin, at - begin)));
    }
  }
  constexpr void product(DimExpression& e) {
    factor(e);
    while (at < text.size() && (text[at] == '*' || text[at] == '/')) {
      const char op = text[at++];
      factor(e);
      e.emit(DimExpression::kOperator + (op == '*' ? 2 : 3));
    }
  }
  constexpr void sum(DimExpression& e) {
    product(e);
    while (at < text.size() && (text[at] == '+' || text[at] == '-')) {
      const char op = text[at++];
      product(e);
      e.emit(DimExpression::kOperator + (op == '+' ? 0 : 1));
    }
  }
};

}  // namespace detail

constexpr ShapeSpec parse_shape(std::string_view text) {
  ShapeSpec spec;
  spec.text = text;
  if (text == "*") {
    spec.whole = true;
    return spec;
  }
  detail::ShapeParser parser{text};
  if (text.substr(0, 3) == "..,") {
    spec.leading = true;
    parser.at = 3;
  }
  do {
    parser.sum(spec.dims[static_cast<std::size_t>(spec.rank++)]);
  } while (parser.eat(','));
  if (parser.at != text.size()) throw "malformed shape";
  return spec;
}

enum class Role : std::uint8_t { in, optional, out, in_place };

// Which element types a field accepts. An output of class `activation` has the type of the op's first
// activation field, or F32 if it has none.
enum class TypeClass : std::uint8_t {
  activation,  // F32 or BF16
  cache,       // F32 or BF16, regardless of the activations
  parameter,   // F32, BF16 or F16: norm weights, convolution taps, biases
  f32,
  i32,
  u8,
};

// A number per call, or one I32 per sequence in a field of the same name when `seq_starts` is
// given.
struct SequenceValue {
  std::int64_t value = 0;
  ConstView per_sequence;

  constexpr SequenceValue() = default;
  constexpr SequenceValue(std::int64_t value) : value(value) {}                           // NOLINT
  constexpr SequenceValue(const ConstView& per_sequence) : per_sequence(per_sequence) {}  // NOLINT
};

// A number for all rows of a call, or one per row in a field of the same name: F32 [P] for double, I32 [P]
// for std::int64_t, I32 [P,2] (the low word first) for std::uint64_t.
template <class T>
struct RowValue {
  T value{};
  ConstView per_row;

  constexpr RowValue() = default;
  constexpr RowValue(T value) : value(value) {}                       // NOLINT
  constexpr RowValue(const ConstView& per_row) : per_row(per_row) {}  // NOLINT
};

// A tensor, weight, or per-sequence value of an op.
template <class Op, class Member>
struct Field {
  std::string_view name;
  Member Op::*member;
  Role role;
  TypeClass types;
  ShapeSpec shape;
  ShapeSpec other_shape;       // a second allowed shape of another rank; text empty if there is none
  bool pooled = false;         // has a leading pool dimension P with seq_starts or page_table
  bool same_as_input = false;  // an output that may share an input's memory
  bool or_f32 = false;         // an output that may be F32 regardless of the activations
  bool may_be_empty = false;   // a dimension may be 0
  bool may_be_absent = false;  // an output or an updated field that a call may leave out
};

// A scalar of an op.
template <class Op, class Member>
struct Attribute {
  std::string_view name;
  Member Op::*member;
  bool required;
  std::string_view meaning;
};

// The fields and attributes of an op, in order. An entry may be a contract, of those that ops have in common.
// Compilers take seconds for the std::tuples of all ops.
template <std::size_t kIndex, class Entry>
struct ContractEntry {
  Entry entry;

  template <class F>
  constexpr void visit(const F& f) const {
    if constexpr (requires { entry.for_each(f); })
      entry.for_each(f);
    else
      f(entry);
  }
};
template <class Indices, class... Entries>
struct Contract;
template <std::size_t... kIndices, class... Entries>
struct Contract<std::index_sequence<kIndices...>, Entries...> : ContractEntry<kIndices, Entries>... {
  template <class F>
  constexpr void for_each(const F& f) const {
    (ContractEntry<kIndices, Entries>::visit(f), ...);
  }
};
template <class... Entries>
constexpr Contract<std::index_sequence_for<Entries...>, Entries...> contract(const Entries&... entries) {
  return {{entries}...};
}

template <class Op, class M>
constexpr Field<Op, M> input(std::string_view name, M Op::*member, TypeClass types, std::string_view shape) {
  return {name, member, Role::in, types, parse_shape(shape), {}};
}
template <class Op, class M>
constexpr Field<Op, M> input_either(std::string_view name, M Op::*member, TypeClass types,
                                    std::string_view shape, std::string_view other) {
  return {name, member, Role::in, types, parse_shape(shape), parse_shape(other)};
}
template <class Op, class M>
constexpr Field<Op, M> optional_input(std::string_view name, M Op::*member, TypeClass types,
                                      std::string_view shape) {
  return {name, member, Role::optional, types, parse_shape(shape), {}};
}
template <class Op, class M>
constexpr Field<Op, M> optional_input_either(std::string_view name, M Op::*member, TypeClass types,
                                             std::string_view shape, std::string_view other) {
  return {name, member, Role::optional, types, parse_shape(shape), parse_shape(other)};
}
template <class Op, class M>
constexpr Field<Op, M> output(std::string_view name, M Op::*member, TypeClass types, std::string_view shape) {
  return {name, member, Role::out, types, parse_shape(shape), {}};
}
// An output that may be written over one of the inputs.
template <class Op, class M>
constexpr Field<Op, M> output_over(std::string_view name, M Op::*member, TypeClass types,
                                   std::string_view shape) {
  return {name, member, Role::out, types, parse_shape(shape), {}, false, true};
}
// An output that need not be rounded to the activations' type, such as logits, where close values matter.
template <class Op, class M>
constexpr Field<Op, M> or_f32(Field<Op, M> field) {
  field.or_f32 = true;
  return field;
}
template <class Op, class M>
constexpr Field<Op, M> updated(std::string_view name, M Op::*member, TypeClass types,
                               std::string_view shape) {
  return {name, member, Role::in_place, types, parse_shape(shape), {}};
}
template <class Op, class M>
constexpr Field<Op, M> matrix(std::string_view name, M Op::*member, std::string_view shape) {
  return {name, member, Role::in, TypeClass::parameter, parse_shape(shape), {}};
}
template <class Op, class M>
constexpr Field<Op, M> optional_matrix(std::string_view name, M Op::*member, std::string_view shape) {
  return {name, member, Role::optional, TypeClass::parameter, parse_shape(shape), {}};
}
// A state or cache: it has the pool dimension when several sequences run in one call, or when it is
// paged.
template <class Op, class M>
constexpr Field<Op, M> pooled(Field<Op, M> field) {
  field.pooled = true;
  return field;
}
// Where the tokens of a call are cut into sequences, and each sequence's row of the pool.
template <class Op>
constexpr auto sequence_inputs() {
  return contract(optional_input("seq_starts", &Op::seq_starts, TypeClass::i32, "B1"),
                  optional_input("slots", &Op::slots, TypeClass::i32, "B"));
}
// The same for ops whose caches may be paged. With a page table, the leading dimension of a cache counts
// pages, and S is the number of rows per page, a power of two of at least 64. Row r of a sequence is row
// r % S of the page that entry r / S of the sequence's row of the table names. The table's row is the
// sequence's number or, with `slots`, its slot; for one sequence without seq_starts the table has one
// dimension. Entries for rows that the op neither reads nor writes may have any value. Sequences may share
// pages that the op only reads.
template <class Op>
constexpr auto paged_sequence_inputs() {
  return contract(sequence_inputs<Op>(), optional_input_either("page_table", &Op::page_table, TypeClass::i32,
                                                               "slots,pages", "pages"));
}
// A field that may be empty: no experts per token, no history.
template <class Op, class M>
constexpr Field<Op, M> may_be_empty(Field<Op, M> field) {
  field.may_be_empty = true;
  return field;
}
// An output or updated state that is computed only if the field is given.
template <class Op, class M>
constexpr Field<Op, M> may_be_absent(Field<Op, M> field) {
  field.may_be_absent = true;
  return field;
}
template <class Op, class M>
constexpr Attribute<Op, M> attribute(std::string_view name, M Op::*member, std::string_view meaning) {
  return {name, member, true, meaning};
}
template <class Op, class M>
constexpr Attribute<Op, M> optional_attribute(std::string_view name, M Op::*member,
                                              std::string_view meaning) {
  return {name, member, false, meaning};
}

// Values bound to the symbols of an op's shapes while it is checked.
struct Dims {
  std::array<std::int64_t, kSymbols.size()> values;
  Shape leading;
  Shape whole;
  bool leading_bound = false;
  bool whole_bound = false;

  Dims() { values.fill(-1); }
  std::int64_t& operator[](std::string_view symbol) {
    return values[static_cast<std::size_t>(symbol_index(symbol))];
  }
  std::int64_t operator[](std::string_view symbol) const {
    return values[static_cast<std::size_t>(symbol_index(symbol))];
  }
};

}  // namespace sluice::ops
