// What an engine remembers of the forms of answers. Made when first asked for.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "sluice/grammar.h"

namespace sluice::engine {

struct AnswerCache {
  std::mutex mutex;
  std::shared_ptr<GrammarCache> grammars;
  std::optional<std::string> call_probe;  // what the chat template makes of a call
};

}  // namespace sluice::engine
