#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

// The next token of each row. Every setting is one number for all rows, or a field with one entry per
// request. Row t uses entry slots[t] of those fields (entry t without `slots`; then P = T), so requests may
// come, go and change places between runs of one recorded program. A row with slot -1 is skipped.
//
// In this order: penalties on tokens that occurred, bias, mask; then, unless the temperature is 0, a draw at
// that temperature among the tokens that top_k, top_p and min_p keep. Log-probabilities are those of the
// logits after penalties, bias and mask, before the temperature.
//
// Weights of a draw are exp((logit - largest) / temperature) in units of 2^-40, added as integers, so the
// choice does not depend on the order of summation. NaN logits and rows without any allowed token are errors.
struct Sample {
  static constexpr std::string_view kName = "sample";
  static constexpr std::string_view kFamily = "Sampling";
  static constexpr std::string_view kFormula =
      "ids = the largest logit, or a draw by softmax(logits / temperature) among the top_k, then top_p, then "
      "min_p most likely; equal logits by lower index; positions += 1, and the draw depends on seed and new "
      "position alone. Before: a token with counts c > 0 has logit / repetition_penalty (times it below 0) - "
      "presence_penalty - c * frequency_penalty, bias is added, tokens whose bit of allowed (bit i % 8 of "
      "byte i / 8) is 0 get -inf. The chosen token is added to the counts of rows with a penalty. logprob is "
      "that of the chosen token by log_softmax of these logits, top_ids and top_logprobs the most likely "
      "ones, falling; what is not asked for is -1 and -inf. Row t has entry slots[t] of all [P] fields, "
      "without slots entry t; a row with slot -1 keeps its position and id";

  static constexpr std::int64_t kMostLogprobs = 20;

  ConstView logits;
  View positions;
  View ids;
  ConstView slots;     // which entry has the settings of a row; -1: the row is skipped
  View counts;         // in place, optional: past tokens, for the penalties
  ConstView bias_ids;  // tokens whose logits get the bias in the same place; distinct, -1: none
  ConstView bias;
  ConstView allowed;  // a bit per token
  View logprob;
  View top_ids;
  View top_logprobs;                        // given with top_ids
  RowValue<double> temperature = 0;         // 0: the largest logit
  RowValue<std::int64_t> top_k = 0;         // candidates kept; 0: all
  RowValue<double> top_p = 1;               // share of the probability kept
  RowValue<double> min_p = 0;               // least probability kept, relative to the largest
  RowValue<std::uint64_t> seed = 0;         // of the draws
  RowValue<double> repetition_penalty = 1;  // on tokens that occurred
  RowValue<double> presence_penalty = 0;
  RowValue<double> frequency_penalty = 0;
  RowValue<std::int64_t> logprobs = -1;  // most likely tokens reported; 0: only the chosen one; -1: nothing

  template <class Op>
  static constexpr auto fields() {
    return contract(
        input("logits", &Op::logits, TypeClass::f32, "T,V"),
        updated("positions", &Op::positions, TypeClass::i32, "T"),
        output("ids", &Op::ids, TypeClass::i32, "T"),
        optional_input("slots", &Op::slots, TypeClass::i32, "T"),
        may_be_absent(updated("counts", &Op::counts, TypeClass::i32, "P,V")),
        optional_input("bias_ids", &Op::bias_ids, TypeClass::i32, "P,L"),
        optional_input("bias", &Op::bias, TypeClass::f32, "P,L"),
        optional_input("allowed", &Op::allowed, TypeClass::u8, "P,(V+7)/8"),
        may_be_absent(output("logprob", &Op::logprob, TypeClass::f32, "T")),
        may_be_absent(output("top_ids", &Op::top_ids, TypeClass::i32, "T,20")),
        may_be_absent(output("top_logprobs", &Op::top_logprobs, TypeClass::f32, "T,20")),
        optional_attribute("temperature", &Op::temperature, "0: the largest logit"),
        optional_attribute("top_k", &Op::top_k, "candidates kept; 0: all"),
        optional_attribute("top_p", &Op::top_p, "share of the probability kept"),
        optional_attribute("min_p", &Op::min_p, "least probability kept, relative to the largest"),
        optional_attribute("seed", &Op::seed, "of the draws"),
        optional_attribute("repetition_penalty", &Op::repetition_penalty,
                           "divides the positive logits of tokens that occurred, multiplies the others"),
        optional_attribute("presence_penalty", &Op::presence_penalty,
                           "taken off the logits of tokens that occurred"),
        optional_attribute("frequency_penalty", &Op::frequency_penalty,
                           "taken off for every time they occurred"),
        optional_attribute("logprobs", &Op::logprobs,
                           "most likely tokens reported, up to 20; 0: the chosen one alone; -1: nothing"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
