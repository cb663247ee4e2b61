// A loaded model, shared by its sessions.
//
// Threads: every member of Engine may be called from any threads at once. Sessions of one engine may be used
// from any threads at once, each session by one thread at a time; one thread of the engine computes for all
// of them, call after call, and no session's results depend on the others. The last owner of an engine may be
// any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

class Engine;
class Session;
namespace engine {
struct Core;
class LayerShare;
Core& core(Engine& engine);
const Core& core(const Engine& engine);
}  // namespace engine

enum class CacheType { automatic, f32, bf16 };

struct EngineOptions {
  std::string backend = "auto";    // auto, reference, cpu or cuda
  int threads = 0;                 // 0: one per core
  std::string isa = {};            // of a CPU, lower than its best: see ops::BackendOptions
  std::int64_t prefill_chunk = 0;  // prompt tokens per pass; 0: what suits the backend
  CacheType cache = CacheType::automatic;
  // Bits of cached keys and values: 2, 3, 4, 5, 6 or 8 pack them as codes with a norm per row; 16 on both
  // sides leaves them as `cache` says, on one side BF16. Latent attention keeps one row for both, in the
  // keys' bits.
  int key_bits = 16;
  int value_bits = 16;
  // F32 arithmetic throughout. Otherwise a GPU computes with BF16 activations and caches, and a CPU rounds
  // activations that meet packed weights to integers.
  bool exact = false;
  // Bytes for everything the engine keeps in memory; 0: no limit. A model that is larger keeps what every
  // token uses and reads experts from its files as they are needed, with the same results.
  std::uint64_t memory = 0;
  std::uint64_t vram = 0;  // the same for a GPU's memory: experts beyond it stay in RAM
  // How those come to be computed: "bus" copies them to the GPU, with the same results; "cpu" has the CPU
  // compute them, whose rounding differs; "auto" shares them between both by their measured rates.
  std::string miss = "bus";
  std::int64_t expert_slots = 0;       // experts per layer to keep, whatever `memory` says; 0: what it allows
  std::string expert_policy = "lfru";  // which of them go: lru, lfru or static:FILE
  // Hears of the bytes copied to a device or into memory, or made up at random, done and in all.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress = {};
  // Of a model that several nodes hold together: see nodes.h. Nothing: all of it is held here.
  std::shared_ptr<engine::LayerShare> share = {};
};

enum class PartKind {
  embedding,
  norms,
  attention,
  latent_attention,
  delta_net,
  feed_forward,
  router,
  experts,
  shared_expert,
  output_head
};
std::string_view name(PartKind kind);  // "shared expert"

struct ModelSummary {
  struct Part {
    PartKind kind = PartKind::embedding;
    std::int64_t parameters = 0;
    std::size_t bytes = 0;
  };
  std::string architecture;
  std::int64_t layers = 0;
  std::int64_t linear_layers = 0;  // of them with a recurrent state in place of a cache
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t parameters = 0;
  std::int64_t active_parameters = 0;  // that one token uses
  std::size_t weight_bytes = 0;
  std::size_t bytes_per_token = 0;  // weights read to decode one token
  std::size_t cache_bytes_per_position = 0;
  std::size_t state_bytes = 0;  // of a sequence whatever its length
  std::vector<Part> parts;
  std::vector<std::string> formats;  // "4-bit g64: 98.1%"

  std::size_t bytes_of(PartKind kind) const;
};

// Bytes on the backend, now. Weights that are used where their files are mapped take none.
struct EngineMemory {
  std::uint64_t sessions = 0;
  std::uint64_t shared = 0;     // by the passes of all sessions
  std::uint64_t programs = 0;   // recorded steps
  std::uint64_t allocated = 0;  // by the backend, for these and for weights that were copied to it
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // Maps the checkpoint folder; weights are used where they lie.
  static std::shared_ptr<Engine> load(const std::filesystem::path& folder, const EngineOptions& options = {});
  // A model of that geometry ("qwen3.6-35b-a3b:layers=8,experts=64") with random weights in memory; `zipf` as
  // in write_random_model.
  static std::shared_ptr<Engine> random(std::string_view geometry, int bits,
                                        const EngineOptions& options = {}, double zipf = 0);
  ~Engine();

  const ModelSummary& summary() const;
  std::string backend_description() const;

  // An empty timeline of up to `capacity` tokens; 0: the model's longest.
  std::unique_ptr<Session> new_session(std::int64_t capacity);
  // What a session takes on the backend once its context is full, known before it is made: recurrent states
  // from the start, pages of 256 tokens as it grows.
  std::size_t session_bytes(std::int64_t capacity) const;
  // What all sessions share on the backend while there are any: activations and inputs of passes, for
  // sessions of up to that capacity, logits and the sampler.
  std::size_t shared_bytes(std::int64_t capacity) const;
  // What their recorded steps take at most, beside that.
  std::size_t program_bytes() const;
  // What the engine has taken on its backend.
  EngineMemory memory() const;

  // Text, where the checkpoint has a tokenizer.
  bool has_tokenizer() const;
  std::vector<std::int32_t> encode(std::string_view text, bool add_special_tokens = false) const;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = true) const;
  bool has_chat_template() const;
  // The prompt of a conversation: an array of {"role", "content"}, or an object that holds it as "messages"
  // beside further variables. The variables may hold "tools", too.
  std::string render_chat(std::string_view messages_json, bool add_generation_prompt = true,
                          std::string_view variables_json = "{}") const;
  // Tokens that end an answer.
  const std::vector<std::int32_t>& stop_ids() const;

 private:
  friend engine::Core& engine::core(Engine& engine);
  friend const engine::Core& engine::core(const Engine& engine);
  explicit Engine(std::unique_ptr<engine::Core> core);
  std::unique_ptr<engine::Core> core_;
};

}  // namespace sluice
