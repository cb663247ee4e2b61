// Op files: for any bytes, reading and binding either works or throws one sluice::Error. The first byte
// selects the op.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runner/bound_op.h"
#include "sluice/error.h"
#include "sluice/op_runner.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto ops = sluice::describe_ops();
  static const auto backend = sluice::ops::make_backend("reference");
  if (size == 0) return 0;
  try {
    const auto image = std::as_bytes(std::span(data, size)).subspan(1);
    const auto file = sluice::runner::parse_op_file(image, "fuzz");
    const auto bound = sluice::runner::bind(*backend, ops[data[0] % ops.size()].name, file);
    bound->run();
  } catch (const sluice::Error&) {
    return 0;
  }
  return 0;
}
