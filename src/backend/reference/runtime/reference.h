// The specification: every op in scalar code with double accumulation. Each op has a file that defines
// run<Op>.
#pragma once

namespace sluice::backend::reference {

template <class Op>
void run(const Op& op);

}  // namespace sluice::backend::reference
