// Any bytes as a safetensors file: either an Error, or tensors whose every byte can be read.
#include "checkpoint/safetensors.h"

#include <cstdlib>

#include "sluice/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto image = std::as_bytes(std::span(data, size));
  try {
    const sluice::checkpoint::Safetensors file(image, "fuzz");
    uint64_t bytes = 0;
    unsigned sum = 0;
    for (const auto& tensor : file.tensors()) {
      if (file.find(tensor.name) != &tensor) std::abort();
      if (tensor.data.size() != size_bytes(tensor)) std::abort();
      bytes += tensor.data.size();
      for (const std::byte byte : tensor.data) sum += std::to_integer<unsigned>(byte);
    }
    if (bytes > size || (sum == 1 && bytes == 0)) std::abort();
  } catch (const sluice::Error&) {
  }
  return 0;
}
