#include "backend/cpu/linear/weight_matrix.h"

namespace sluice::backend::cpu::linear {

namespace {

MatrixFormat format_of(const ops::Weight& w) {
  const ops::Shape shape = w.shape();
  MatrixFormat format;
  format.storage = quant::storage_of(w);
  format.scale_type = quant::scale_type_of(w, w.scales);
  format.bias_type = quant::scale_type_of(w, w.biases);
  format.rows = shape[shape.rank() - 2];
  format.columns = shape.back();
  format.group_size = w.quantized() ? w.group_size : format.columns;
  format.row_bytes = quant::row_bytes(w.values);
  format.scale_row_bytes = quant::row_bytes(w.scales);
  format.bias_row_bytes = quant::row_bytes(w.biases);
  return format;
}

Matrix data_of(const ops::Weight& w) {
  return {static_cast<const std::byte*>(w.values.data), static_cast<const std::byte*>(w.scales.data),
          static_cast<const std::byte*>(w.biases.data)};
}

}  // namespace

Matrices::Matrices(const ops::Weight& weight)
    : format_(format_of(weight)),
      base_(data_of(weight)),
      count_(weight.values.rank() == 3 ? weight.values.dim(0) : 1),
      row_step_(format_.rows) {}

Matrices::Matrices(const ops::ExpertWeights& experts) {
  if (experts.separate.empty()) {
    *this = Matrices(experts.stack);
    return;
  }
  *this = Matrices(experts.separate[0]);
  separate_ = experts.separate;
  count_ = std::ssize(separate_);
}

Matrices::Matrices(const ops::Weight& weight, std::int64_t count, std::int64_t step, std::int64_t first,
                   std::int64_t rows)
    : Matrices(weight) {
  count_ = count;
  row_step_ = step;
  format_.rows = rows;
  base_.values += first * format_.row_bytes;
  if (base_.scales != nullptr) base_.scales += first * format_.scale_row_bytes;
  if (base_.biases != nullptr) base_.biases += first * format_.bias_row_bytes;
}

Matrix Matrices::operator[](std::int64_t i) const {
  if (!separate_.empty()) return data_of(separate_[i]);
  Matrix matrix = base_;
  matrix.values += i * row_step_ * format_.row_bytes;
  if (matrix.scales != nullptr) matrix.scales += i * row_step_ * format_.scale_row_bytes;
  if (matrix.biases != nullptr) matrix.biases += i * row_step_ * format_.bias_row_bytes;
  return matrix;
}

}  // namespace sluice::backend::cpu::linear
