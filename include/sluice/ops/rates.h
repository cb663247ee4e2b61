// What a machine can do at best, measured.
#pragma once

namespace sluice::ops {

struct Rates {
  double read_bytes_per_second = 0;
  double flops_per_second = 0;  // of the unit that does an op's products; a multiply-add counts two
};

}  // namespace sluice::ops
