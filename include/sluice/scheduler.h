// Many requests at once on one engine.
//
// Each turn runs one decode step of all running sequences and then chunks of the prompts in progress, with as
// many tokens as keep the time between two tokens of the others near its target. An answer depends only on
// its own prompt and settings: never on what else runs, on when it arrived, or on what is cached.
//
// Threads: every member may be called from any thread. Callbacks run one at a time on the scheduler's thread
// and must not block; they should pass their data on to another thread. A request occupies no thread.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/engine.h"
#include "sluice/remembered_prompts.h"
#include "sluice/session.h"

namespace sluice {

struct SchedulerOptions {
  std::int64_t parallel = 0;  // sequences that run at once; 0: the backend's default
  std::int64_t context = 0;   // tokens per sequence, prompt and answer; 0: the model's longest, if it fits
  // Size of the KV cache in tokens, for all sequences together; 0: parallel * context. With less, a sequence
  // may be suspended for a while to make room for another one.
  std::int64_t cache_tokens = 0;
  std::size_t queue = 1024;              // requests that may wait
  double token_interval_seconds = 0.05;  // target for the time between two tokens of a running sequence
  // Whether to cache prompts: a prompt that begins like an earlier one continues where the two diverge. Cache
  // rows stay in the memory of `cache_tokens` as long as no sequence needs it, with the most recent recurrent
  // states beside them; what is evicted moves to host memory.
  bool remember_prompts = true;
  // Instead of `cache_tokens`: bytes of the memory that the model computes in, for cache rows and for
  // recurrent states of cached prompts; 0: as many as `cache_tokens` take.
  std::uint64_t cache_vram = 0;
  // Bytes of host memory for cached prompts. If the model computes in host memory and EngineOptions::memory
  // limits it, at most half of what that leaves.
  std::uint64_t cache_memory = std::uint64_t{1} << 30;
  std::int64_t cache_snapshots =
      -1;  // recurrent states that are kept where the model computes; -1: what suits
  // A long prompt's state is saved every this many tokens (a multiple of 64), and also at a prompt's end,
  // where prompts diverge, after a conversation's first message and before its last one.
  std::int64_t state_spacing = 4096;
  // Prompts are also cached in files of this folder, for later processes; empty: no files. Several processes
  // may share a folder. Its files contain what people wrote, so keep it private.
  std::filesystem::path cache_folder = {};
  std::uint64_t cache_folder_bytes = std::uint64_t{16} << 30;  // limit for all files in it
  // Number of keys that share nothing, each with an equal part of `cache_memory` and `cache_folder_bytes`:
  // one key's requests never affect what another one finds cached. 0: all keys share the cache.
  std::int64_t cache_keys = 0;
  // A prompt may continue from an answer as it was generated. Decoding rounds differently than a prompt, so
  // what follows may differ from a cold run. Such tokens are cached in memory only.
  bool reuse_decoded = false;
  // Called on any thread, with one line for each file that cannot be used or written.
  std::function<void(const std::string& line)> log = {};
};

struct Request {
  std::vector<std::int32_t> prompt;
  GenerateOptions options;     // `progress` is not used: see RequestCallbacks
  std::string key = {};        // the client; tokens are shared fairly between clients
  int priority = 0;            // higher ones first
  double timeout_seconds = 0;  // for everything, waiting included; 0: no limit
  // Also return the log-probability of each prompt token, with up to 20 of the most likely tokens in its
  // place; 0: of the token only, -1: nothing. Such a prompt is computed completely, whatever of it is cached,
  // and in passes of its own.
  int prompt_logprobs = -1;
  // Requests with different salts share no cached prefix.
  std::string cache_salt = {};
  // Names requests that will begin alike: what the last of them cached is kept longer.
  std::string cache_key = {};
  // Messages after which a state is to be saved, in addition to the usual places. They are counted from the
  // last message, which is 0; numbers that are too high mean the first message.
  std::vector<std::int64_t> cache_messages = {};
};

// Where the tokens of a prompt came from.
struct PromptReport {
  std::int64_t tokens = 0;
  std::int64_t cached = 0;     // not computed because a prefix was cached; a multiple of 64
  std::int64_t from_host = 0;  // of them, copied back from host memory
  std::int64_t from_disk = 0;  // of them, read from files
  std::int64_t decoded = 0;    // of them, decoded, or computed after decoded ones: see reuse_decoded
  // Further tokens, which another request with the same prompt computed for both.
  std::int64_t shared = 0;
  // Tokens up to the last place where the request asks for a saved state; a multiple of 64.
  std::int64_t marked = 0;
  // Leading tokens that agree with an earlier prompt; the next one is the first that differs.
  std::int64_t common = 0;
  // Nothing agrees, but cached files of another model or with other options begin like it.
  bool other_options = false;
  std::int32_t instead =
      -1;  // the token that one of those prompts has there; -1: it ended there, or none is known
  // Why the remaining tokens were computed.
  enum class Reason {
    end,      // only the last 64 at most; a prompt's last token is always computed
    differs,  // no earlier prompt continues like this one
    unsaved,  // an earlier prompt agrees further, but no state was saved there
    evicted,  // more was cached but has been evicted
    off,      // prompts are not cached
  };
  Reason reason = Reason::off;
};
std::string_view name(PromptReport::Reason reason);

struct RequestResult {
  GenerateResult generated;
  PromptReport prompt;
  // If prompt_logprobs requests them, those of the prompt's tokens after the first, from the model's logits
  // alone: sampling settings, masks and penalties do not change them.
  std::vector<SampledToken> prompt_logprobs = {};
  double queued_seconds = 0;
  std::exception_ptr error = {};  // why the request failed, or null; `generated` holds what came before
};

struct RequestCallbacks {
  // Prompt tokens done, cached ones included, and all; called before the first chunk and after each.
  std::function<void(std::int64_t read, std::int64_t all)> progress = {};
  std::function<void(const GeneratedToken&)> token = {};
  std::function<void(const RequestResult&)> done = {};  // last, exactly once
};

// Copies refer to the same request. A handle may outlive the scheduler.
class RequestHandle {
 public:
  RequestHandle() = default;
  std::uint64_t id() const { return id_; }
  // Ends the request within one step, with FinishReason::cancelled. Does nothing once it is done.
  void cancel() const {
    if (cancel_) cancel_();
  }

