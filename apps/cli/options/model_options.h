// The options that commands which load a model share.
#pragma once

#include <memory>

#include "options/parser.h"
#include "sluice/engine.h"

namespace sluice::cli {

inline constexpr const char* kDefaultModel = "delta-story";

struct ModelOptions {
  std::string model = kDefaultModel;
  EngineOptions engine;
  std::string kv = "auto";
  std::string routing;  // of random weights: "zipf:1.0", or empty
  std::string nodes;    // how they share the model: "auto", "12,20,8", "experts", or empty for one alone

  // One of the models in the box, by name.
  bool bundled() const;
  std::filesystem::path folder() const;
  std::shared_ptr<Engine> load();
  // Where this process is to hold layers for another one: does nothing else, and does not return.
  void follow_if_asked();
  std::shared_ptr<Engine> random(const std::string& geometry, int bits);
  // Checks the options and writes them into `engine`; load and random do so themselves.
  void resolve();
};

// A complaint about what --kv-bits was given, or nothing.
std::optional<std::string> check_cache(const std::string& text);
// --kv-bits.
void add_cache_option(Command& command, std::string& value);
inline constexpr const char* kProfileMeaning =
    "Write how often each expert was needed to this file, for --expert-policy static:FILE";
inline constexpr const char* kJsonMeaning = "Print JSON, as described by docs/json-output.schema.json";
// -m, --model.
void add_model_option(Command& command, std::string& value);
// Reads what --kv-bits was given; throws what it expects.
void parse_cache(const std::string& text, EngineOptions& options);

void add_threads_option(Command& command, int& value);
// --isa.
void add_isa_option(Command& command, std::string& value);
void add_backend_option(Command& command, std::string& value);
// All of the above but routing, and how to use memory.
void add_engine_options(Command& command, ModelOptions& options);
// --routing of random weights.
void add_routing_option(Command& command, std::string& value);
// Of "zipf:1.0"; 0 for nothing.
double zipf_exponent(const std::string& routing);

}  // namespace sluice::cli
