// The gated delta rule: S *= e^g; u = beta (v - S k); S += u kT; out = S q for every token.
//
// Two forms, a file each. Generated tokens take the recurrent one: their state is read and written once a
// step and that is all there is to do. Prompts take the chunked one for every token, the ragged last chunk
// too: chunks lie on a grid counted from the sequence's first token in the call, and a token's bits depend on
// the tokens before it alone. Cutting a prompt at a multiple of the chunk changes no bit.
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
