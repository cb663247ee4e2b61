#include "quant/storage.h"

#include "base/error.h"
#include "quant/formats.h"

namespace sluice::quant {

using ops::DType;

Storage storage_of(const ops::Weight& w) {
  if (!w.quantized())
    return w.values.dtype == DType::f32    ? Storage::f32
           : w.values.dtype == DType::bf16 ? Storage::bf16
                                           : Storage::f16;
  const Format& format = format_of(w.mode);
  if (format.storage == nullptr)
    fail(ErrorKind::unsupported, "weights in the format {} are only supported by the reference", format.name);
  return format.storage(w.bits);
}

ScaleType scale_type_of(const ops::Weight& w, const ops::ConstView& part) {
  if (!part.present()) return ScaleType::none;
  const Format& format = format_of(w.mode);
  if (format.scales == Plane::bytes) return format.byte_scales;
  return part.dtype == DType::f32    ? ScaleType::f32
         : part.dtype == DType::bf16 ? ScaleType::bf16
                                     : ScaleType::f16;
}

std::int64_t row_bytes(const ops::ConstView& view) {
  return view.present() ? view.shape.back() * static_cast<std::int64_t>(size_bytes(view.dtype)) : 0;
}

}  // namespace sluice::quant
