#include "backend/cpu/weight_matrix.h"

#include "base/error.h"

namespace sluice::backend::cpu {

namespace {

using ops::DType;
using ops::QuantMode;

Storage storage_of(const ops::Weight& w) {
  if (!w.quantized())
    return w.values.dtype == DType::f32    ? Storage::f32
           : w.values.dtype == DType::bf16 ? Storage::bf16
                                           : Storage::f16;
  if (w.mode == QuantMode::mxfp8) return Storage::fp8;
  if (w.mode != QuantMode::affine) return Storage::fp4;
  switch (w.bits) {
    case 2:
      return Storage::affine2;
    case 3:
      return Storage::affine3;
    case 4:
      return Storage::affine4;
    case 5:
      return Storage::affine5;
    case 6:
      return Storage::affine6;
    case 8:
      return Storage::affine8;
    default:
      fail(ErrorKind::internal, "a weight of {} bits passed the checks", w.bits);
  }
}

// Of the scales or the biases of a weight.
ScaleType scale_type_of(const ops::Weight& w, const ops::ConstView& part) {
  if (!part.present()) return ScaleType::none;
  if (w.mode == QuantMode::nvfp4) return ScaleType::e4m3;
  if (w.mode != QuantMode::affine) return ScaleType::e8m0;
  return part.dtype == DType::f32    ? ScaleType::f32
         : part.dtype == DType::bf16 ? ScaleType::bf16
                                     : ScaleType::f16;
}

std::int64_t last_dim_bytes(const ops::ConstView& view) {
  return view.present() ? view.shape.back() * static_cast<std::int64_t>(size_bytes(view.dtype)) : 0;
}

MatrixFormat format_of(const ops::Weight& w) {
  const ops::Shape shape = w.shape();
  MatrixFormat format;
  format.storage = storage_of(w);
  format.scale_type = scale_type_of(w, w.scales);
  format.bias_type = scale_type_of(w, w.biases);
  format.rows = shape[shape.rank() - 2];
  format.columns = shape.back();
  format.group_size = w.quantized() ? w.group_size : format.columns;
  format.row_bytes = last_dim_bytes(w.values);
  format.scale_row_bytes = last_dim_bytes(w.scales);
  format.bias_row_bytes = last_dim_bytes(w.biases);
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
  count_ = static_cast<std::int64_t>(separate_.size());
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
  if (!separate_.empty()) return data_of(separate_[static_cast<std::size_t>(i)]);
  Matrix matrix = base_;
  matrix.values += i * row_step_ * format_.row_bytes;
  if (matrix.scales != nullptr) matrix.scales += i * row_step_ * format_.scale_row_bytes;
  if (matrix.biases != nullptr) matrix.biases += i * row_step_ * format_.bias_row_bytes;
  return matrix;
}

}  // namespace sluice::backend::cpu
