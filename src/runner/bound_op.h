// An op file bound to a backend: tensors uploaded, attributes read, outputs allocated and poisoned.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/op_file.h"
#include "sluice/ops/backend.h"

namespace sluice::runner {

class BoundOp {
 public:
  virtual ~BoundOp() = default;
  // Starts the op; a device may still be computing afterwards.
  virtual void enqueue() = 0;
  // Runs the op to completion.
  void run();
  // The current contents of every output and updated field.
  OpFile outputs();
  // Their views in the backend's memory.
  const std::vector<std::pair<std::string_view, ops::View>>& written() const { return written_; }

 protected:
  explicit BoundOp(ops::Backend& backend) : backend_(backend) {}

  ops::Backend& backend_;
  std::vector<ops::Buffer> buffers_;
  std::vector<std::pair<std::string_view, ops::View>> written_;
};

// Rejects unknown fields and attributes, and everything that violates the op's contract. The backend must
// outlive the result.
std::unique_ptr<BoundOp> bind(ops::Backend& backend, std::string_view op, const OpFile& file);

// Binds, runs once and returns the outputs.
OpFile run_op(ops::Backend& backend, std::string_view op, const OpFile& file);

}  // namespace sluice::runner
