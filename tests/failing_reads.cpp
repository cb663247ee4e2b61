// Preloaded into a program: there is no io_uring, and reads fail once there were SLUICE_READS of them, with
// an error or (SLUICE_SHORT) as if the file had ended.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

std::atomic<long> reads{0};

bool fails() {
  const char* until = std::getenv("SLUICE_READS");
  return until != nullptr && reads++ >= std::atol(until);
}

}  // namespace

extern "C" {

int io_uring_queue_init(unsigned, void*, unsigned) {
  return -ENOSYS;
}

ssize_t pread(int file, void* to, size_t bytes, off_t at) {
  using Read = ssize_t (*)(int, void*, size_t, off_t);
  if (!fails()) return reinterpret_cast<Read>(dlsym(RTLD_NEXT, "pread"))(file, to, bytes, at);
  if (std::getenv("SLUICE_SHORT") != nullptr) return 0;
  errno = EIO;
  return -1;
}

ssize_t pread64(int file, void* to, size_t bytes, off_t at) {
  return pread(file, to, bytes, at);
}
}
