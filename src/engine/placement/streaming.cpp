#include "engine/placement/streaming.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/integer_cast.h"
#include "checkpoint/packed_experts.h"
#include "engine/placement/layout.h"
#include "engine/placement/parts.h"
#include "engine/placement/upload.h"
#include "experts/profile.h"

namespace sluice::engine::placement {

namespace {

constexpr std::size_t kStagedRead = std::size_t{1} << 20;
constexpr std::size_t kStagedReads = 8;

// Copies from mapped files without reading through the mapping, whose pages would stay in memory.
class FileCopy {
 public:
  FileCopy(const std::vector<experts::SourceFile>& files, experts::Reader& reader)
      : files_(files), reader_(reader), staging_(experts::reserve_memory(kStagedRead * kStagedReads)) {}

  bool holds(const void* data) const { return find(data) != files_.size(); }

  void operator()(void* to, const void* from, std::size_t bytes) {
    const std::size_t file = find(from);
    const auto begin =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(from) - files_[file].bytes.data());
    for (std::size_t done = 0; done < bytes;) {
      const std::uint64_t offset = (begin + done) / experts::kAlignment * experts::kAlignment;
      const std::size_t skip = begin + done - offset;
      const std::size_t count = std::min(bytes - done, kStagedRead * kStagedReads - skip);
      fill(file, offset, skip + count);
      std::memcpy(static_cast<std::byte*>(to) + done, memory() + skip, count);
      done += count;
    }
  }

 private:
  std::size_t find(const void* data) const {
    const auto* at = static_cast<const std::byte*>(data);
    const auto found = std::find_if(files_.begin(), files_.end(), [&](const experts::SourceFile& file) {
      return !std::less<>()(at, file.bytes.data()) &&
             std::less<>()(at, file.bytes.data() + file.bytes.size());
    });
    return to_size(found - files_.begin());
  }
  std::byte* memory() const { return static_cast<std::byte*>(staging_.data()); }

  void fill(std::size_t file, std::uint64_t offset, std::size_t needed) {
    std::vector<experts::Request> requests;
    for (std::size_t at = 0; at < needed; at += kStagedRead)
      requests.push_back({static_cast<int>(file), offset + at, memory() + at, kStagedRead,
                          std::min(kStagedRead, needed - at), 0});
    reader_.start(requests);
    std::string error;
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (experts::Completion read = reader_.wait(); !read.error.empty()) error = read.error;
    if (!error.empty()) fail(ErrorKind::resource, "cannot read '{}': {}", files_[file].path.string(), error);
  }

  const std::vector<experts::SourceFile>& files_;
  experts::Reader& reader_;
  ops::Buffer staging_;
};

// Places a tensor unless it is in memory already.
struct PlaceMapped {
  Layout& layout;
  const FileCopy& files;
  void operator()(ops::ConstView& view) const {
    if (view.present() && files.holds(view.data)) layout.place(view);
  }
  void operator()(ops::Weight& weight) const {
    for (ops::ConstView* view : {&weight.values, &weight.scales, &weight.biases}) (*this)(*view);
  }
  void operator()(ops::ExpertWeights&) const {}  // streamed
};

std::vector<experts::SourceFile> sources_of(const checkpoint::TensorFiles& files) {
  std::vector<experts::SourceFile> sources;
  for (const checkpoint::SafetensorsFile& file : files.files())
    sources.push_back({file.path(), file.image()});
  return sources;
}

std::unique_ptr<experts::Reader> open_reader(const std::vector<experts::SourceFile>& sources) {
  experts::OpenFiles open;
  for (const experts::SourceFile& file : sources)
    open.push_back(experts::open_for_reading(file.path, file.bytes.size()));
  return experts::make_reader(std::move(open));
}

// The fingerprints of a layer's experts in a packed file; empty if there are none. A node may hold a part of
// the experts in the file.
std::span<const std::byte> fingerprints(const layers::Moe& moe, const checkpoint::TensorFiles& files) {
  const auto* first = static_cast<const std::byte*>(moe.gate_proj[0].values.data);
  for (const checkpoint::TensorEntry* tensor : files.tensors()) {
    const std::less<> before;
    if (!tensor->name.ends_with(checkpoint::kPackedRecords) || before(first, tensor->data.data()) ||
        !before(first, tensor->data.data() + tensor->data.size()))
      continue;
    const std::string mlp = tensor->name.substr(0, tensor->name.size() - checkpoint::kPackedRecords.size());
    return files.get(mlp + std::string(checkpoint::kPackedFingerprints))
        .data.subspan(to_size(moe.first_expert) * sizeof(std::uint64_t));
  }
  return {};
}

std::vector<layers::Moe*> moe_layers(layers::Decoder& decoder) {
  std::vector<layers::Moe*> found;
  for (layers::DecoderLayer& layer : decoder.layers)
    if (auto* moe = std::get_if<layers::Moe>(&layer.mlp)) found.push_back(moe);
  return found;
}

// For random weights: each tensor of stacked experts is one source.
std::vector<experts::SourceFile> memory_sources(layers::Decoder& decoder) {
  std::vector<experts::SourceFile> sources;
  for (const layers::Moe* moe : moe_layers(decoder)) {
    const experts::Expert stacks{moe->gate_proj.stack, moe->up_proj.stack, moe->down_proj.stack};
    experts::for_each_tensor(stacks, [&](const ops::ConstView& tensor) {
      sources.push_back({"random weights", experts::bytes_of(tensor)});
    });
  }
  return sources;
}

}  // namespace

