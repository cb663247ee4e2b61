#include "quant/storage.h"

#include "base/error.h"

namespace sluice::quant {

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

ScaleType scale_type_of(const ops::Weight& w, const ops::ConstView& part) {
  if (!part.present()) return ScaleType::none;
  if (w.mode == QuantMode::nvfp4) return ScaleType::e4m3;
  if (w.mode != QuantMode::affine) return ScaleType::e8m0;
  return part.dtype == DType::f32    ? ScaleType::f32
         : part.dtype == DType::bf16 ? ScaleType::bf16
                                     : ScaleType::f16;
}

std::int64_t row_bytes(const ops::ConstView& view) {
  return view.present() ? view.shape.back() * static_cast<std::int64_t>(size_bytes(view.dtype)) : 0;
}

}  // namespace sluice::quant
