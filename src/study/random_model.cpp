#include "sluice/random_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/files/file_writer.h"
#include "base/files/output_folder.h"
#include "base/integer_cast.h"
#include "checkpoint/random/random_binder.h"
#include "checkpoint/safetensors_writer.h"
#include "engine/core.h"
#include "engine/summary.h"
#include "models/geometry.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;
using checkpoint::random::RandomTensor;

constexpr std::uint64_t kShardBytes = std::uint64_t{5} << 30;

void check_bits(int bits) {
  constexpr int kAllowed[] = {2, 3, 4, 5, 6, 8, 16};
  if (std::find(std::begin(kAllowed), std::end(kAllowed), bits) == std::end(kAllowed))
    fail(ErrorKind::input, "random weights have 2, 3, 4, 5, 6 or 8 bits, or 16 for BF16, not {}", bits);
}

// The names that mlx-lm uses: Qwen3.5 keeps the language model inside a wrapper.
std::string stored_name(const std::string& name, bool wrapped) {
  return wrapped ? "language_model." + name : name;
}

void write_shard(const fs::path& path, std::span<const RandomTensor> tensors, bool wrapped,
                 const std::function<void(std::uint64_t)>& wrote) {
  std::vector<checkpoint::TensorInfo> infos;
  for (const RandomTensor& tensor : tensors) {
    infos.push_back(tensor.info);
    infos.back().name = stored_name(tensor.info.name, wrapped);
  }
  checkpoint::SafetensorsWriter writer(path, infos);
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    bytes.resize(to_size(*size_bytes(tensors[i].info)));
    checkpoint::random::fill_random(tensors[i], bytes);
    writer.write(infos[i].name, bytes);
    wrote(bytes.size());
  }
  writer.finish();
}

Json quantization(const checkpoint::random::RandomBinder& binder, int bits, bool wrapped) {
  Json block{{"group_size", 64}, {"bits", bits}, {"mode", "affine"}};
  for (const std::string& module : binder.eight_bit_modules())
    block[stored_name(module, wrapped)] = {{"group_size", 64}, {"bits", 8}};
  return block;
}

void write_text(const fs::path& path, const std::string& text) {
  files::FileWriter file(path);
  file.write(text);
  file.commit();
}

checkpoint::random::RandomRouting routing_of(const Json& config, int bits, double zipf) {
  if (zipf == 0) return {};
  if (!(zipf > 0 && zipf <= 4) || bits == 16)
    fail(ErrorKind::input,
         "routing by Zipf's law takes an exponent up to 4 and fewer than 16 bits, not {} and {}", zipf, bits);
  const auto text = config.find("text_config");
  return {zipf, (text == config.end() ? config : *text).value("num_experts_per_tok", std::int64_t{0})};
}

}  // namespace

std::shared_ptr<Engine> Engine::random(std::string_view geometry, int bits, const EngineOptions& options,
                                       double zipf) {
  check_bits(bits);
  if (options.share)
    fail(ErrorKind::unsupported,
         "several nodes can only share a model in files; write one with 'sluice random'");
  auto core = std::make_unique<engine::Core>();
  core->start(options);
  const Json config = models::geometry_config(geometry);
  checkpoint::random::RandomBinder binder(bits, &core->store, routing_of(config, bits, zipf));
  core->model = models::build(checkpoint::Config(config, std::string(geometry)), binder);
  {
    ThreadPool pool(std::max(1, to_int(std::thread::hardware_concurrency())));
    binder.fill(pool, options.progress);
  }
  core->summary = engine::summarize(core->model, core->settings.cache);
  core->place_weights();
  return std::shared_ptr<Engine>(new Engine(std::move(core)));
}

std::uint64_t write_random_model(std::string_view geometry, int bits, const fs::path& folder,
                                 const std::function<void(std::uint64_t, std::uint64_t)>& progress,
                                 double zipf) {
  check_bits(bits);
  Json config = models::geometry_config(geometry);
  checkpoint::random::RandomBinder binder(bits, nullptr, routing_of(config, bits, zipf));
  models::build(checkpoint::Config(config, std::string(geometry)), binder);
  const bool wrapped = config.contains("text_config");
  if (bits != 16)
    config["quantization"] = config["quantization_config"] = quantization(binder, bits, wrapped);

  // Divided into shards first, so that each knows its number.
  const std::vector<RandomTensor>& tensors = binder.tensors();
  std::vector<std::size_t> ends;
  std::uint64_t total = 0;
  std::uint64_t in_shard = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t bytes = *size_bytes(tensors[i].info);
    if (in_shard > 0 && in_shard + bytes > kShardBytes) ends.push_back(i), in_shard = 0;
    in_shard += bytes;
    total += bytes;
  }
  ends.push_back(tensors.size());

  files::OutputFolder output(folder);
  output.require_space(total);
  std::uint64_t done = 0;
  Json map = Json::object();
  std::size_t begin = 0;
  for (std::size_t shard = 0; shard < ends.size(); ++shard) {
    const std::string file = ends.size() == 1
                                 ? "model.safetensors"
                                 : fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, ends.size());
    const auto part = std::span(tensors).subspan(begin, ends[shard] - begin);
    write_shard(output.path() / file, part, wrapped, [&](std::uint64_t bytes) {
      done += bytes;
      if (progress) progress(done, total);
    });
    for (const RandomTensor& tensor : part) map[stored_name(tensor.info.name, wrapped)] = file;
    begin = ends[shard];
  }
  if (ends.size() > 1)
    write_text(output.path() / "model.safetensors.index.json",
               Json{{"metadata", {{"total_size", total}}}, {"weight_map", map}}.dump(2));
  write_text(output.path() / "config.json", config.dump(2));
  output.commit();
  return total;
}

}  // namespace sluice