 private:
  friend class Scheduler;
  std::uint64_t id_ = 0;
  std::function<void()> cancel_;
};

struct SchedulerState {
  enum class Phase { waiting, reading, decoding, suspended };
  struct Sequence {
    std::uint64_t id = 0;
    std::string key;
    Phase phase = Phase::waiting;
    std::int64_t prompt = 0;     // tokens
    std::int64_t read = 0;       // of them
    std::int64_t generated = 0;  // tokens
    double seconds = 0;          // since it arrived
  };
  std::vector<Sequence> sequences;  // sequences that hold a slot or are suspended
  std::int64_t waiting = 0;
  std::int64_t parallel = 0;
  std::int64_t context = 0;
  std::int64_t cache_tokens = 0;       // that fit
  std::int64_t cache_tokens_used = 0;  // by sequences
  std::int64_t remembered_tokens = 0;  // of cached prompts, in the rest
  std::uint64_t memory_bytes = 0;      // of host memory with cached prompts
  std::uint64_t disk_bytes = 0;        // in files
  // Counts since the start. `prompt_tokens` includes cached tokens.
  std::uint64_t requests = 0, finished = 0, cancelled = 0, failed = 0, refused = 0, suspensions = 0;
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, decode_steps = 0;
};

class Scheduler {
 public:
  explicit Scheduler(std::shared_ptr<Engine> engine, const SchedulerOptions& options = {});
  // Cancels all running and waiting requests.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  Engine& engine() const;
  const SchedulerOptions& options() const;  // with the defaults filled in

  // Throws at once with kind `input` if the request is invalid or does not fit the context, and with kind
  // `busy` if the queue is full or drain() was called.
  RequestHandle submit(Request request, RequestCallbacks callbacks);
  // Submits a request and waits for its result, blocking the calling thread.
  RequestResult run(Request request);

  SchedulerState state() const;
  // The cached prefixes of requests with this key and salt, parents before children; at most `most`. Must not
  // be called from a callback.
  std::vector<RememberedPrefix> remembered(const std::string& key, const std::string& cache_salt,
                                           std::size_t most = 1000) const;
  // Empties the prompt cache, including the files of this model. Running requests continue. Must not be
  // called from a callback, as it waits for the thread that calls them.
  void forget_prompts();
  // Accepts no more requests and returns once all are done.
  void drain();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
