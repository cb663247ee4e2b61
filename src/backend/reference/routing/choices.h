// Which tokens chose an expert.
#pragma once

#include <vector>

#include "backend/reference/runtime/element.h"

namespace sluice::backend::reference::routing {

struct Choice {
  std::int64_t token;
  std::int64_t slot;
};

inline std::vector<Choice> choices_of(const ops::ConstView& experts, std::int64_t expert) {
  std::vector<Choice> choices;
  for (std::int64_t t = 0; t < experts.dim(0); ++t)
    for (std::int64_t j = 0; j < experts.dim(1); ++j)
      if (get_id(experts, t, j) == expert) choices.push_back({t, j});
  return choices;
}

}  // namespace sluice::backend::reference::routing
