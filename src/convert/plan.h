// What a conversion writes, and where each row comes from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/quantization_plan.h"
#include "checkpoint/safetensors.h"

namespace sluice::convert {

// Consecutive rows of a source tensor [.., columns], or their transpose.
struct Piece {
  const checkpoint::TensorEntry* tensor = nullptr;
  const checkpoint::TensorEntry* scale_inv = nullptr;  // for an E4M3 tensor: one multiplier per block
  int64_t first_row = 0;
  bool transposed = false;
};

// A tensor of the converted model, before quantisation: pieces of equal shape, stacked.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<Piece> pieces;
  checkpoint::FileDType source = checkpoint::FileDType::bf16;  // BF16 for E4M3
  checkpoint::FileDType dtype = checkpoint::FileDType::bf16;
  bool add_one = false;                          // in the source's type, before the cast
  bool quantizable = false;                      // the weight of a matrix product or an embedding
  std::optional<checkpoint::QuantParams> quant;  // none: stays dense

  int64_t columns() const { return shape.back(); }
  int64_t rows() const;
  int64_t rows_per_piece() const { return rows() / std::ssize(pieces); }
  std::string module() const { return name.substr(0, name.rfind('.')); }
};

// The tensors that the parameter is stored as: itself, or packed weight, scales and biases.
std::vector<checkpoint::TensorInfo> stored_tensors(const Parameter& parameter);

}  // namespace sluice::convert
