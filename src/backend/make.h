// The backends of this build, by constructor.
#pragma once

#include <memory>

#include "experts/meeting.h"
#include "sluice/ops/backend.h"

namespace sluice::backend {

namespace reference {
std::unique_ptr<ops::Backend> make();
}
namespace cpu {
std::unique_ptr<ops::Backend> make(const ops::BackendOptions& options);
}
namespace cuda {
// Why there is no CUDA here, empty where there is.
std::string unavailable();
std::unique_ptr<ops::Backend> make();
// Host memory that the device copies from and to while the host goes on.
ops::Buffer allocate_pinned(std::size_t bytes);
// Bytes a second from such memory to the device, measured now.
double measure_bus_rate();
// Of a backend that make() made.
std::unique_ptr<experts::Meeting> make_meeting(ops::Backend& backend, const experts::Meeting::Room& room);
}  // namespace cuda

}  // namespace sluice::backend
