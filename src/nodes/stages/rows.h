// Copies rows of the residual stream between a backend and messages, keeping their type.
#pragma once

#include <span>

#include "layers/pass.h"
#include "nodes/transport.h"
#include "sluice/ops/backend.h"

namespace sluice::nodes::stages {

// The rows of a pass whose logits are wanted, in their order.
std::vector<std::int64_t> wanted_rows(const layers::Pass& pass);

Message pack_rows(ops::Backend& backend, const ops::View& x);
Message pack_rows(ops::Backend& backend, const ops::View& x, std::span<const std::int64_t> rows);
// These throw if the message has a different number of rows.
void unpack_rows(ops::Backend& backend, const Message& message, const ops::View& x);
void unpack_rows(ops::Backend& backend, const Message& message, const ops::View& x,
                 std::span<const std::int64_t> rows);

}  // namespace sluice::nodes::stages
