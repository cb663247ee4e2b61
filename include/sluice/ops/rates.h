// The measured peak rates of a machine.
#pragma once

namespace sluice::ops {

struct Rates {
  double read_bytes_per_second = 0;
  double flops_per_second = 0;  // of the unit that computes an op's products; a multiply-add counts as two
};

}  // namespace sluice::ops
