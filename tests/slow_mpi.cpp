// Preloaded into a program that mpirun starts: the process of rank SLUICE_SLOW_RANK takes SLUICE_SLOW_SECONDS
// longer to begin MPI, as one on a busy machine does.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* slow = std::getenv("SLUICE_SLOW_RANK");
  if (rank != nullptr && slow != nullptr && std::strcmp(rank, slow) == 0)
    sleep(static_cast<unsigned>(std::atoi(std::getenv("SLUICE_SLOW_SECONDS"))));
  using Begin = int (*)(int*, char***, int, int*);
  return reinterpret_cast<Begin>(dlsym(RTLD_NEXT, "MPI_Init_thread"))(argc, argv, required, provided);
}
