// Figures in the format of bench/results, from which docs/performance.md is made.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli::commands::bench {

struct Output {
  bool json = false;
  std::string csv = {};  // a file to append figures to, or none
};

struct Figure {
  std::string what;
  std::string median, low, high;  // empty: unknown
  std::string unit;
  std::string peer = {};
  std::string fraction = {};   // of the machine's peak as measured in the same run
  std::string intensity = {};  // operations per byte
};

// Appends rows to `file`, with a header if it is new. `machine` is the backend's description with the
// measured peaks; the command is this program's command line.
void append_figures(const std::string& file, const std::string& machine, const std::vector<Figure>& figures);

}  // namespace sluice::cli::commands::bench
