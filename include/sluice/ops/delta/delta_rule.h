#pragma once

#include "sluice/ops/field.h"

namespace sluice::ops {

enum class DeltaForm : std::uint8_t { automatic, recurrent, chunked };
constexpr std::array<std::string_view, 3> names_of(DeltaForm) {
  return {"auto", "recurrent", "chunked"};
}
enum class DeltaHeads : std::uint8_t { block, tiled };
constexpr std::array<std::string_view, 2> names_of(DeltaHeads) {
  return {"block", "tiled"};
}

// The gated delta rule over a sequence; g is the natural log of the decay.
struct DeltaRule {
  static constexpr std::string_view kName = "delta_rule";
  static constexpr std::string_view kFamily = "Gated delta rule";
  static constexpr std::string_view kFormula =
      "per token: S *= e^g; u = beta (v - S k); S += u kT; out = S q; saved[i] is the state after the call's "
      "tokens before save_at[i]";

  ConstView q;
  ConstView k;
  ConstView v;
  ConstView g;
  ConstView beta;
  View state;
  View out;
  ConstView seq_starts;
  ConstView slots;
  DeltaForm form = DeltaForm::automatic;
  DeltaHeads heads = DeltaHeads::block;
  // Ascending: saved[i] becomes a sequence's state after the call's tokens before save_at[i], which must lie
  // a multiple of 64 tokens after the sequence's first token in the call. Negative: nothing is saved.
  ConstView save_at = {};
  View saved = {};  // present if save_at is

  template <class Op>
  static constexpr auto fields() {
    return contract(
        input("q", &Op::q, TypeClass::activation, "T,Hk,Dk"),
        input("k", &Op::k, TypeClass::activation, "T,Hk,Dk"),
        input("v", &Op::v, TypeClass::activation, "T,Hv,Dv"), input("g", &Op::g, TypeClass::f32, "T,Hv"),
        input("beta", &Op::beta, TypeClass::f32, "T,Hv"),
        pooled(updated("state", &Op::state, TypeClass::f32, "Hv,Dv,Dk")),
        output("out", &Op::out, TypeClass::activation, "T,Hv,Dv"), sequence_inputs<Op>(),
        optional_input("save_at", &Op::save_at, TypeClass::i32, "N"),
        may_be_absent(updated("saved", &Op::saved, TypeClass::f32, "N,Hv,Dv,Dk")),
        optional_attribute("form", &Op::form,
                           "recurrent: token by token; chunked: blocks of 64 tokens; auto: chosen by length"),
        optional_attribute("heads", &Op::heads, "block: key head hv/(Hv/Hk); tiled: hv mod Hk"));
  }
  void check_limits(const Dims& dims, bool host_memory) const;
};

}  // namespace sluice::ops
