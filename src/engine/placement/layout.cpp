#include "engine/placement/layout.h"

#include "base/integer_cast.h"

namespace sluice::engine::placement {

namespace {

constexpr std::size_t kAlignment = 256;

}  // namespace

std::size_t bytes_of(const ops::ConstView& view) {
  return to_size(view.elements()) * size_bytes(view.dtype);
}

bool same_format(const ops::Weight& a, const ops::Weight& b) {
  const auto alike = [](const ops::ConstView& x, const ops::ConstView& y) {
    return x.present() == y.present() &&
           (!x.present() || (x.dtype == y.dtype && x.shape.back() == y.shape.back()));
  };
  return a.mode == b.mode && a.bits == b.bits && a.group_size == b.group_size && alike(a.values, b.values) &&
         alike(a.scales, b.scales) && alike(a.biases, b.biases) && a.values.contiguous() &&
         b.values.contiguous();
}

void Layout::place(ops::ConstView& view) {
  if (!view.present()) return;
  const auto [known, added] = places_.try_emplace(view.data, bytes_);
  if (added) append(view);
  patches_.push_back({&view, known->second});
  align();
}

void Layout::place(ops::Weight& weight) {
  for (ops::ConstView* view : {&weight.values, &weight.scales, &weight.biases}) place(*view);
}

void Layout::place(ops::ExpertWeights& experts) {
  if (experts.separate.empty()) return place(experts.stack);
  experts.stack = experts.separate[0];
  for (ops::ConstView ops::Weight::*part :
       {&ops::Weight::values, &ops::Weight::scales, &ops::Weight::biases}) {
    ops::ConstView& stacked = experts.stack.*part;
    if (!stacked.present()) continue;
    patches_.push_back({&stacked, bytes_});
    for (const ops::Weight& expert : experts.separate) append(expert.*part);
    align();
    ops::Shape shape{std::ssize(experts.separate)};
    for (const std::int64_t dim : stacked.shape.dims()) shape.push_back(dim);
    stacked = {stacked.data, stacked.dtype, shape};
  }
  experts.separate = {};
}

void Layout::join(std::initializer_list<const ops::Weight*> parts, ops::Weight& joined) {
  const ops::Weight& first = **parts.begin();
  std::int64_t rows = 0;  // in the first dimension of `joined`
  for (const ops::Weight* part : parts) {
    if (!part->present() || !same_format(*part, first)) return;
    const bool one_more = part->values.rank() < first.values.rank();
    rows += one_more ? 1 : part->values.dim(0);
  }
  joined = first;
  for (ops::ConstView ops::Weight::*member :
       {&ops::Weight::values, &ops::Weight::scales, &ops::Weight::biases}) {
    ops::ConstView& whole = joined.*member;
    if (!whole.present()) continue;
    patches_.push_back({&whole, bytes_});
    for (const ops::Weight* part : parts) {
      places_.emplace((part->*member).data, bytes_);
      append(part->*member);
    }
    align();
    whole.shape[0] = rows;
  }
}

void Layout::copy(std::byte* block,
                  const std::function<void(void* to, const void* from, std::size_t bytes)>& put,
                  const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  for (const Copy& copy : copies_) {
    put(block + copy.at, copy.from, copy.bytes);
    if (progress) progress(copy.at + copy.bytes, bytes_);
  }
  for (const Patch& patch : patches_) patch.view->data = block + patch.at;
}

void Layout::append(const ops::ConstView& view) {
  copies_.push_back({view.data, bytes_of(view), bytes_});
  bytes_ += bytes_of(view);
}

void Layout::align() {
  bytes_ = (bytes_ + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace sluice::engine::placement
