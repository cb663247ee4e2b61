// Converts Hugging Face checkpoints to the MLX format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

struct ConvertOptions {
  bool quantize = true;
  int bits = 4;            // 2, 3, 4, 5, 6 or 8
  int group_size = 64;     // 32, 64 or 128
  std::string mixed = {};  // one of convert_recipes(), with more bits where they matter; empty: none
  std::string dtype = {};  // bfloat16, float16 or float32; empty: what config.json names, else as stored
  int threads = 0;         // 0: one per core
  uint64_t max_shard_bytes = uint64_t{5} << 30;
};

struct ConvertProgress {
  std::string_view tensor;   // the one being written
  uint64_t parameters_done;  // parameters of the model, however they are stored
  uint64_t parameters;
};

struct ConvertSummary {
  uint64_t tensors = 0;    // written
  uint64_t quantized = 0;  // modules
  uint64_t parameters = 0;
  uint64_t bytes_in = 0;   // of the tensors used
  uint64_t bytes_out = 0;  // of the tensors written
  uint64_t shards = 0;
};

// Writes `out` with the tensors, names and types of mlx-lm's own conversion, bit for bit. `out` must not
// exist or must be empty; it appears complete or not at all. Memory is bounded by the largest module, not by
// the model.
ConvertSummary convert_checkpoint(const std::filesystem::path& in, const std::filesystem::path& out,
                                  const ConvertOptions& options,
                                  const std::function<void(const ConvertProgress&)>& progress = {});

// Writes `out` with the same tensors, but with the experts of each layer packed into one file, in which an
// expert is one aligned run of bytes with a checksum, for streaming them. `in` is any checkpoint that can be
// run. `progress` receives bytes instead of parameters.
void pack_experts(const std::filesystem::path& in, const std::filesystem::path& out,
                  const std::function<void(const ConvertProgress&)>& progress = {});

const std::vector<std::string>& convert_recipes();

}  // namespace sluice
