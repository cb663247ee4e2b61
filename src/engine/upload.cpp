#include "engine/upload.h"

#include <map>

#include "engine/parts.h"

namespace sluice::engine {

namespace {

constexpr std::size_t kAlignment = 256;

std::size_t bytes_of(const ops::ConstView& view) {
  return static_cast<std::size_t>(view.elements()) * size_bytes(view.dtype);
}

// Where each tensor goes in the block, found before anything is allocated.
class Layout {
 public:
  void place(ops::ConstView& view) {
    if (!view.present()) return;
    const auto [known, added] = places_.try_emplace(view.data, bytes_);
    if (added) append(view);
    patches_.push_back({&view, known->second});
    align();
  }
  void place(ops::Weight& weight) {
    for (ops::ConstView* view : {&weight.values, &weight.scales, &weight.biases}) place(*view);
  }
  // Experts that lie apart in the checkpoint become one stack.
  void place(ops::ExpertWeights& experts) {
    if (experts.separate.empty()) return place(experts.stack);
    experts.stack = experts.separate[0];
    for (ops::ConstView ops::Weight::*part :
         {&ops::Weight::values, &ops::Weight::scales, &ops::Weight::biases}) {
      ops::ConstView& stacked = experts.stack.*part;
      if (!stacked.present()) continue;
      patches_.push_back({&stacked, bytes_});
      for (const ops::Weight& expert : experts.separate) append(expert.*part);
      align();
      ops::Shape shape{static_cast<std::int64_t>(experts.separate.size())};
      for (const std::int64_t dim : stacked.shape.dims()) shape.push_back(dim);
      stacked = {stacked.data, stacked.dtype, shape};
    }
    experts.separate = {};
  }

  std::size_t bytes() const { return bytes_; }

  void copy(ops::Backend& backend, std::byte* block,
            const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    for (const Copy& copy : copies_) {
      backend.upload(block + copy.at, copy.from, copy.bytes);
      if (progress) progress(copy.at + copy.bytes, bytes_);
    }
    for (const Patch& patch : patches_) patch.view->data = block + patch.at;
  }

 private:
  struct Copy {
    const void* from;
    std::size_t bytes;
    std::size_t at;
  };
  struct Patch {
    ops::ConstView* view;
    std::size_t at;
  };

  void append(const ops::ConstView& view) {
    copies_.push_back({view.data, bytes_of(view), bytes_});
    bytes_ += bytes_of(view);
  }
  void align() { bytes_ = (bytes_ + kAlignment - 1) / kAlignment * kAlignment; }

  std::size_t bytes_ = 0;
  std::vector<Copy> copies_;
  std::vector<Patch> patches_;
  std::map<const void*, std::size_t> places_;  // tied tensors are copied once
};

}  // namespace

ops::Buffer upload(models::Model& model, ops::Backend& backend,
                   const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  Layout layout;
  for_each_part(model.decoder, [&](std::string_view, auto& part, double) { layout.place(part); });
  if (model.decoder.rotary != nullptr) {
    model.decoder.rotary->placed = model.decoder.rotary->view();
    layout.place(model.decoder.rotary->placed);
  }
  ops::Buffer block = backend.allocate(layout.bytes());
  layout.copy(backend, static_cast<std::byte*>(block.data()), progress);
  backend.synchronize();
  return block;
}

}  // namespace sluice::engine
