// The specification: every op in scalar code with double accumulation. One file an op, each defining run<Op>.
#pragma once

namespace sluice::backend::reference {

template <class Op>
void run(const Op& op);

}  // namespace sluice::backend::reference
