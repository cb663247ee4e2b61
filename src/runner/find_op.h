// Maps an op's name to its type.
#pragma once

#include "base/error.h"
#include "sluice/ops/ops.h"

namespace sluice::runner {

// Calls f.template operator()<Op>() for the op with that name; throws if there is none.
template <class F>
void find_op(std::string_view name, F&& f) {
  bool found = false;
  ops::AllOps::for_each([&]<class Op>() {
    if (Op::kName != name) return;
    found = true;
    f.template operator()<Op>();
  });
  if (!found) fail(ErrorKind::input, "there is no op '{}'; 'sluice op --list' prints the catalogue", name);
}

}  // namespace sluice::runner
