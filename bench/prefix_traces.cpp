// Counts the tokens computed for the prompts of a recorded trace with room for few recurrent states: by the
// prefix cache, by one that evicts the least recently used state, and by one that knows the future.
//
//   prefix_traces FILE STATES...
//
// A line of FILE is a request as JSON: its token ids ("ids"), or names of its blocks of 512 tokens
// ("hash_ids") with the number of its tokens ("input_length"), as in the traces of Mooncake (FAST 2025).
#include <fmt/core.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/integer_cast.h"
#include "unit/scheduler/policy_simulation.h"

namespace {

using sluice::to_size;
using sluice::scheduler::prefix::PolicySimulation;
using sluice::scheduler::prefix::Prompt;

struct Trace {
  std::vector<Prompt> prompts;
  std::vector<std::int64_t> tokens;
  std::int64_t scale = 1;  // tokens per token of a prompt
};

// A named block of 512 tokens becomes one of 64, because nothing is known of its content. The name of a last
// block that is not full belongs to one prompt, even if another continues like it.
Trace read(const char* path) {
  constexpr std::int64_t kNamed = 512;
  constexpr std::size_t kBlock = 64;
  Trace trace;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto request = nlohmann::json::parse(line);
    Prompt prompt;
    if (request.contains("ids")) {
      prompt = request["ids"].get<Prompt>();
      trace.tokens.push_back(std::ssize(prompt));
    } else {
      trace.scale = kNamed / static_cast<std::int64_t>(kBlock);
      const auto names = request["hash_ids"].get<std::vector<std::int32_t>>();
      trace.tokens.push_back(request["input_length"]);
      const auto full = std::min(std::ssize(names), trace.tokens.back() / kNamed);
      for (std::ptrdiff_t i = 0; i < full; ++i) prompt.insert(prompt.end(), kBlock, names[to_size(i)]);
      prompt.push_back(-1);  // its last token is always computed
    }
    trace.prompts.push_back(std::move(prompt));
  }
  return trace;
}

// As a fraction of all prompts' tokens.
double share(const Trace& trace, const PolicySimulation::Counts& counts) {
  std::int64_t computed = 0;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::int64_t found = (std::ssize(trace.prompts[i]) - counts[i]) * trace.scale;
    computed += std::max<std::int64_t>(0, trace.tokens[i] - found);
    all += trace.tokens[i];
  }
  return static_cast<double>(computed) / static_cast<double>(std::max<std::int64_t>(1, all));
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 3) throw std::runtime_error("usage: prefix_traces FILE STATES...");
  const Trace trace = read(arguments[1]);
  const PolicySimulation simulation(trace.prompts, 4096 / trace.scale);
  fmt::print("{} requests\n{:>8} {:>8} {:>8} {:>12}\n", trace.prompts.size(), "states", "tree", "lru",
             "clairvoyant");
  for (int i = 2; i < count; ++i) {
    const std::size_t states = std::stoul(arguments[i]);
    fmt::print("{:8} {:7.1f}% {:7.1f}% {:11.1f}%\n", states, 100 * share(trace, simulation.by_tree(states)),
               100 * share(trace, simulation.by_age(states)),
               100 * share(trace, simulation.clairvoyant(states)));
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
