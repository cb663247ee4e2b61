// The options of all commands that load a model.
#pragma once

#include <memory>

#include "parser.h"
#include "sluice/engine.h"

namespace sluice::cli::options {

inline constexpr const char* kDefaultModel = "delta-story";
inline constexpr const char* kModelMeaning = "A checkpoint folder, or a name that 'sluice list' shows";

struct Model {
  std::string model = kDefaultModel;
  EngineOptions engine;
  std::string kv = "auto";
  std::string routing;  // for random weights: "zipf:1.0", or empty
  std::string nodes;    // how nodes share the model: "auto", "12,20,8", "experts"; empty for a single machine

  // Whether the name is that of a bundled model.
  bool bundled() const;
  std::filesystem::path folder() const;
  std::shared_ptr<Engine> load();
  // If this process is to hold layers for another one, does that and does not return.
  void follow_if_asked();
  std::shared_ptr<Engine> random(const std::string& geometry, int bits);
  // Checks the options and writes them to `engine`; load() and random() call it.
  void resolve();
};

// An error in the value of --kv-bits, or nothing.
std::optional<std::string> check_cache(const std::string& text);
// --kv-bits.
void add_cache(Command& command, std::string& value);
inline constexpr const char* kProfileMeaning =
    "Write how often each expert was needed to this file, for --expert-policy static:FILE";
inline constexpr const char* kJsonMeaning = "Print JSON, as described by docs/json-output.schema.json";
// -m, --model.
void add_model(Command& command, std::string& value);
// Parses the value of --kv-bits; throws if it is invalid.
void parse_cache(const std::string& text, EngineOptions& options);

void add_threads(Command& command, int& value);
// --isa.
void add_isa(Command& command, std::string& value);
void add_backend(Command& command, std::string& value);
// All of the above except routing, and options for memory.
void add_engine(Command& command, Model& options);
// --routing, for random weights.
void add_routing(Command& command, std::string& value);
// Parses "zipf:1.0"; 0 for an empty text.
double zipf_exponent(const std::string& routing);

}  // namespace sluice::cli::options
