// A loaded model, shared by its sessions.
//
// Threads: every member of Engine may be called from any number of threads at once. Different sessions of an
// engine may be used from different threads at once, but each session by one thread at a time. One thread of
// the engine computes for all sessions, one call after the other, and no session's results depend on the
// others. Any thread may release the last reference to an engine.
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
  std::string isa = {};            // a lower instruction set than the CPU's best: see ops::BackendOptions
  std::int64_t prefill_chunk = 0;  // prompt tokens per pass; 0: the backend's default
  CacheType cache = CacheType::automatic;
  // Bits of cached keys and values. 2, 3, 4, 5, 6 or 8 stores codes with a norm per row. 16 for both stores
  // unpacked rows as `cache` says; 16 for one of them stores it as BF16. Latent attention has one row for
  // both keys and values, with `key_bits`.
  int key_bits = 16;
  int value_bits = 16;
  // F32 arithmetic throughout. Otherwise a GPU computes with BF16 activations and caches, and a CPU rounds
  // activations that meet packed weights to integers.
  bool exact = false;
  // Limit in bytes for all that the engine keeps in memory; 0: none. If the model is larger, the weights that
  // every token uses stay in memory and experts are read from files when needed, with the same results.
  std::uint64_t memory = 0;
  std::uint64_t vram = 0;  // the same for GPU memory: experts beyond it stay in RAM
  // How experts outside GPU memory are computed: "bus" copies them to the GPU, with the same results; "cpu"
  // computes them on the CPU, which rounds differently; "auto" splits them by measured rates.
  std::string miss = "bus";
  std::int64_t expert_slots = 0;  // experts per layer to keep, regardless of the limits; 0: as many as fit
  std::string expert_policy = "lfru";  // which to evict: lru, lfru or static:FILE
  // Called while weights are copied or generated, with the bytes done and in all.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress = {};
  // This node's part of a model that several nodes hold together: see nodes.h. Null: the whole model.
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
  std::int64_t linear_layers = 0;  // of them with a recurrent state instead of a cache
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t parameters = 0;
  std::int64_t active_parameters = 0;  // used per token
  std::size_t weight_bytes = 0;
  std::size_t bytes_per_token = 0;  // weights read to decode one token
  std::size_t cache_bytes_per_position = 0;
  std::size_t state_bytes = 0;  // recurrent states of a sequence, independent of its length
  std::vector<Part> parts;
  std::vector<std::string> formats;  // "4-bit g64: 98.1%"

  std::size_t bytes_of(PartKind kind) const;
};

// Bytes currently used on the backend. Weights that are used in their mapped files count as none.
struct EngineMemory {
  std::uint64_t sessions = 0;
  std::uint64_t shared = 0;     // workspace that the passes of all sessions share
  std::uint64_t programs = 0;   // recorded steps
  std::uint64_t allocated = 0;  // all of the backend: the above, and weights that were copied to it
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // Maps the checkpoint folder; weights are used in place where possible.
  static std::shared_ptr<Engine> load(const std::filesystem::path& folder, const EngineOptions& options = {});
  // A model with random weights in memory and the given geometry ("qwen3.6-35b-a3b:layers=8,experts=64");
  // `zipf` as in write_random_model.
  static std::shared_ptr<Engine> random(std::string_view geometry, int bits,
                                        const EngineOptions& options = {}, double zipf = 0);
  ~Engine();

  const ModelSummary& summary() const;
  std::string backend_description() const;

  // An empty timeline of up to `capacity` tokens; 0: the model's longest.
  std::unique_ptr<Session> new_session(std::int64_t capacity);
  // Bytes that a session takes on the backend once its context is full: recurrent states from the start,
  // pages of 256 tokens as it grows.
  std::size_t session_bytes(std::int64_t capacity) const;
  // Bytes that all sessions share on the backend while there are any: activations and inputs of passes, for
  // sessions of up to that capacity, logits and the sampler.
  std::size_t shared_bytes(std::int64_t capacity) const;
  // Upper bound for the bytes of recorded steps, in addition to the above.
  std::size_t program_bytes() const;
  // Bytes that the engine uses on its backend.
  EngineMemory memory() const;

  // Text, for checkpoints with a tokenizer.
  bool has_tokenizer() const;
  std::vector<std::int32_t> encode(std::string_view text, bool add_special_tokens = false) const;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = true) const;
  bool has_chat_template() const;
  // Renders a conversation with the chat template. `messages_json` is an array of {"role", "content"}, or an
  // object with "messages" and other variables. `variables_json` may hold "tools" too.
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
