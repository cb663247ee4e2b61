#include "experts/disk_rate.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "base/clock.h"
#include "base/error.h"
#include "base/integer_cast.h"
#include "experts/cache.h"

namespace sluice::experts {

double measure_disk_rate(const std::filesystem::path& file) {
  constexpr std::size_t kRead = std::size_t{1} << 20;
  constexpr std::size_t kDepth = 16;
  constexpr std::chrono::milliseconds kTime{500};
  const std::uint64_t size = std::filesystem::file_size(file);
  OpenFiles open;
  open.push_back(open_for_reading(file, size));
  const auto reader = make_reader(std::move(open));
  const ops::Buffer memory = reserve_memory(kRead * kDepth);
  std::mt19937_64 random(1);
  std::size_t in_flight = 0;
  const auto start = [&](std::uint32_t tag) {
    const std::uint64_t offset = size > kRead ? random() % (size - kRead) / kAlignment * kAlignment : 0;
    const Request request{0,
                          offset,
                          static_cast<std::byte*>(memory.data()) + tag * kRead,
                          kRead,
                          to_size(std::min<std::uint64_t>(kRead, size - offset)),
                          tag};
    reader->start(std::span(&request, 1));
    ++in_flight;
  };
  const auto begin = Clock::now();
  std::uint64_t done = 0;
  for (std::uint32_t tag = 0; tag < kDepth; ++tag) start(tag);
  while (in_flight > 0) {
    const Completion read = reader->wait();
    --in_flight;
    if (!read.error.empty()) fail(ErrorKind::resource, "cannot read '{}': {}", file.string(), read.error);
    done += std::min<std::uint64_t>(kRead, size);
    if (Clock::now() - begin < kTime) start(read.tag);
  }
  return to_double(done) / seconds_since(begin);
}

}  // namespace sluice::experts
