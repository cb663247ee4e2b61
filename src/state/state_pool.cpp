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

// The first page that a sequence needs to write rows after `past`; rows before may never have been written,
// as in benchmarks.
std::int64_t first_page(const std::vector<std::int32_t>& pages, std::int64_t past) {
  return std::min<std::int64_t>(past / kPageRows, std::ssize(pages));
}

std::size_t row_bytes(const Extent& extent) {
  return to_size(extent.pages_per_slot()) * sizeof(std::int32_t);
}

}  // namespace

std::size_t StatePool::bytes(const std::vector<LayerStateShape>& shapes, const Extent& extent,
                             const CacheFormat& format) {
  const std::size_t signs = format.packed() ? kSigns.size() : 0;
  if (extent.growing) return signs;
  const StateBytes sizes = bytes_of(shapes, format);
  return signs + sizes.page * to_size(extent.all_pages()) +
         sizes.slot * to_size(extent.slots + extent.snapshots) + row_bytes(extent) * to_size(extent.slots);
}

std::size_t StatePool::slot_bytes(const std::vector<LayerStateShape>& shapes, const Extent& extent,
                                  const CacheFormat& format, std::int64_t capacity) {
  const StateBytes sizes = bytes_of(shapes, format);
  return sizes.slot + row_bytes(extent) + sizes.page * to_size(pages_for(capacity));
}

std::size_t StatePool::table_row_bytes() const {
  return row_bytes(extent_);
}

std::size_t StatePool::bytes() const {
  std::size_t sum = 0;
  for (const ops::Buffer& buffer : buffers_) sum += buffer.bytes();
  for (const std::vector<Growing>* kind : {&page_memory_, &slot_memory_})
    for (const Growing& tensor : *kind) sum += tensor.memory->bytes();
  return sum;
}

std::size_t StatePool::bytes(std::int64_t slot) const {
  return sizes_.slot + table_row_bytes() + sizes_.page * taken_[to_size(slot)].size();
}

std::int64_t StatePool::promised_pages() const {
  std::int64_t pages = 0;
  for (const std::int64_t capacity : promised_) pages += pages_for(capacity);
  return pages;
}

// Free memory between used parts stays committed until it is needed again.
std::size_t StatePool::promised_bytes() const {
  if (!extent_.growing) return bytes();
  return sizes_.page * to_size(std::max(promised_pages(), pages_with_memory_)) +
         (sizes_.slot + table_row_bytes()) * to_size(std::max(open_slots(), slots_with_memory_));
}

void* StatePool::allocate(std::vector<Growing>& kind, std::size_t each, std::int64_t count) {
  const std::size_t bytes = each * to_size(count);
  if (!extent_.growing) return buffers_.emplace_back(backend_.allocate(bytes)).data();
  return kind.emplace_back(Growing{backend_.reserve(bytes), each}).memory->data();
}

void StatePool::resize(std::vector<Growing>& kind, std::int64_t count) {
  for (Growing& tensor : kind) tensor.memory->resize(tensor.each * to_size(count));
}

StatePool::StatePool(ops::Backend& backend, const std::vector<LayerStateShape>& shapes, const Extent& extent,
                     const CacheFormat& format, std::unique_ptr<PoolReplica> replica)
    : backend_(backend),
      extent_(extent),
      layers_(plan(shapes, extent, format)),
      sizes_(bytes_of(shapes, format)),
      promised_(to_size(extent.growing ? extent.slots : 0)),
      pages_(extent.all_pages()),
      taken_(to_size(extent.slots)) {
  void* signs = nullptr;
  if (format.packed()) {
    signs = buffers_.emplace_back(backend.allocate(kSigns.size())).data();
    backend.upload(signs, kSigns.data(), kSigns.size());
  }
  for (LayerState& layer : layers_) {
    for_each_tensor(layer, [&](ops::View& tensor, Layout layout) {
      const std::int64_t count = tensor.dim(0);
      const std::size_t each = count == 0 ? 0 : bytes_of(tensor) / to_size(count);
      tensor.data = allocate(layout == Layout::whole ? slot_memory_ : page_memory_, each, count);
    });
    std::visit(
        [&](auto& kind) {
          if constexpr (requires { kind.signs; }) kind.signs.data = signs;
        },
        layer);
  }
  table_memory_ = allocate(slot_memory_, table_row_bytes(), extent.slots);
  page_table_ = {table_memory_, ops::DType::i32, {extent.slots, extent.pages_per_slot()}};
  for (std::int64_t slot = 0; !extent.growing && slot < extent.slots; ++slot) {
    put_table(slot);
    reset(slot);
  }
  for (std::int64_t place = extent.snapshots; place > 0; --place)
    free_snapshots_.push_back(to_int(place - 1));
  replica_ = std::move(replica);  // new slots are empty there, too
}

