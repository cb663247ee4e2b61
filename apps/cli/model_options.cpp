#include "model_options.h"

#include <fmt/core.h>

#include <cstdlib>

#include "progress.h"
#include "sluice/error.h"

namespace sluice::cli {

namespace fs = std::filesystem;

void add_engine_options(Command& command, ModelOptions& options) {
  command.option("--backend", options.engine.backend, "auto, cpu, cuda or reference");
  command.option("--threads", options.engine.threads, "CPU threads; 0: one a core");
  command.option("--isa", options.engine.isa, kIsaMeaning);
  command.option("--prefill-chunk", options.engine.prefill_chunk,
                 "Prompt tokens a pass; 0: what suits the backend");
  command.option("--kv-bits", options.kv, kCacheMeaning);
  command.size("--memory", options.engine.memory,
               "Bytes of RAM to use at most, e.g. 6GB: experts beyond that stay on disk; default: no limit");
  command.size("--vram", options.engine.vram,
               "Bytes of GPU memory to use at most: experts beyond that stay in RAM; default: no limit");
  command.option("--miss", options.engine.miss,
                 "Experts that are not in GPU memory: bus copies them there, cpu computes them in RAM (other "
                 "rounding), auto shares them between both");
  command.option("--expert-slots", options.engine.expert_slots,
                 "Experts a layer to keep in RAM, whatever --memory says; 0: what it allows");
  command.option("--expert-policy", options.engine.expert_policy,
                 "Which experts leave: lru, lfru, or static:FILE with what --experts-profile wrote");
  command.flag("--exact", options.engine.exact,
               "F32 arithmetic throughout, slower; caches as --kv-bits says");
}

double zipf_exponent(const std::string& routing) {
  constexpr std::string_view kZipf = "zipf:";
  if (routing.empty()) return 0;
  if (routing.starts_with(kZipf)) {
    char* end = nullptr;
    const double exponent = std::strtod(routing.c_str() + kZipf.size(), &end);
    if (exponent > 0 && *end == '\0') return exponent;
  }
  throw Error(ErrorKind::input,
              fmt::format("--routing is '{}', allowed is zipf: and a number above 0", routing));
}

fs::path find_model(const std::string& model) {
  if (fs::is_directory(model)) return model;
  if (model.find('/') != std::string::npos) return model;  // a path that is not there: the loader says so
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  // Installed beside the binary's prefix, or in the source tree above a build folder.
  for (fs::path folder = binary.parent_path(); !folder.empty() && folder != folder.root_path();
       folder = folder.parent_path())
    for (const fs::path& place : {folder / "share/sluice/models" / model, folder / "models" / model})
      if (fs::is_directory(place)) return place;
  throw Error(ErrorKind::input, fmt::format("'{}' is neither a model folder nor a bundled model", model));
}

void ModelOptions::resolve() {
  parse_cache(kv, engine);
}

void parse_cache(const std::string& text, EngineOptions& options) {
  const auto bits = [&](const std::string& one) {
    if (one == "bf16") return 16;
    if (one.size() == 1 && std::string("234568").find(one) != std::string::npos) return one[0] - '0';
    throw Error(
        ErrorKind::input,
        fmt::format("--kv-bits is '{}', allowed is auto, f32, bf16, or 2, 3, 4, 5, 6, 8 or bf16 for keys "
                    "and values, as in 4 or 8,bf16",
                    text));
  };
  options.cache = CacheType::automatic;
  options.key_bits = options.value_bits = 16;
  if (text == "auto") return;
  if (text == "f32") {
    options.cache = CacheType::f32;
    return;
  }
  const auto comma = text.find(',');
  options.key_bits = bits(text.substr(0, comma));
  options.value_bits = comma == std::string::npos ? options.key_bits : bits(text.substr(comma + 1));
  if (options.key_bits == 16 && options.value_bits == 16) options.cache = CacheType::bf16;
}

std::shared_ptr<Engine> ModelOptions::load() {
  resolve();
  Progress progress("copying weights");
  EngineOptions options = engine;
  options.progress = [&](std::uint64_t done, std::uint64_t all) { progress.update(done, all); };
  return Engine::load(find_model(model), options);
}

std::shared_ptr<Engine> ModelOptions::random(const std::string& geometry, int bits) {
  resolve();
  return Engine::random(geometry, bits, engine, zipf_exponent(routing));
}

}  // namespace sluice::cli
