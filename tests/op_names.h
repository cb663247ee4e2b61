// Every op by name, for tests that run once per op.
#pragma once

#include <string>
#include <vector>

#include "sluice/op_runner.h"

namespace sluice {

inline std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpDescription& op : describe_ops()) names.push_back(op.name);
  return names;
}

}  // namespace sluice
