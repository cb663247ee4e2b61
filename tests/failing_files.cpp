// A library to preload into a program: io_uring is absent, and reads fail after SLUICE_READS of them, with an
// error or (SLUICE_SHORT) as if the file had ended. Writing to files and syncing them fails with the error
// SLUICE_WRITE_ERROR after SLUICE_WRITES calls, and works again SLUICE_WRITES_FAIL calls later. With
// SLUICE_SLOW_DISK each long read and each sync takes that many milliseconds more. With SLUICE_CLOCK_BACK the
// time of day is an hour earlier in each call.
#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

std::atomic<long> reads{0};
std::atomic<long> writes{0};
std::atomic<long> hours_back{0};

long number(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atol(text);
}

bool fails() {
  const char* until = std::getenv("SLUICE_READS");
  return until != nullptr && reads++ >= std::atol(until);
}

void wait_for_disk() {
  usleep(static_cast<useconds_t>(1000 * number("SLUICE_SLOW_DISK")));
}

bool write_fails(int file) {
  struct stat status {};
  const bool keeps = fstat(file, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
  if (!keeps || std::getenv("SLUICE_WRITES") == nullptr) return false;
  const long begin = number("SLUICE_WRITES"), now = writes++;
  errno = static_cast<int>(number("SLUICE_WRITE_ERROR"));
  return now >= begin && now < begin + number("SLUICE_WRITES_FAIL");
}

}  // namespace

extern "C" {

int io_uring_queue_init(unsigned, void*, unsigned) {
  return -ENOSYS;
}

ssize_t pread(int file, void* to, size_t bytes, off_t at) {
  using Read = ssize_t (*)(int, void*, size_t, off_t);
  constexpr size_t kLong = 16384;
  if (bytes >= kLong) wait_for_disk();
  if (!fails()) return reinterpret_cast<Read>(dlsym(RTLD_NEXT, "pread"))(file, to, bytes, at);
  if (std::getenv("SLUICE_SHORT") != nullptr) return 0;
  errno = EIO;
  return -1;
}

ssize_t write(int file, const void* from, size_t bytes) {
  using Write = ssize_t (*)(int, const void*, size_t);
  return write_fails(file) ? -1 : reinterpret_cast<Write>(dlsym(RTLD_NEXT, "write"))(file, from, bytes);
}

int fsync(int file) {
  using Sync = int (*)(int);
  wait_for_disk();
  return write_fails(file) ? -1 : reinterpret_cast<Sync>(dlsym(RTLD_NEXT, "fsync"))(file);
}

int clock_gettime(clockid_t clock, timespec* now) {
  using Get = int (*)(clockid_t, timespec*);
  static const Get get = reinterpret_cast<Get>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int status = get(clock, now);
  if (clock == CLOCK_REALTIME && std::getenv("SLUICE_CLOCK_BACK") != nullptr)
    now->tv_sec -= 3600 * ++hours_back;
  return status;
}

time_t time(time_t* to) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}

ssize_t pread64(int file, void* to, size_t bytes, off_t at) {
  return pread(file, to, bytes, at);
}
}
