#include "model_options.h"

#include <fmt/format.h>

#include "sluice/error.h"

namespace sluice::cli {

namespace fs = std::filesystem;

void add_engine_options(CLI::App& command, ModelOptions& options) {
  command.add_option("--backend", options.engine.backend, "auto, cpu, cuda or reference")
      ->capture_default_str();
  command.add_option("--threads", options.engine.threads, "CPU threads; 0: one a core")
      ->capture_default_str();
  command.add_option("--prefill-chunk", options.engine.prefill_chunk, "Prompt tokens a pass")
      ->capture_default_str();
  command.add_option("--kv-bits", options.kv, "Cache type: f32 or bf16")->capture_default_str();
  command.add_flag("--exact", options.exact, "F32 arithmetic throughout (what the CPU does today)");
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
  if (kv != "f32" && kv != "bf16")
    throw Error(ErrorKind::input, fmt::format("--kv-bits is '{}', allowed is f32 or bf16", kv));
  if (exact && kv != "f32") throw Error(ErrorKind::input, "--exact keeps caches in F32; leave --kv-bits out");
  engine.cache = kv == "bf16" ? CacheType::bf16 : CacheType::f32;
}

std::shared_ptr<Engine> ModelOptions::load() {
  resolve();
  return Engine::load(find_model(model), engine);
}

std::shared_ptr<Engine> ModelOptions::random(const std::string& geometry, int bits) {
  resolve();
  return Engine::random(geometry, bits, engine);
}

}  // namespace sluice::cli
