#include "engine/upload.h"

#include <map>

#include "engine/parts.h"

namespace sluice::engine {

namespace {

constexpr std::size_t kAlignment = 256;

std::size_t bytes_of(const ops::ConstView& view) {
  return static_cast<std::size_t>(view.elements()) * size_bytes(view.dtype);
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

  // Puts matrices of one format and width behind one another, so that `joined` is all of them: rows below
  // rows, or a matrix more on a stack. Does nothing where the formats differ.
  void join(std::initializer_list<const ops::Weight*> parts, ops::Weight& joined) {
    const ops::Weight& first = **parts.begin();
    std::int64_t rows = 0;  // of the first dimension of `joined`
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

// A shared expert of the experts' own shape goes behind the last of them.
void join_shared_expert(layers::Moe& moe, Layout& layout) {
  const layers::Mlp& shared = moe.shared_expert;
  const ops::Weight* stacks[] = {&moe.gate_proj.stack, &moe.up_proj.stack, &moe.down_proj.stack};
  const ops::Weight* parts[] = {&shared.gate_proj, &shared.up_proj, &shared.down_proj};
  for (int i = 0; i < 3; ++i) {
    if (!stacks[i]->present() || !parts[i]->present() || !same_format(*stacks[i], *parts[i])) return;
    if (stacks[i]->values.dim(1) != parts[i]->values.dim(0)) return;
  }
  layout.join({stacks[0], parts[0]}, moe.all_gate_proj.stack);
  layout.join({stacks[1], parts[1]}, moe.all_up_proj.stack);
  layout.join({stacks[2], parts[2]}, moe.all_down_proj.stack);
}

// Products that read the same input become one: fewer, larger launches.
void join_products(layers::Decoder& decoder, Layout& layout) {
  for (layers::DecoderLayer& layer : decoder.layers) {
    if (auto* net = std::get_if<layers::GatedDeltaNet>(&layer.mixer))
      layout.join({&net->in_proj_qkv, &net->in_proj_z, &net->in_proj_b, &net->in_proj_a}, net->in_proj);
    if (auto* attention = std::get_if<layers::Attention>(&layer.mixer))
      layout.join({&attention->q_proj, &attention->k_proj, &attention->v_proj}, attention->qkv_proj);
    auto* moe = std::get_if<layers::Moe>(&layer.mlp);
    if (moe == nullptr) continue;
    if (moe->shared_expert_gate.present())
      layout.join({&moe->router.gate, &moe->shared_expert_gate}, moe->gates);
    join_shared_expert(*moe, layout);
  }
}

// Rows of choices whose last column names the shared expert, for the layers that joined it.
ops::Buffer place_choices(layers::Decoder& decoder, ops::Backend& backend, std::int64_t tokens) {
  ops::Buffer buffer;
  for (layers::DecoderLayer& layer : decoder.layers) {
    auto* moe = std::get_if<layers::Moe>(&layer.mlp);
    if (moe == nullptr || !moe->all_gate_proj.present()) continue;
    const std::int64_t slots = moe->router.top_k + 1;
    if (buffer.data() == nullptr) {
      const std::vector<std::int32_t> shared(static_cast<std::size_t>(tokens * slots),
                                             static_cast<std::int32_t>(moe->router.gate.shape()[0]));
      buffer = backend.allocate(shared.size() * sizeof(std::int32_t));
      backend.upload(buffer.data(), shared.data(), shared.size() * sizeof(std::int32_t));
    }
    moe->choices = {buffer.data(), ops::DType::i32, {tokens, slots}};
  }
  return buffer;
}

}  // namespace

PlacedModel upload(models::Model& model, ops::Backend& backend, std::int64_t tokens,
                   const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  Layout layout;
  join_products(model.decoder, layout);
  for_each_part(model.decoder, [&](std::string_view, auto& part, double) { layout.place(part); });
  if (model.decoder.rotary != nullptr) {
    model.decoder.rotary->placed = model.decoder.rotary->view();
    layout.place(model.decoder.rotary->placed);
  }
  PlacedModel placed{backend.allocate(layout.bytes()), {}};
  layout.copy(backend, static_cast<std::byte*>(placed.weights.data()), progress);
  placed.choices = place_choices(model.decoder, backend, tokens);
  backend.synchronize();
  return placed;
}

}  // namespace sluice::engine
