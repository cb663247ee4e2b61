// A library to preload into programs started by mpirun, to simulate a busy machine: the process of rank
// SLUICE_SLOW_RANK takes SLUICE_SLOW_SECONDS longer to start MPI, and all take SLUICE_SLOW_PUBLISH
// milliseconds longer to publish anything by PMIx, that one a second more.
#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

unsigned number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : static_cast<unsigned>(std::atoi(text));
}

bool is_slow() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* slow = std::getenv("SLUICE_SLOW_RANK");
  return rank != nullptr && slow != nullptr && std::strcmp(rank, slow) == 0;
}

template <class F>
F* next(F*, const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  if (is_slow()) sleep(number("SLUICE_SLOW_SECONDS"));
  return next(MPI_Init_thread, "MPI_Init_thread")(argc, argv, required, provided);
}

struct pmix_info;

extern "C" int PMIx_Publish(const pmix_info* info, std::size_t count) {
  usleep(number("SLUICE_SLOW_PUBLISH") * 1000 + (is_slow() ? 1000000 : 0));
  return next(PMIx_Publish, "PMIx_Publish")(info, count);
}
