// The backends of this build, by constructor.
#pragma once

#include <memory>

#include "sluice/ops/backend.h"

namespace sluice::backend {

inline constexpr ops::Traits kReferenceTraits{};
inline constexpr ops::Traits kCpuTraits{.place = "CPU"};
inline constexpr ops::Traits kCudaTraits{.place = "GPU",
                                         .host_memory = false,
                                         .records = true,
                                         .activations = ops::DType::bf16,
                                         .prefill_chunk = 8192,
                                         .growth = std::uint64_t{2} << 20,
                                         .program_bytes = std::uint64_t{4} << 20,
                                         .program_layer_bytes = std::uint64_t{128} << 10};

namespace reference {
std::unique_ptr<ops::Backend> make();
}
namespace cpu {
std::unique_ptr<ops::Backend> make(const ops::BackendOptions& options);
}
namespace cuda {
// Why CUDA is not available; empty if it is.
std::string unavailable();
std::unique_ptr<ops::Backend> make(const ops::BackendOptions& options);
}  // namespace cuda

}  // namespace sluice::backend
