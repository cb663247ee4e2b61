#include "state/state_pool.h"

#include <algorithm>

#include "base/error.h"
#include "base/integer_cast.h"
#include "quant/rotation_signs.h"

namespace sluice::state {

namespace {

constexpr auto kSigns = quant::rotation_signs();

void expect_room(std::size_t bytes, std::span<const std::byte> to) {
  if (bytes != to.size()) fail(ErrorKind::internal, "{} bytes are saved in memory of {}", bytes, to.size());
}

std::size_t table_bytes(const Extent& extent) {
  if (!extent.paged()) return 0;
  return to_size(extent.slots * extent.pages_per_slot()) * sizeof(std::int32_t);
}

}  // namespace

std::size_t StatePool::bytes(const std::vector<LayerStateShape>& shapes, const Extent& extent,
                             const CacheFormat& format) {
  return bytes_of(shapes, extent, format) + (format.packed() ? kSigns.size() : 0) + table_bytes(extent);
}

StatePool::StatePool(ops::Backend& backend, const std::vector<LayerStateShape>& shapes, const Extent& extent,
                     const CacheFormat& format, std::unique_ptr<PoolReplica> replica)
    : backend_(backend),
      extent_(extent),
      layers_(plan(shapes, extent, format)),
      pages_(extent.pages),
      taken_(to_size(extent.slots)) {
  void* signs = nullptr;
  if (format.packed()) {
    signs = buffers_.emplace_back(backend.allocate(kSigns.size())).data();
    backend.upload(signs, kSigns.data(), kSigns.size());
  }
  for (LayerState& layer : layers_) {
    for_each_tensor(layer, [&](ops::View& tensor, Layout) {
      tensor.data = buffers_.emplace_back(backend.allocate(bytes_of(tensor))).data();
    });
    std::visit(
        [&](auto& kind) {
          if constexpr (requires { kind.signs; }) kind.signs.data = signs;
        },
        layer);
  }
  if (extent.paged()) {
    table_memory_ = buffers_.emplace_back(backend.allocate(table_bytes(extent))).data();
    page_table_ = {table_memory_, ops::DType::i32, {extent.slots, extent.pages_per_slot()}};
  }
  for (std::int64_t slot = 0; slot < extent.slots; ++slot) {
    if (extent.paged()) put_table(slot);
    reset(slot);
  }
  for (std::int64_t place = extent.snapshots; place > 0; --place)
    free_snapshots_.push_back(to_int(place - 1));
  replica_ = std::move(replica);  // new slots are empty there, too
}

// Entries of pages that are not there are -1.
void StatePool::put_table(std::int64_t slot) {
  std::vector<std::int32_t> row = pages_of(slot);
  row.resize(to_size(extent_.pages_per_slot()), -1);
  const std::size_t bytes = row.size() * sizeof(std::int32_t);
  backend_.upload(static_cast<std::byte*>(table_memory_) + to_size(slot) * bytes, row.data(), bytes);
}

void StatePool::drop_pages(std::int64_t slot, std::size_t kept) {
  std::vector<std::int32_t>& pages = pages_of(slot);
  if (pages.size() <= kept) return;
  for (std::size_t i = kept; i < pages.size(); ++i) pages_.release(pages[i]);
  pages.resize(kept);
  put_table(slot);
}

void StatePool::copy_page(std::int32_t from, std::int32_t to) {
  for (const LayerState& layer : layers_)
    for_each_tensor(layer, [&](const ops::View& tensor, Layout layout) {
      if (layout != Layout::whole) backend_.copy(tensor[to].data, tensor[from].data, bytes_of(tensor[to]));
    });
}

std::int64_t StatePool::missing_pages(std::int64_t slot, std::int64_t past, std::int64_t added) const {
  if (!extent_.paged()) return 0;
  const std::vector<std::int32_t>& pages = taken_[slot];
  std::int64_t missing = 0;
  for (std::int64_t i = past / kPageRows; i < pages_for(past + added); ++i)
    missing += writable(pages, to_size(i)) ? 0 : 1;
  return missing;
}

void StatePool::make_writable(std::int64_t slot, std::int64_t past, std::int64_t added) {
  const std::int64_t missing = missing_pages(slot, past, added);
  if (missing == 0) return;
  pages_.expect(missing);
  std::vector<std::int32_t>& pages = pages_of(slot);
  const std::size_t end = pages_for(past + added);
  for (std::size_t i = past / kPageRows; i < end; ++i) {
    if (writable(pages, i)) continue;
    const std::int32_t page = pages_.take();
    if (i == pages.size()) {
      pages.push_back(page);
      continue;
    }
    copy_page(pages[i], page);
    pages_.release(pages[i]);
    pages[i] = page;
  }
  put_table(slot);
}

void StatePool::hold(std::int32_t page) {
  pages_.share(page);
  if (replica_) replica_->hold(page);
}

void StatePool::drop(std::int32_t page) {
  pages_.release(page);
  if (replica_) replica_->drop(page);
}

void StatePool::release(std::int64_t slot) {
  drop_pages(slot, 0);
  if (replica_) replica_->release(slot);
}

void StatePool::adopt(std::int64_t slot, std::span<const std::int32_t> pages) {
  share_pages(slot, pages);
  if (replica_) replica_->adopt(slot, pages);
}

void StatePool::share_pages(std::int64_t slot, std::span<const std::int32_t> pages) {
  if (!extent_.paged()) fail(ErrorKind::internal, "rows are shared only where caches lie in pages");
  for (const std::int32_t page : pages) pages_.share(page);
  drop_pages(slot, 0);
  pages_of(slot).assign(pages.begin(), pages.end());
  put_table(slot);
}

void StatePool::fork(std::int64_t from, std::int64_t to, std::int64_t rows) {
  if (!extent_.paged()) fail(ErrorKind::internal, "slots share rows only where caches lie in pages");
  share_pages(to, std::span(pages_of(from)).first(to_size(pages_for(rows))));
  for (const LayerState& layer : layers_)
    for_each_tensor(layer, [&](const ops::View& tensor, Layout layout) {
      if (layout == Layout::whole) backend_.copy(tensor[to].data, tensor[from].data, bytes_of(tensor[to]));
    });
  if (replica_) replica_->fork(from, to, rows);
}

void StatePool::reset(std::int64_t slot) {
  drop_pages(slot, 0);
  for (const LayerState& layer : layers_)
    for_each_tensor(layer, [&](const ops::View& tensor, Layout layout) {
      if (layout == Layout::whole) backend_.clear(tensor[slot].data, bytes_of(tensor[slot]));
    });
  if (replica_) replica_->reset(slot);
}

// f(block, count) for the first `rows` rows of a slot: block `block` of a cache's tensor begins with `count`
// of them.
template <class F>
void StatePool::for_each_run(std::int64_t slot, std::int64_t rows, F&& f) const {
  if (!extent_.paged()) return f(slot, rows);
  const std::vector<std::int32_t>& pages = taken_[slot];
  for (std::int64_t row = 0; row < rows; row += kPageRows)
    f(pages[row / kPageRows], std::min(kPageRows, rows - row));
}

// Calls f(data, bytes) for every block of memory that a save holds, in a fixed order.
template <class F>
void StatePool::for_each_saved(std::int64_t slot, std::int64_t rows, bool with_caches, F&& f) const {
  if (rows < 0 || rows > capacity())
    fail(ErrorKind::internal, "{} rows of a state with capacity {}", rows, capacity());
  const auto add = [&](const ops::View& part) { f(part.data, bytes_of(part)); };
  for (const LayerState& layer : layers_)
    for_each_tensor(layer, [&](const ops::View& tensor, Layout layout) {
      if (layout == Layout::whole) return add(tensor[slot]);
      if (!with_caches) return;
      const std::int64_t heads = layout == Layout::head_rows ? tensor.dim(1) : 1;
      for (std::int64_t head = 0; head < heads; ++head)
        for_each_run(slot, rows, [&](std::int64_t block, std::int64_t count) {
          add((layout == Layout::head_rows ? tensor[block][head] : tensor[block]).rows(0, count));
        });
    });
}

// Counts rows as they would lie in one piece: a slot without pages has none to walk over.
std::size_t StatePool::own_bytes(std::int64_t rows, bool with_caches) const {
  std::size_t total = 0;
  for (const LayerState& layer : layers_)
    for_each_tensor(layer, [&](const ops::View& tensor, Layout layout) {
      const std::int64_t blocks = tensor.dim(0);
      if (layout == Layout::whole) total += bytes_of(tensor) / to_size(blocks);
      if (layout == Layout::whole || !with_caches) return;
      const std::int64_t all = blocks * (extent_.paged() ? kPageRows : capacity());
      total += all == 0 ? 0 : bytes_of(tensor) / to_size(all) * to_size(rows);
    });
  return total;
}

// Calls f(data, bytes) for the rows of a block that begins at a row of page or slot `at`, in a fixed order.
template <class F>
void StatePool::for_each_in_block(std::int64_t at, std::int64_t first, F&& f) const {
  for (const LayerState& layer : layers_)
    for_each_tensor(layer, [&](const ops::View& tensor, Layout layout) {
      if (layout == Layout::whole) return;
      const std::int64_t heads = layout == Layout::head_rows ? tensor.dim(1) : 1;
      for (std::int64_t head = 0; head < heads; ++head) {
        const ops::View part =
            (layout == Layout::head_rows ? tensor[at][head] : tensor[at]).rows(first, kBlockRows);
        f(part.data, bytes_of(part));
      }
    });
}

template <class F>
void StatePool::for_each_in_blocks(std::int64_t slot, std::int64_t begin, std::int64_t end, F&& f) const {
  if (begin < 0 || begin > end || end > capacity() || begin % kBlockRows != 0 || end % kBlockRows != 0)
    fail(ErrorKind::internal, "rows {} to {} are not whole blocks of a state with capacity {}", begin, end,
         capacity());
  const std::vector<std::int32_t>& pages = taken_[to_size(slot)];
  for (std::int64_t row = begin; row < end; row += kBlockRows) {
    if (extent_.paged())
      for_each_in_block(pages[to_size(row / kPageRows)], row % kPageRows, f);
    else
      for_each_in_block(slot, row, f);
  }
}

void StatePool::gather(const Parts& parts, std::span<std::byte> to) {
  std::size_t bytes = 0;
  for (const ops::MemoryPart& part : parts) bytes += part.bytes;
  expect_room(bytes, to);
  backend_.gather(to.data(), parts);
}

void StatePool::save_page_block(std::int32_t page, std::int64_t block, std::span<std::byte> to) {
  expect_room(block_bytes(), to);
  Parts parts;
  for_each_in_block(page, block * kBlockRows, [&](void* data, std::size_t bytes) {
    parts.push_back({data, bytes});
  });
  gather(parts, to.first(own_block_bytes()));
  if (replica_) replica_->save_page_block(page, block, to.subspan(own_block_bytes()));
}

void StatePool::wait() {
  backend_.synchronize();
  if (replica_) replica_->wait();
}

std::int32_t StatePool::take_snapshot() {
  if (free_snapshots_.empty()) return -1;
  const std::int32_t place = free_snapshots_.back();
  free_snapshots_.pop_back();
  return place;
}

void StatePool::release_snapshot(std::int32_t place) {
  free_snapshots_.push_back(place);
}

// Calls f(tensor) for every tensor of recurrent states, of slots and then of snapshots.
template <class F>
void StatePool::for_each_state(F&& f) const {
  for (const LayerState& layer : layers_)
    for_each_tensor(layer, [&](const ops::View& tensor, Layout layout) {
      if (layout == Layout::whole) f(tensor);
    });
}

void StatePool::copy_to_snapshot(std::int64_t slot, std::int32_t place) {
  for_each_state([&](const ops::View& tensor) {
    backend_.copy(tensor[slots() + place].data, tensor[slot].data, bytes_of(tensor[slot]));
  });
  if (replica_) replica_->copy_to_snapshot(slot, place);
}

void StatePool::copy_from_snapshot(std::int64_t slot, std::int32_t place) {
  for_each_state([&](const ops::View& tensor) {
    backend_.copy(tensor[slot].data, tensor[slots() + place].data, bytes_of(tensor[slot]));
  });
  if (replica_) replica_->copy_from_snapshot(slot, place);
}

void StatePool::save_snapshot(std::int32_t place, std::span<std::byte> to) {
  expect_room(saved_bytes(0, false), to);
  Parts parts;
  for_each_state([&](const ops::View& tensor) {
    const ops::View state = tensor[slots() + place];
    parts.push_back({state.data, bytes_of(state)});
  });
  const std::size_t own = own_bytes(0, false);
  gather(parts, to.first(own));
  if (replica_) replica_->save_snapshot(place, to.subspan(own));
}

StatePool::Parts StatePool::parts_of_blocks(std::int64_t slot, std::int64_t begin, std::int64_t end) const {
  Parts parts;
  for_each_in_blocks(slot, begin, end, [&](void* data, std::size_t bytes) {
    parts.push_back({data, bytes});
  });
  return parts;
}

void StatePool::save_blocks(std::int64_t slot, std::int64_t begin, std::int64_t end,
                            std::span<std::byte> to) {
  if (!replica_) return gather(parts_of_blocks(slot, begin, end), to);
  expect_room(block_bytes() * to_size((end - begin) / kBlockRows), to);
  const BlockPart part = own_part();
  std::vector<std::byte> own(part.bytes_in(to.size()));
  gather(parts_of_blocks(slot, begin, end), own);
  part.put(own, to);
  replica_->save_blocks(slot, begin, end, part.size, to);
}

void StatePool::load_blocks(std::int64_t slot, std::int64_t begin, std::int64_t end,
                            std::span<const std::byte> saved) {
  const std::size_t expected = block_bytes() * to_size((end - begin) / kBlockRows);
  if (saved.size() != expected)
    fail(ErrorKind::input, "rows of {} bytes do not fit this model, which needs {}", saved.size(), expected);
  make_writable(slot, begin, end - begin);
  const Parts parts = parts_of_blocks(slot, begin, end);
  if (!replica_) return backend_.scatter(parts, saved.data());
  const BlockPart part = own_part();
  const std::vector<std::byte> own = part.take(saved);
  backend_.scatter(parts, own.data());
  replica_->load_blocks(slot, begin, end, part.size, saved);
  backend_.synchronize();
}

std::size_t StatePool::saved_bytes(std::int64_t rows, bool with_caches) const {
  return own_bytes(rows, with_caches) + (replica_ ? replica_->saved_bytes(rows, with_caches) : 0);
}

StatePool::Parts StatePool::parts_of_slot(std::int64_t slot, std::int64_t rows, bool with_caches) const {
  Parts parts;
  for_each_saved(slot, rows, with_caches, [&](void* data, std::size_t bytes) {
    parts.push_back({data, bytes});
  });
  return parts;
}

std::vector<std::byte> StatePool::save(std::int64_t slot, std::int64_t rows, bool with_caches) {
  std::vector<std::byte> saved(own_bytes(rows, with_caches));
  gather(parts_of_slot(slot, rows, with_caches), saved);
  if (replica_) replica_->save(slot, rows, with_caches, saved);
  return saved;
}

void StatePool::load(std::int64_t slot, std::int64_t rows, bool with_caches,
                     std::span<const std::byte> saved) {
  if (saved.size() != saved_bytes(rows, with_caches))
    fail(ErrorKind::input, "a snapshot of {} bytes does not fit this model, which needs {}", saved.size(),
         saved_bytes(rows, with_caches));
  if (with_caches) make_writable(slot, 0, rows);
  drop_pages(slot, to_size(pages_for(rows)));
  backend_.scatter(parts_of_slot(slot, rows, with_caches), saved.data());
  if (replica_) replica_->load(slot, rows, with_caches, saved.subspan(own_bytes(rows, with_caches)));
  wait();
}

}  // namespace sluice::state
