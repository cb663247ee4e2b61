// Figures in the form of bench/results, of which docs/performance.md is made.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

struct BenchOutput {
  bool json = false;
  std::string csv = {};  // a file to append figures to, or none
};

struct Figure {
  std::string what;
  std::string median, low, high;  // empty: not known
  std::string unit;
  std::string peer = {};
  std::string fraction = {};   // of what the machine was measured to do in the same run
  std::string intensity = {};  // operations per byte
};

// Appends rows to `file`, which begins with the columns' names if it is new. `machine` are the backend's own
// words and what was measured of it; the command is this program's.
void append_figures(const std::string& file, const std::string& machine, const std::vector<Figure>& figures);

}  // namespace sluice::cli
