#include "scheduler/prefix/host_memory.h"

#include <algorithm>
#include <condition_variable>
#include <new>
#include <optional>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::scheduler::prefix {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} << 20;
constexpr std::size_t kUnit = 4096;  // alignment of ranges

std::size_t whole_units(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kUnit - 1) / kUnit) * kUnit;
}

// Bytes, and the owner that keeps them alive.
SavedState hold(std::shared_ptr<const void> owner, std::span<const std::byte> bytes) {
  struct Held {
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
  };
  const auto held = std::make_shared<const Held>(Held{std::move(owner), bytes});
  return {held, &held->bytes};
}

}  // namespace

SavedState part_of(const SavedState& whole, std::size_t begin, std::size_t bytes) {
  return hold(whole, whole->subspan(begin, bytes));
}

struct HostMemory::Pieces {
  // One allocation and its free ranges, by their start.
  struct Piece {
    explicit Piece(ops::Buffer memory) : buffer(std::move(memory)), free{{0, buffer.bytes()}} {}

    std::byte* take(std::size_t bytes) {
      const auto range =
          std::find_if(free.begin(), free.end(), [&](const auto& one) { return one.second >= bytes; });
      if (range == free.end()) return nullptr;
      const auto [begin, size] = *range;
      free.erase(range);
      if (size > bytes) free.emplace(begin + bytes, size - bytes);
      return static_cast<std::byte*>(buffer.data()) + begin;
    }
    bool holds(const std::byte* data) const {
      const auto* const begin = static_cast<const std::byte*>(buffer.data());
      return data >= begin && data < begin + buffer.bytes();
    }
    void give_back(const std::byte* data, std::size_t bytes) {
      const auto begin = to_size(data - static_cast<const std::byte*>(buffer.data()));
      auto range = free.emplace(begin, bytes).first;
      const auto join = [this](auto first, auto second) {
        if (first->first + first->second != second->first) return first;
        first->second += second->second;
        free.erase(second);
        return first;
      };
      if (const auto next = std::next(range); next != free.end()) range = join(range, next);
      if (range != free.begin()) join(std::prev(range), range);
    }
    bool unused() const { return free.size() == 1 && free.begin()->second == buffer.bytes(); }

    ops::Buffer buffer;
    std::map<std::size_t, std::size_t> free;
  };

  std::byte* find(std::size_t bytes) {
    for (Piece& piece : pieces)
      if (std::byte* const data = piece.take(bytes)) return data;
    return nullptr;
  }
  std::size_t piece_bytes() const { return std::min(kPieceBytes, whole_units(options.kept)); }

  std::byte* take(std::size_t bytes) {
    std::unique_lock lock(mutex);
    std::byte* data = find(bytes);
    if (data == nullptr && preparing && bytes <= piece_bytes()) {  // sooner than another allocation
      changed.wait(lock, [this] { return !preparing; });
      data = find(bytes);
    }
    if (data == nullptr) {
      const std::size_t size = std::max(bytes, piece_bytes());
      try {
        pieces.emplace_back(allocate(size));
      } catch (const Error&) {
        throw std::bad_alloc();
      }
      all += size;
      data = pieces.back().take(bytes);
    }
    changed.notify_all();
    return data;
  }
  void give_back(const std::byte* data, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    const auto piece =
        std::find_if(pieces.begin(), pieces.end(), [&](const Piece& one) { return one.holds(data); });
    piece->give_back(data, bytes);
    if (all <= options.kept || !piece->unused()) return;
    all -= piece->buffer.bytes();
    pieces.erase(piece);
  }

  bool wants_more() const {
    std::size_t spare = 0;
    for (const Piece& piece : pieces)
      if (piece.unused()) spare += piece.buffer.bytes();
    return spare < options.ahead && all + piece_bytes() <= options.kept;
  }
  // Runs on the thread that allocates ahead, until it is stopped or memory runs out.
  void prepare() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return stopping || wants_more(); });
      if (stopping) return;
      preparing = true;
      lock.unlock();
      std::optional<ops::Buffer> made;
      try {
        made.emplace(allocate(piece_bytes()));
      } catch (const std::exception&) {
        // Whoever needs memory gets the error when asking for it.
      }
      lock.lock();
      preparing = false;
      if (made) {
        all += made->bytes();
        pieces.emplace_back(std::move(*made));
      }
      changed.notify_all();
      if (!made) return;
    }
  }

  Allocate allocate;
  Options options;
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  std::vector<Piece> pieces;
  std::size_t all = 0;
  bool preparing = false, stopping = false;
};

HostMemory::HostMemory(Allocate allocate, const Options& options) : pieces_(std::make_shared<Pieces>()) {
  pieces_->allocate = std::move(allocate);
  pieces_->options = options;
  if (options.ahead > 0) prepares_ = std::thread([pieces = pieces_.get()] { pieces->prepare(); });
}

HostMemory::~HostMemory() {
  if (!prepares_.joinable()) return;
  {
    const std::lock_guard lock(pieces_->mutex);
    pieces_->stopping = true;
  }
  pieces_->changed.notify_all();
  prepares_.join();
}

SavedState HostMemory::make(std::size_t bytes, FunctionRef<void(std::span<std::byte> to)> fill) {
  const std::size_t taken = whole_units(bytes);
  std::byte* const data = pieces_->take(taken);
  const std::shared_ptr<const std::byte> memory(
      data, [pieces = pieces_, taken](const std::byte* begin) { pieces->give_back(begin, taken); });
  fill({data, bytes});
  return hold(memory, {data, bytes});
}

std::size_t HostMemory::bytes() const {
  const std::lock_guard lock(pieces_->mutex);
  return pieces_->all;
}

}  // namespace sluice::scheduler::prefix
