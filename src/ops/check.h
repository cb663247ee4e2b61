// The generic part of check(op): presence, types, shapes, strides, alignment and overlap, from the op's table
// only.
#pragma once

#include <span>
#include <string_view>

#include "sluice/ops/field.h"

namespace sluice::ops {

// One field of an op with its type erased.
struct FieldView {
  std::string_view name;
  Role role;
  TypeClass types;
  const ShapeSpec* shape;
  const ShapeSpec* other_shape;
  bool pooled;
  bool same_as_input;
  bool or_f32;
  bool may_be_empty;
  bool may_be_absent;
  ConstView view;                          // tensors
  const Weight* weight = nullptr;          // weights
  const ExpertWeights* experts = nullptr;  // stacks of weights

  bool present() const {
    return weight != nullptr ? weight->present() : experts != nullptr ? experts->present() : view.present();
  }
};

// Binds the symbols of all shapes; throws on the first field that does not match. Parameters may lie at any
// byte address of host memory, as in a mapped file.
void check_fields(std::string_view op, std::span<const FieldView> fields, bool pooled, bool host_memory,
                  Dims& dims);

// The same for inputs and updated fields only, to determine the shapes of the outputs.
void check_inputs(std::string_view op, std::span<const FieldView> fields, bool pooled, bool host_memory,
                  Dims& dims);

// How the tokens of a call are divided into sequences.
struct SequenceFields {
  ConstView seq_starts;
  ConstView slots;
  std::int64_t tokens;
  std::int64_t pool;  // rows of the pooled states or caches, or of the page table
  bool pool_written;  // in a pool that is only read, sequences may share rows
};
void check_sequences(std::string_view op, const SequenceFields& fields, bool host_memory);
// Checks the layout of a page table; limits.h checks its entries.
void check_page_table(std::string_view op, const ConstView& table, bool several_sequences, const Dims& dims);
// A value given per call or, under seq_starts, per sequence.
void check_sequence_value(std::string_view op, std::string_view field, const SequenceValue& value,
                          const ConstView& seq_starts);

// A value per row of settings: its type, and its shape [P], or [P,2] for two words. Binds P.
void check_row_value(std::string_view op, std::string_view field, const ConstView& per_row, DType type,
                     std::int64_t words, Dims& dims);

// The shape of a field with bound symbols, with the pool dimension in front if `pooled`. Throws if a symbol
// is unbound.
Shape evaluate(std::string_view op, std::string_view field, const ShapeSpec& spec, const Dims& dims,
               bool pooled);

}  // namespace sluice::ops
