#include "backend/cuda/runtime/transfer.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "backend/cuda/runtime/context.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda {

namespace {

constexpr std::size_t kPiece = std::size_t{8} << 20;
constexpr int kBuffers = 2;  // a lane fills one while the other is being copied
constexpr int kMaxLanes = 8;

}  // namespace

// One thread's pinned buffers.
struct Transfer::Lane {
  void* buffer[kBuffers] = {};
  cudaEvent_t sent[kBuffers] = {};
  int next = 0;

  Lane() {
    for (int i = 0; i < kBuffers; ++i) {
      check(cudaMallocHost(&buffer[i], kPiece), "allocating pinned memory");
      check(cudaEventCreateWithFlags(&sent[i], cudaEventDisableTiming), "making an event");
    }
  }
  ~Lane() {
    for (int i = 0; i < kBuffers; ++i) {
      if (sent[i] != nullptr) cudaEventDestroy(sent[i]);
      if (buffer[i] != nullptr) cudaFreeHost(buffer[i]);
    }
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void send(cudaStream_t stream, std::byte* to, const std::byte* from, std::size_t bytes) {
    const int i = next;
    next = (next + 1) % kBuffers;
    check(cudaEventSynchronize(sent[i]), "copying to the device");
    std::memcpy(buffer[i], from, bytes);
    check(cudaMemcpyAsync(to, buffer[i], bytes, cudaMemcpyHostToDevice, stream), "copying to the device");
    check(cudaEventRecord(sent[i], stream), "copying to the device");
  }
};

Transfer::Transfer() = default;
Transfer::~Transfer() = default;

void Transfer::start() {
  const int cores = std::max(1, to_int(std::thread::hardware_concurrency()));
  pool_ = std::make_unique<ThreadPool>(std::min(cores, kMaxLanes));
  for (int i = 0; i < pool_->size(); ++i) lanes_.push_back(std::make_unique<Lane>());
}

void Transfer::through_lanes(cudaStream_t stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  if (pool_ == nullptr) start();
  const std::int64_t pieces = (bytes + kPiece - 1) / kPiece;
  pool_->parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t at = to_size(i) * kPiece;
      lanes_[worker]->send(stream, to + at, from + at, std::min(kPiece, bytes - at));
    }
  });
}

void Transfer::upload(cudaStream_t stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes > kPiece)
    return through_lanes(stream, static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  // The runtime stages small pageable copies itself and returns when `from` may change.
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copying to the device");
}

}  // namespace sluice::backend::cuda
