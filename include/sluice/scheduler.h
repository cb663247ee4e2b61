// Many requests at once on one engine.
//
// Each turn runs one decode step of all running sequences and then chunks of the prompts that are being read,
// as many tokens as keep the time between two tokens of the others near its target. An answer is a function
// of its own prompt and settings: never of what else runs, of when it came, or of what was remembered.
//
// Threads: every member may be called from any thread. Callbacks run one at a time on the scheduler's thread
// and must not block: they hand over what they hear. A request holds no thread.
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
  std::int64_t parallel = 0;  // sequences that run at once; 0: what suits the backend
  std::int64_t context = 0;   // tokens per sequence, prompt and answer; 0: the model's longest, if it fits
  // Tokens whose cache rows fit for all sequences together; 0: parallel * context. With fewer, a sequence
  // takes pages as it grows, and may have to make room for another one for a while.
  std::int64_t cache_tokens = 0;
  std::size_t queue = 1024;              // requests that may wait
  double token_interval_seconds = 0.05;  // target for the time between two tokens of a running sequence
  // Prompts that begin as one before go on where the two part. Rows of caches are kept in the memory of
  // cache_tokens as long as no sequence needs it, the last recurrent states beside them; what has to leave
  // goes to memory of the host.
  bool remember_prompts = true;
  // In place of cache_tokens: bytes of the memory that the model computes in, for rows of caches and for
  // recurrent states of prompts; 0: as many as cache_tokens take.
  std::uint64_t cache_vram = 0;
  // Bytes of the host; where the model computes there and EngineOptions::memory limits it, half of what that
  // leaves at most.
  std::uint64_t cache_memory = std::uint64_t{1} << 30;
  std::int64_t cache_snapshots =
      -1;  // recurrent states that are kept where the model computes; -1: what suits
  // Of long prompts a state is kept every so many tokens, a multiple of 64, besides those at their ends,
  // where prompts part, and behind the first message and before the last one of a conversation.
  std::int64_t state_spacing = 4096;
  // Prompts are remembered in files of this folder, too, which the next process finds again; empty: they are
  // not. Several processes may share one. What is in it tells what people wrote: keep it to yourself.
  std::filesystem::path cache_folder = {};
  std::uint64_t cache_folder_bytes = std::uint64_t{16} << 30;  // for all files in it
  // Requests with different keys share nothing, and each of so many keys has its part of cache_memory and
  // cache_folder_bytes: what one key asks for never decides about what another one finds. 0: all share.
  std::int64_t cache_keys = 0;
  // A prompt may go on from an answer as it was generated. Its tokens were computed one by one then, which
  // rounds differently: what follows may differ from what a prompt that is read gives. In memory alone.
  bool reuse_decoded = false;
  // Hears, on any thread, of files that cannot be used or written: one line each.
  std::function<void(const std::string& line)> log = {};
};

struct Request {
  std::vector<std::int32_t> prompt;
  GenerateOptions options;     // `progress` is not used: see RequestCallbacks
  std::string key = {};        // the client, between whom tokens are shared fairly
  int priority = 0;            // higher ones first
  double timeout_seconds = 0;  // for everything, waiting included; 0: no limit
  // Requests with different salts share no remembered prefix.
  std::string cache_salt = {};
  // Names requests that are going to begin alike: what the last of them left is kept longer.
  std::string cache_key = {};
  // Behind which messages of the conversation a state is to be kept, besides where it is anyway: counted from
  // the last one, which is 0; numbers that are too high mean the first.
  std::vector<std::int64_t> cache_messages = {};
};

// Where the tokens of a prompt came from.
struct PromptReport {
  std::int64_t tokens = 0;
  std::int64_t cached = 0;     // not computed, because a prefix was remembered; a multiple of 64
  std::int64_t from_host = 0;  // of them, back from the host's memory
  std::int64_t from_disk = 0;  // of them, read from files
  std::int64_t decoded = 0;    // of them, computed as an answer or behind one: see reuse_decoded
  // Tokens behind those that another request with the same prompt computed for both.
  std::int64_t shared = 0;
  // Tokens up to the last place at which the request wants a state kept, a multiple of 64.
  std::int64_t marked = 0;
  // Leading tokens that agree with a prompt before: the one behind them is the first that differs.
  std::int64_t common = 0;
  // Nothing agrees, but files of another model, or with other options, begin like it.
  bool other_options = false;
  std::int32_t instead =
      -1;  // what one of those prompts has in its place; -1: it ended there, or none is known
  // Why the others were computed.
  enum class Reason {
    end,      // at most the last 64 were: a prompt's last token always is
    differs,  // no prompt before goes on like this one
    unsaved,  // the prompts agree further, but no state was kept there
    evicted,  // something of it was kept and had to make room
    off,      // prompts are not remembered
  };
  Reason reason = Reason::off;
};
std::string_view name(PromptReport::Reason reason);

struct RequestResult {
  GenerateResult generated;
  PromptReport prompt;
  double queued_seconds = 0;
  std::exception_ptr error = {};  // what ended the request, if it failed; `generated` holds what came before
};

struct RequestCallbacks {
  // How much of the prompt is read, remembered tokens included; once before the first chunk, then per chunk.
  std::function<void(std::int64_t read, std::int64_t all)> progress = {};
  std::function<void(const GeneratedToken&)> token = {};
  std::function<void(const RequestResult&)> done = {};  // last, exactly once
};

// Copies mean the same request. Outliving the scheduler is harmless.
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
    double seconds = 0;          // since it came
  };
  std::vector<Sequence> sequences;  // those that hold a slot or are suspended
  std::int64_t waiting = 0;
  std::int64_t parallel = 0;
  std::int64_t context = 0;
  std::int64_t cache_tokens = 0;       // that fit
  std::int64_t cache_tokens_used = 0;  // by sequences
  std::int64_t remembered_tokens = 0;  // of prompts, in what they leave
  std::uint64_t memory_bytes = 0;      // of the host that remember prompts
  std::uint64_t disk_bytes = 0;        // in files
  // Since the start. Tokens of prompts count with those that were cached.
  std::uint64_t requests = 0, finished = 0, cancelled = 0, failed = 0, refused = 0, suspensions = 0;
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, decode_steps = 0;
};

class Scheduler {
 public:
  explicit Scheduler(std::shared_ptr<Engine> engine, const SchedulerOptions& options = {});
  // Cancels what runs and waits.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  Engine& engine() const;
  const SchedulerOptions& options() const;  // with what 0 stood for

  // Fails at once with kind `input` for a request that makes no sense or does not fit the context, and with
  // kind `resource` when the queue is full or drain() was called.
  RequestHandle submit(Request request, RequestCallbacks callbacks);
  // Submits and waits. For callers with a thread to spare.
  RequestResult run(Request request);

  SchedulerState state() const;
  // What is remembered of requests with this key and this salt, parents before children; at most so many. Not
  // from a callback.
  std::vector<RememberedPrefix> remembered(const std::string& key, const std::string& cache_salt,
                                           std::size_t most = 1000) const;
  // Forgets all remembered prompts, those in files of this model too. Running requests go on. Not from a
  // callback: it waits for the thread that calls them.
  void forget_prompts();
  // Takes no more requests and returns once all are done.
  void drain();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
