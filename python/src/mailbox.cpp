#include "mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "sluice/error.h"

namespace sluice::python {

Mailbox::~Mailbox() {
  if (file_ >= 0) ::close(file_);
}

void Mailbox::leave(Letter letter) {
  const std::lock_guard lock(mutex_);
  letters_.push_back(std::move(letter));
  filled_.notify_one();
  // Fails only if the count would overflow, in which case the file is readable already.
  if (file_ >= 0) static_cast<void>(::eventfd_write(file_, 1));
}

std::vector<Letter> Mailbox::take() {
  const std::lock_guard lock(mutex_);
  eventfd_t count = 0;
  if (file_ >= 0) static_cast<void>(::eventfd_read(file_, &count));
  return std::exchange(letters_, {});
}

bool Mailbox::wait(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  return filled_.wait_for(lock, longest, [&] { return !letters_.empty(); });
}

int Mailbox::file() {
  const std::lock_guard lock(mutex_);
  if (file_ < 0) file_ = ::eventfd(letters_.empty() ? 0 : 1, EFD_NONBLOCK | EFD_CLOEXEC);
  if (file_ < 0) throw Error(ErrorKind::resource, std::string("no event file: ") + std::strerror(errno));
  return file_;
}

}  // namespace sluice::python
