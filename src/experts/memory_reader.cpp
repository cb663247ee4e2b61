// "Reads" from memory: for random weights, which are in no file.
#include <algorithm>
#include <cstring>
#include <deque>

#include "experts/reader.h"

namespace sluice::experts {

namespace {

class MemoryReader final : public Reader {
 public:
  explicit MemoryReader(std::vector<std::span<const std::byte>> sources) : sources_(std::move(sources)) {}

  std::string description() const override { return "memory"; }
  void start(std::span<const Request> requests) override {
    for (const Request& request : requests) {
      const std::span<const std::byte> source = sources_[request.file];
      const std::size_t count = std::min<std::size_t>(request.bytes, source.size() - request.offset);
      std::memcpy(request.to, source.data() + request.offset, count);
      done_.push_back({request.tag, read_error(request, static_cast<std::int64_t>(count))});
    }
  }
  Completion wait() override {
    Completion first = std::move(done_.front());
    done_.pop_front();
    return first;
  }
  bool ready() override { return !done_.empty(); }

  bool unchanged(int) const override { return true; }

 private:
  std::vector<std::span<const std::byte>> sources_;
  std::deque<Completion> done_;
};

}  // namespace

std::unique_ptr<Reader> make_memory_reader(std::vector<std::span<const std::byte>> sources) {
  return std::make_unique<MemoryReader>(std::move(sources));
}

}  // namespace sluice::experts
