// Stands in for the CUDA backend in builds without it.
#include "backend/make.h"
#include "base/error.h"

namespace sluice::backend::cuda {

std::string unavailable() {
  return "this build has no CUDA backend; configure it with -DSLUICE_CUDA=ON where nvcc is installed";
}

std::unique_ptr<ops::Backend> make() {
  fail(ErrorKind::unsupported, "{}", unavailable());
}

ops::Buffer allocate_pinned(std::size_t) {
  fail(ErrorKind::unsupported, "{}", unavailable());
}

double measure_bus_rate() {
  fail(ErrorKind::unsupported, "{}", unavailable());
}

std::unique_ptr<experts::Meeting> make_meeting(ops::Backend&, const experts::Meeting::Room&) {
  fail(ErrorKind::unsupported, "{}", unavailable());
}

}  // namespace sluice::backend::cuda
