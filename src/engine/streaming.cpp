#include "engine/streaming.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "checkpoint/packed_experts.h"
#include "engine/layout.h"
#include "engine/parts.h"

namespace sluice::engine {

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
    return static_cast<std::size_t>(found - files_.begin());
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

ops::Buffer place_dense(layers::Decoder& decoder, FileCopy& copy,
                        const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  Layout layout;
  for_each_part(decoder, [&](std::string_view, auto& part, double) { PlaceMapped{layout, copy}(part); });
  ops::Buffer block = experts::reserve_memory(std::max<std::size_t>(layout.bytes(), 1));
  layout.copy(
      static_cast<std::byte*>(block.data()),
      [&](void* to, const void* from, std::size_t bytes) { copy(to, from, bytes); }, progress);
  return block;
}

// What a packed file says the experts of a layer hash to; empty where nothing does.
std::span<const std::byte> fingerprints(const layers::Moe& moe, const checkpoint::TensorFiles& files) {
  const auto* first = static_cast<const std::byte*>(moe.gate_proj[0].values.data);
  for (const checkpoint::TensorEntry* tensor : files.tensors()) {
    if (!tensor->name.ends_with(checkpoint::kPackedRecords) || tensor->data.data() != first) continue;
    const std::string mlp = tensor->name.substr(0, tensor->name.size() - checkpoint::kPackedRecords.size());
    return files.get(mlp + std::string(checkpoint::kPackedFingerprints)).data;
  }
  return {};
}

}  // namespace

std::int64_t least_slots(const layers::Decoder& decoder) {
  std::int64_t least = 0;
  for (const layers::DecoderLayer& layer : decoder.layers)
    if (const auto* moe = std::get_if<layers::Moe>(&layer.mlp))
      least = std::max(least, moe->router.top_k + 1);
  return least;
}

StreamedModel stream(models::Model& model, const checkpoint::TensorFiles& files,
                     const EngineOptions& options) {
  std::vector<experts::SourceFile> sources;
  experts::OpenFiles open;
  for (const checkpoint::SafetensorsFile& file : files.files()) {
    sources.push_back({file.path(), file.image()});
    open.push_back(experts::open_for_reading(file.path(), file.image().size()));
  }
  auto reader = experts::make_reader(std::move(open));
  StreamedModel streamed;
  {
    FileCopy copy(sources, *reader);
    streamed.dense = place_dense(model.decoder, copy, options.progress);
  }
  std::vector<experts::LayerSource> layers;
  std::vector<layers::StreamedExperts*> users;
  for (std::size_t i = 0; i < model.decoder.layers.size(); ++i) {
    auto* moe = std::get_if<layers::Moe>(&model.decoder.layers[i].mlp);
    if (moe == nullptr) continue;
    moe->streamed.layer = static_cast<int>(layers.size());
    users.push_back(&moe->streamed);
    layers.push_back({static_cast<std::int64_t>(i), moe->gate_proj, moe->up_proj, moe->down_proj,
                      fingerprints(*moe, files)});
  }
  experts::Cache::Options cache_options;
  cache_options.policy = [&](int layer) {
    return experts::make_policy(options.expert_policy, layers[static_cast<std::size_t>(layer)].experts());
  };
  streamed.cache = std::make_unique<experts::Cache>(experts::Store(std::move(sources), layers),
                                                    std::move(reader), std::move(cache_options));
  for (layers::StreamedExperts* user : users) user->cache = streamed.cache.get();
  // What binding read through the mapping goes again.
  for (const checkpoint::SafetensorsFile& file : files.files()) release_pages(file.image());
  return streamed;
}

}  // namespace sluice::engine
