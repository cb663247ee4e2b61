#include "options/model.h"

#include <fmt/core.h>

#include <cstdlib>

#include "options/model_folders.h"
#include "options/nodes.h"
#include "sluice/error.h"
#include "sluice/find_model.h"
#include "terminal/progress.h"

namespace sluice::cli::options {

namespace fs = std::filesystem;

namespace {

constexpr int kMostThreads = 1024;
constexpr const char* kAnyPolicy = "expected lru, lfru, or static:FILE";

// Converts an exception of a library function to an option's error.
template <class F>
std::optional<std::string> complaint_of(F&& read) {
  try {
    read();
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

std::optional<std::string> check_policy(const std::string& text) {
  constexpr std::string_view kStatic = "static:";
  const bool file = text.starts_with(kStatic) && text.size() > kStatic.size();
  return text == "lru" || text == "lfru" || file ? std::nullopt : std::optional<std::string>(kAnyPolicy);
}

}  // namespace

void add_model(Command& command, std::string& value) {
  command.option("-m,--model", value, kModelMeaning);
}

void add_threads(Command& command, int& value) {
  command.option("--threads", value, "CPU threads; 0: one per core", {0, kMostThreads});
}

void add_isa(Command& command, std::string& value) {
  command.choice("--isa", value, {"sse4", "avx2", "avxvnni", "avx512", "amx", "neon", "dotprod", "i8mm"},
                 "Use a lower instruction set than the CPU's best");
}

void add_backend(Command& command, std::string& value) {
  command.choice("--backend", value, {"auto", "cpu", "cuda", "reference"}, "Backend to compute with");
}

void add_cache(Command& command, std::string& value) {
  command.checked("--kv-bits", value,
                  "Format of the KV cache: bits (2, 3, 4, 5, 6, 8 or bf16) for both, e.g. 4, or for keys and "
                  "values each, e.g. 8,bf16; f32; or auto (F32 on CPUs, BF16 on GPUs)",
                  check_cache);
}

std::optional<std::string> check_cache(const std::string& text) {
  EngineOptions ignored;
  return complaint_of([&] { parse_cache(text, ignored); });
}

void add_routing(Command& command, std::string& value) {
  command.checked(
      "--routing", value,
      "Skew of the random routers: zipf:1.0 makes them prefer some experts, with shares by Zipf's law",
      [](const std::string& text) { return complaint_of([&] { zipf_exponent(text); }); });
}

void add_engine(Command& command, Model& options) {
  EngineOptions& engine = options.engine;
  command.group("Computing and memory");
  add_backend(command, engine.backend);
  add_threads(command, engine.threads);
  add_isa(command, engine.isa);
  command.option("--prefill-chunk", engine.prefill_chunk, "Prompt tokens per pass; 0: the backend's default",
                 {0, 1 << 20});
  add_cache(command, options.kv);
  command.size("--memory", engine.memory,
               "Maximum RAM to use, e.g. 6GB; experts that do not fit stay on disk; default: no limit");
  command.size("--vram", engine.vram,
               "Maximum GPU memory to use; experts that do not fit stay in RAM; default: no limit");
  command.choice("--miss", engine.miss, {"bus", "cpu", "auto"},
                 "What happens to experts that are not in GPU memory: bus copies them there, cpu computes "
                 "them on the CPU (rounds differently), auto splits them between both");
  command.option("--expert-slots", engine.expert_slots,
                 "Experts per layer to keep in memory (on a GPU in its own), regardless of --memory and "
                 "--vram; 0: as many as those allow",
                 {0, 1 << 30});
  command.checked("--expert-policy", engine.expert_policy,
                  "Which experts to evict: lru, lfru, or static:FILE, which keeps those that were needed "
                  "most by a FILE that --experts-profile wrote",
                  check_policy);
  command.checked("--nodes", options.nodes,
                  "Split the model across machines (start with 'mpirun -n 2 sluice ...'): auto, or layers "
                  "per machine as in 12,20,8; experts, or experts per machine as in experts:64,192; "
                  "groups:2,2 splits layers between groups and experts within each",
                  [](const std::string& text) {
                    return text.empty() ? std::optional<std::string>("expected auto, or layers as in 12,20,8")
                                        : std::nullopt;
                  });
  command.flag("--exact", engine.exact, "Compute in F32 throughout (slower); the KV cache follows --kv-bits");
}

double zipf_exponent(const std::string& routing) {
  constexpr std::string_view kZipf = "zipf:";
  if (routing.empty()) return 0;
  if (routing.starts_with(kZipf)) {
    char* end = nullptr;
    const double exponent = std::strtod(routing.c_str() + kZipf.size(), &end);
    if (exponent > 0 && *end == '\0') return exponent;
  }
  throw Error(ErrorKind::input, "expected zipf: and a number above 0");
}

bool Model::bundled() const {
  std::error_code error;
  return !fs::is_directory(model, error) && folder().parent_path() == bundled_models();
}

fs::path Model::folder() const {
  return find_model(model, model_folders());
}

void Model::resolve() {
  parse_cache(kv, engine);
}

void parse_cache(const std::string& text, EngineOptions& options) {
  const auto bits = [&](const std::string& one) {
    if (one == "bf16") return 16;
    if (one.size() == 1 && std::string("234568").find(one) != std::string::npos) return one[0] - '0';
    throw Error(
        ErrorKind::input,
        "expected auto, f32, bf16, or 2, 3, 4, 5, 6, 8 or bf16 for keys and values, as in 4 or 8,bf16");
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

std::shared_ptr<Engine> Model::load() {
  const auto load_own = [this](std::shared_ptr<engine::LayerShare> share) {
    resolve();
    terminal::Progress progress("loading");
    EngineOptions options = engine;
    options.progress = [&](std::uint64_t done, std::uint64_t all) { progress.update(done, all); };
    options.share = std::move(share);
    return Engine::load(folder(), options);
  };
  if (!nodes.empty()) return load_with_nodes(nodes, load_own);
  say_if_copies_work_alone();
  return load_own(nullptr);
}

void Model::follow_if_asked() {
  if (!nodes.empty() && follows_by_mpirun()) load();
}

std::shared_ptr<Engine> Model::random(const std::string& geometry, int bits) {
  resolve();
  if (!nodes.empty())
    throw Error(ErrorKind::unsupported,
                "several nodes can only share a model in files; write one with 'sluice random'");
  return Engine::random(geometry, bits, engine, zipf_exponent(routing));
}

}  // namespace sluice::cli::options
