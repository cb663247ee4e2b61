// One file a command; each adds itself to the parser and runs when chosen.
#pragma once

#include <CLI/CLI.hpp>

namespace sluice::cli {

void add_bench(CLI::App& app);
void add_convert(CLI::App& app);
void add_op(CLI::App& app);
void add_verify(CLI::App& app);

// The exit status of a command that ran but found something wrong.
class Failed : public std::exception {};

}  // namespace sluice::cli