std::int64_t least_slots(const layers::Decoder& decoder) {
  std::int64_t least = 0;
  for (const layers::DecoderLayer& layer : decoder.layers)
    if (const auto* moe = std::get_if<layers::Moe>(&layer.mlp))
      least = std::max(least, moe->router.top_k + 1);
  return least;
}

ops::Buffer copy_dense(models::Model& model, const checkpoint::TensorFiles& files,
                       const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const std::vector<experts::SourceFile> sources = sources_of(files);
  const auto reader = open_reader(sources);
  FileCopy copy(sources, *reader);
  Layout layout;
  for_each_part(model.decoder, [&](PartKind, auto& part, double) { PlaceMapped{layout, copy}(part); });
  ops::Buffer block = experts::reserve_memory(std::max<std::size_t>(layout.bytes(), 1));
  layout.copy(
      static_cast<std::byte*>(block.data()),
      [&](void* to, const void* from, std::size_t bytes) { copy(to, from, bytes); }, progress);
  // Releases the pages that binding read through the mapping.
  for (const checkpoint::SafetensorsFile& file : files.files()) files::release_pages(file.image());
  return block;
}

std::unique_ptr<experts::Cache> make_cache(models::Model& model, const checkpoint::WeightStore& store,
                                           const EngineOptions& options,
                                           const std::function<ops::Buffer(std::size_t)>& pinned) {
  std::vector<experts::LayerSource> layers;
  for (std::size_t i = 0; i < model.decoder.layers.size(); ++i) {
    const auto* moe = std::get_if<layers::Moe>(&model.decoder.layers[i].mlp);
    if (moe == nullptr) continue;
    layers.push_back({static_cast<std::int64_t>(i), moe->gate_proj, moe->up_proj, moe->down_proj,
                      store.has_files() ? fingerprints(*moe, store.files()) : std::span<const std::byte>(),
                      moe->first_expert});
  }
  std::vector<experts::SourceFile> sources =
      store.has_files() ? sources_of(store.files()) : memory_sources(model.decoder);
  std::unique_ptr<experts::Reader> reader;
  if (store.has_files()) {
    reader = open_reader(sources);
  } else {
    std::vector<std::span<const std::byte>> memory;
    memory.reserve(sources.size());
    for (const experts::SourceFile& source : sources) memory.push_back(source.bytes);
    reader = experts::make_memory_reader(std::move(memory));
  }
  experts::Cache::Options cache_options;
  const experts::PolicyMaker policies(options.expert_policy);
  cache_options.policy = [&](int layer) { return policies(layer, layers[to_size(layer)].experts()); };
  if (pinned) {
    cache_options.memory = pinned;
    cache_options.whole = false;
  }
  auto cache = std::make_unique<experts::Cache>(experts::Store(std::move(sources), layers), std::move(reader),
                                                std::move(cache_options));
  int number = 0;
  if (!pinned)
    for (layers::Moe* moe : moe_layers(model.decoder))
      moe->experts = layers::moe::StreamedExperts{cache.get(), number++, {}};
  return cache;
}

void set_foresight(layers::Decoder& decoder) {
  for (std::size_t i = 0; i + 1 < decoder.layers.size(); ++i) {
    auto* moe = std::get_if<layers::Moe>(&decoder.layers[i].mlp);
    const layers::DecoderLayer& next = decoder.layers[i + 1];
    const auto* chooser = std::get_if<layers::Moe>(&next.mlp);
    if (moe == nullptr || chooser == nullptr) continue;
    std::visit(
        [&](auto& experts) {
          if constexpr (requires { experts.foresight; })
            experts.foresight = {next.post_attention_layernorm, chooser->router};
        },
        moe->experts);
  }
}

void make_tier(models::Model& model, ops::Backend& backend, StreamedModel& streamed, const TierSizes& sizes,
               const EngineOptions& options) {
  const std::vector<layers::Moe*> users = moe_layers(model.decoder);
  experts::Cache& cache = *streamed.cache;
  experts::DeviceTier::Options tier;
  tier.slots = sizes.slots;
  tier.tokens = sizes.tokens;
  tier.chosen = users.front()->router.top_k;
  tier.activations = sizes.activations;
  tier.miss = experts::parse_miss(options.miss);
  if (tier.miss != experts::Miss::bus) {
    streamed.cpu = ops::make_host_backend({.threads = options.threads, .exact = options.exact});
    tier.cpu = streamed.cpu.get();
    tier.bus_bytes_per_second = backend.measure_bus_rate();
  }
  const experts::PolicyMaker policies(options.expert_policy);
  tier.policy = [&](int layer) { return policies(layer, cache.store().layer(layer).experts()); };
  for (const layers::Moe* moe : users) {
    const layers::Mlp& shared = moe->shared_expert;
    tier.shared.emplace_back();
    if (moe->gate_proj.separate.empty() && joins_shared_expert(*moe))
      tier.shared.back() = {shared.gate_proj, shared.up_proj, shared.down_proj};
  }
  streamed.tier = std::make_unique<experts::DeviceTier>(backend, cache, std::move(tier));
  int number = 0;
  for (layers::Moe* moe : users) moe->experts = layers::moe::TieredExperts{streamed.tier.get(), number++, {}};
  set_foresight(model.decoder);
}

}  // namespace sluice::engine::placement
