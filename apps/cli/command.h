// One file a command; each adds itself to the parser and runs when chosen.
#pragma once

#include <CLI/CLI.hpp>

namespace sluice::cli {

void add_bench(CLI::App& app);
void add_chat(CLI::App& app);
void add_convert(CLI::App& app);
void add_inspect(CLI::App& app);
void add_plan(CLI::App& app);
void add_logits(CLI::App& app);
void add_op(CLI::App& app);
void add_perplexity(CLI::App& app);
void add_random(CLI::App& app);
void add_run(CLI::App& app);
void add_verify(CLI::App& app);

// The exit status of a command that ran but found something wrong.
class Failed : public std::exception {};

}  // namespace sluice::cli
