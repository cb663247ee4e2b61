// Packs a checkpoint's experts so that they can be read one at a time.
#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file_writer.h"
#include "base/files/output_folder.h"
#include "checkpoint/checkpoint_binder.h"
#include "checkpoint/config.h"
#include "checkpoint/packed_experts.h"
#include "checkpoint/safetensors_writer.h"
#include "convert/other_files.h"
#include "experts/fingerprint.h"
#include "models/model.h"
#include "sluice/convert.h"

namespace sluice {
namespace convert {
namespace {

namespace fs = std::filesystem;
using checkpoint::TensorEntry;
using checkpoint::TensorFiles;

// The experts of one layer and the checkpoint's tensors that hold them.
struct PackedLayer {
  std::string mlp;  // "model.layers.0.mlp", as stored
  std::vector<experts::Expert> experts;
  std::vector<const TensorEntry*> tensors;
};

class Tensors {
 public:
  explicit Tensors(const TensorFiles& files) {
    for (const TensorEntry* tensor : files.tensors()) by_address_[tensor->data.data()] = tensor;
  }
  const TensorEntry& holding(const void* data) const {
    auto after = by_address_.upper_bound(static_cast<const std::byte*>(data));
    return *(--after)->second;
  }

 private:
  std::map<const std::byte*, const TensorEntry*> by_address_;
};

PackedLayer find_layer(const layers::Moe& moe, const Tensors& tensors) {
  PackedLayer layer;
  for (std::int64_t e = 0; e < moe.router.gate.shape()[0]; ++e) {
    layer.experts.push_back({moe.gate_proj[e], moe.up_proj[e], moe.down_proj[e]});
    experts::for_each_tensor(layer.experts.back(), [&](const ops::ConstView& view) {
      layer.tensors.push_back(&tensors.holding(view.data));
    });
  }
  const std::string& name = layer.tensors.front()->name;
  for (const char* part : {".switch_mlp.", ".experts.", ".packed_experts."})
    if (const auto at = name.find(part); at != std::string::npos) layer.mlp = name.substr(0, at);
  return layer;
}

class PackedWriter {
 public:
  PackedWriter(const fs::path& folder, std::size_t files, std::uint64_t total,
               const std::function<void(const ConvertProgress&)>& progress)
      : folder_(folder), files_(files), total_(total), progress_(progress) {}

  void write_dense(const std::vector<const TensorEntry*>& tensors) {
    std::vector<checkpoint::TensorInfo> infos(tensors.size());
    std::transform(tensors.begin(), tensors.end(), infos.begin(), [](const TensorEntry* t) { return *t; });
    checkpoint::SafetensorsWriter writer(next_file(), infos);
    for (const TensorEntry* tensor : tensors) {
      writer.write(tensor->name, tensor->data);
      wrote(tensor->name, tensor->data);
    }
    writer.finish();
  }

  void write_layer(const PackedLayer& layer) {
    const experts::Expert& first = layer.experts[0];
    const checkpoint::RecordLayout layout({first.gate_proj, first.up_proj, first.down_proj});
    const auto count = std::ssize(layer.experts);
    const std::string records = layer.mlp + std::string(checkpoint::kPackedRecords);
    const std::string fingerprints = layer.mlp + std::string(checkpoint::kPackedFingerprints);
    checkpoint::SafetensorsWriter writer(
        next_file(),
        {{records, checkpoint::FileDType::u8, {count, static_cast<std::int64_t>(layout.bytes())}},
         {fingerprints, checkpoint::FileDType::u64, {count}}},
        {{"format", "mlx"}, {std::string(checkpoint::kPackedFormat), layout.metadata()}},
        checkpoint::kRecordAlignment);
    std::vector<std::byte> record(layout.bytes());
    std::vector<std::uint64_t> prints;
    for (const experts::Expert& expert : layer.experts) {
      const auto places = layout.in(record.data());
      const experts::Expert packed{places[0], places[1], places[2]};
      std::vector<ops::ConstView> targets;
      experts::for_each_tensor(packed, [&](const ops::ConstView& tensor) { targets.push_back(tensor); });
      std::size_t i = 0;
      experts::for_each_tensor(expert, [&](const ops::ConstView& tensor) {
        const auto from = experts::bytes_of(tensor);
        std::memcpy(const_cast<void*>(targets[i++].data), from.data(), from.size());
        wrote(records, from);
      });
      prints.push_back(experts::fingerprint(packed));
      writer.write(records, record);
    }
    writer.write(fingerprints, std::as_bytes(std::span(prints)));
    writer.finish();
  }

 private:
  fs::path next_file() {
    return folder_ / fmt::format("model-{:05}-of-{:05}.safetensors", ++written_, files_);
  }
  void wrote(std::string_view tensor, std::span<const std::byte> bytes) {
    files::release_pages(bytes);
    done_ += bytes.size();
    if (progress_) progress_({tensor, done_, total_});
  }

  fs::path folder_;
  std::size_t files_;
  std::uint64_t total_;
  const std::function<void(const ConvertProgress&)>& progress_;
  std::size_t written_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace
}  // namespace convert

void pack_experts(const std::filesystem::path& in, const std::filesystem::path& out,
                  const std::function<void(const ConvertProgress&)>& progress) {
  using namespace convert;
  const checkpoint::Config config(in);
  const checkpoint::QuantizationPlan plan(config.root(), config.where());
  checkpoint::WeightStore store(std::make_unique<TensorFiles>(in));
  checkpoint::CheckpointBinder binder(store, plan);
  const models::Model model = models::build(config, binder);
  const Tensors tensors(store.files());
  std::vector<PackedLayer> layers;
  for (const layers::DecoderLayer& layer : model.decoder.layers)
    if (const auto* moe = std::get_if<layers::Moe>(&layer.mlp)) layers.push_back(find_layer(*moe, tensors));
  if (layers.empty()) fail(ErrorKind::input, "'{}' has no experts to pack", in.string());
  std::set<const TensorEntry*> packed;
  for (const PackedLayer& layer : layers) packed.insert(layer.tensors.begin(), layer.tensors.end());
  std::vector<const TensorEntry*> dense;
  for (const TensorEntry* tensor : store.files().tensors())
    if (!packed.contains(tensor) && !tensor->name.ends_with(checkpoint::kPackedFingerprints))
      dense.push_back(tensor);

  files::OutputFolder folder(out);
  const std::uint64_t total = store.files().total_bytes();
  folder.require_space(total + total / 16);
  PackedWriter writer(folder.path(), layers.size() + 1, total, progress);
  writer.write_dense(dense);
  for (const PackedLayer& layer : layers) writer.write_layer(layer);
  files::FileWriter config_file(folder.path() / "config.json");
  config_file.write(config.root().dump(4));
  config_file.commit();
  copy_text_files(in, folder.path());
  folder.commit();
}

}  // namespace sluice
