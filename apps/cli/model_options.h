// The options that commands which load a model share.
#pragma once

#include <memory>

#include "parser.h"
#include "sluice/engine.h"

namespace sluice::cli {

inline constexpr const char* kDefaultModel = "delta-story";

struct ModelOptions {
  std::string model = kDefaultModel;
  EngineOptions engine;
  std::string kv = "auto";
  std::string routing;  // of random weights: "zipf:1.0", or empty

  // One of the models in the box, by name.
  bool bundled() const { return !std::filesystem::is_directory(model); }
  std::shared_ptr<Engine> load();
  std::shared_ptr<Engine> random(const std::string& geometry, int bits);
  // Checks the options and writes them into `engine`; load and random do so themselves.
  void resolve();
};

inline constexpr const char* kCacheMeaning =
    "Bits of cached keys and values: 2, 3, 4, 5, 6, 8 or bf16, as in 4 or 8,bf16; f32; auto (F32 on CPUs, "
    "BF16 on "
    "GPUs)";
inline constexpr const char* kIsaMeaning =
    "An instruction set lower than the CPU's best: sse4, avx2, avxvnni, avx512, amx; on Arm neon, dotprod, "
    "i8mm";
inline constexpr const char* kProfileMeaning =
    "Write how often each expert was needed to this file, for --expert-policy static:FILE";
// Reads what --kv-bits was given.
void parse_cache(const std::string& text, EngineOptions& options);

void add_engine_options(Command& command, ModelOptions& options);
// Of "zipf:1.0"; 0 for nothing.
double zipf_exponent(const std::string& routing);
// The folder of a bundled model, or the path itself.
std::filesystem::path find_model(const std::string& model);

}  // namespace sluice::cli
