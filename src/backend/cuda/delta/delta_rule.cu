// The gated delta rule: S *= e^g; u = beta (v - S k); S += u kT; out = S q for every token.
//
// Two forms, in a file each. Generated tokens use the recurrent form: their state is read and written once
// per step, which dominates. Prompts use the chunked form for every token, those of an incomplete last chunk
// included: chunks are counted from the sequence's first token in the call, and a token's bits depend only on
// the tokens before it. Splitting a prompt at a multiple of the chunk changes no bit.
#include "backend/cuda/delta/call.cuh"

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::DeltaRule& op) {
  using namespace delta;
  const bool recurrent = op.form == ops::DeltaForm::recurrent ||
                         (op.form == ops::DeltaForm::automatic && context.decode_class(op.q.dim(0)));
  if (!recurrent && chunked_supports(context, op))
    launch_chunked(context, op);
  else
    launch_recurrent(context, op);
}

}  // namespace sluice::backend::cuda