// Calls f(tensor) for every tensor of recurrent states, first of slots, then of snapshots.
template <class F>
void StatePool::for_each_state(F&& f) const {
  for (const LayerState& layer : layers_)
    for_each_tensor(layer, [&](const ops::View& tensor, Layout layout) {
      if (layout == Layout::whole) f(tensor);
    });
}

void StatePool::promise(std::int64_t slot, std::int64_t capacity) {
  if (promised_pages() + pages_for(capacity) > pages_.pages())
    fail(ErrorKind::resource, "a context of {} tokens does not fit beside the existing ones", capacity);
  promised_[to_size(slot)] = capacity;
}

std::int64_t StatePool::open_slots() const {
  return std::ssize(promised_) - std::count(promised_.begin(), promised_.end(), 0);
}

void StatePool::open(std::int64_t slot, std::int64_t capacity) {
  if (!extent_.growing) return reset(slot);
  if (replica_) replica_->open(slot, capacity);
  if (slot >= slots_with_memory_) {
    resize(slot_memory_, slot + 1);
    slots_with_memory_ = slot + 1;
  }
  put_table(slot);
  clear_states(slot);
}

void StatePool::release(std::int64_t slot) {
  drop_pages(slot, 0);
  if (replica_) replica_->release(slot);
  if (!extent_.growing) return;
  promised_[to_size(slot)] = 0;
  backend_.synchronize();
  while (slots_with_memory_ > 0 && promised_[to_size(slots_with_memory_ - 1)] == 0) --slots_with_memory_;
  resize(slot_memory_, slots_with_memory_);
  pages_with_memory_ = std::min(pages_with_memory_, pages_.end());
  resize(page_memory_, pages_with_memory_);
}

// Entries without a page are -1.
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
  const std::vector<std::int32_t>& pages = taken_[slot];
  std::int64_t missing = 0;
  for (std::int64_t i = first_page(pages, past); i < pages_for(past + added); ++i)
    missing += writable(pages, to_size(i)) ? 0 : 1;
  return missing;
}

void StatePool::make_writable(std::int64_t slot, std::int64_t past, std::int64_t added) {
  const std::int64_t missing = missing_pages(slot, past, added);
  if (missing == 0) return;
  pages_.expect(missing);
  if (const std::int64_t end = pages_.end_with(missing); end > pages_with_memory_) {
    resize(page_memory_, end);
    pages_with_memory_ = end;
  }
  std::vector<std::int32_t>& pages = pages_of(slot);
  const std::size_t end = pages_for(past + added);
  for (std::size_t i = to_size(first_page(pages, past)); i < end; ++i) {
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

void StatePool::adopt(std::int64_t slot, std::span<const std::int32_t> pages) {
  share_pages(slot, pages);
  if (replica_) replica_->adopt(slot, pages);
}

void StatePool::share_pages(std::int64_t slot, std::span<const std::int32_t> pages) {
  for (const std::int32_t page : pages) pages_.share(page);
  drop_pages(slot, 0);
  pages_of(slot).assign(pages.begin(), pages.end());
  put_table(slot);
}

void StatePool::fork(std::int64_t from, std::int64_t to, std::int64_t rows) {
  share_pages(to, std::span(pages_of(from)).first(to_size(pages_for(rows))));
  for_each_state([&](const ops::View& tensor) {
    backend_.copy(tensor[to].data, tensor[from].data, bytes_of(tensor[to]));
  });
  if (replica_) replica_->fork(from, to, rows);
}

void StatePool::clear_states(std::int64_t slot) {
  for_each_state([&](const ops::View& tensor) { backend_.clear(tensor[slot].data, bytes_of(tensor[slot])); });
}

void StatePool::reset(std::int64_t slot) {
  drop_pages(slot, 0);
  clear_states(slot);
  if (replica_) replica_->reset(slot);
}

// Calls f(block, count) for the first `rows` rows of a slot: block `block` of a cache's tensor begins with
// `count` of them.
template <class F>
void StatePool::for_each_run(std::int64_t slot, std::int64_t rows, F&& f) const {
  const std::vector<std::int32_t>& pages = taken_[slot];
  for (std::int64_t row = 0; row < rows; row += kPageRows)
    f(pages[row / kPageRows], std::min(kPageRows, rows - row));
}

// Calls f(data, bytes) for every piece of memory in a save, in a fixed order.
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

std::size_t StatePool::own_bytes(std::int64_t rows, bool with_caches) const {
  return sizes_.slot + (with_caches ? sizes_.page / to_size(kPageRows) * to_size(rows) : 0);
}

// Calls f(data, bytes) for the rows of a block that begins at row `first` of page `at`, in a fixed order.
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
  for (std::int64_t row = begin; row < end; row += kBlockRows)
    for_each_in_block(pages[to_size(row / kPageRows)], row % kPageRows, f);
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
