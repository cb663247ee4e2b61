// The options of commands that generate text.
#pragma once

#include "model_options.h"
#include "sluice/session.h"

namespace sluice::cli {

class GenerationOptions {
 public:
  void add(Command& command);
  GenerateOptions resolve() const { return options_; }
  // The context to make for a prompt of that length: what --ctx says, or enough.
  std::int64_t context(const Engine& engine, std::size_t prompt) const;

 private:
  GenerateOptions options_;
  std::int64_t context_ = 0;
};

}  // namespace sluice::cli
