// Reads through io_uring: one system call starts them all.
#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <system_error>

#include "base/error.h"
#include "base/integer_cast.h"
#include "experts/reader.h"

namespace sluice::experts {

namespace {

constexpr unsigned kDepth = 128;  // in flight at once; further requests are queued here

class UringReader final : public Reader {
 public:
  explicit UringReader(OpenFiles& files) {
    const int status = io_uring_queue_init(kDepth, &ring_, 0);
    if (status < 0) fail(ErrorKind::unsupported, "no io_uring: {}", std::generic_category().message(-status));
    files_ = std::move(files);
    for (unsigned i = kDepth; i > 0; --i) free_.push_back(i - 1);
  }
  ~UringReader() override { io_uring_queue_exit(&ring_); }
  UringReader(const UringReader&) = delete;
  UringReader& operator=(const UringReader&) = delete;

  std::string description() const override {
    const auto direct =
        std::count_if(files_.begin(), files_.end(), [](const OpenFile& f) { return f.direct; });
    return fmt::format("io_uring, {} of {} files past the page cache", direct, files_.size());
  }

  void start(std::span<const Request> requests) override {
    for (const Request& request : requests) waiting_.push_back({request, 0});
    submit();
  }

  Completion wait() override {
    for (;;) {
      io_uring_cqe* entry = nullptr;
      const int status = io_uring_wait_cqe(&ring_, &entry);
      if (status == -EINTR) continue;
      if (status < 0)
        fail(ErrorKind::resource, "waiting for reads: {}", std::generic_category().message(-status));
      const unsigned index = io_uring_cqe_get_data64(entry);
      const std::int64_t got = entry->res;
      io_uring_cqe_seen(&ring_, entry);
      Flight flight = flying_[index];
      free_.push_back(index);
      if (got == -EINTR || got == -EAGAIN || continues(flight, got)) {
        if (got > 0) flight.done += to_size(got);
        waiting_.push_front(flight);
        submit();
        continue;
      }
      if (!waiting_.empty()) submit();
      return {flight.request.tag,
              read_error(flight.request, got < 0 ? got : static_cast<std::int64_t>(flight.done) + got)};
    }
  }
  bool ready() override { return io_uring_cq_ready(&ring_) > 0; }

  bool unchanged(int file) const override { return files_[file].unchanged(); }

 private:
  struct Flight {
    Request request;
    std::size_t done;  // bytes that earlier, short reads returned
  };

  // A short read is continued where it stopped; at the end of the file it returns nothing.
  static bool continues(const Flight& flight, std::int64_t got) {
    return got > 0 && flight.done + to_size(got) < flight.request.needed;
  }

  void submit() {
    while (!waiting_.empty() && !free_.empty()) {
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);
      if (entry == nullptr) break;
      const Flight flight = waiting_.front();
      waiting_.pop_front();
      const unsigned index = free_.back();
      free_.pop_back();
      flying_[index] = flight;
      const Request& r = flight.request;
      io_uring_prep_read(entry, files_[r.file].descriptor.get(), r.to + flight.done,
                         to_unsigned(r.bytes - flight.done), r.offset + flight.done);
      io_uring_sqe_set_data64(entry, index);
    }
    int status = 0;
    do status = io_uring_submit(&ring_);
    while (status == -EINTR || status == -EAGAIN);
    if (status < 0) fail(ErrorKind::resource, "starting reads: {}", std::generic_category().message(-status));
  }

  io_uring ring_{};
  OpenFiles files_;
  std::deque<Flight> waiting_;
  Flight flying_[kDepth] = {};
  std::vector<unsigned> free_;
};

}  // namespace

std::unique_ptr<Reader> make_uring_reader(OpenFiles& files) {
  return std::make_unique<UringReader>(files);
}

}  // namespace sluice::experts
