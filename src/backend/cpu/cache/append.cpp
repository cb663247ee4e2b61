#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/cache/append.cpp"
#include "backend/cpu/cache/append.h"

#include <hwy/foreach_target.h>  // IWYU pragma: keep

#include "backend/cpu/runtime/row_walk.h"
#include "backend/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::cache::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

void copy_row(const void* from, ops::DType from_type, std::size_t width, void* to, ops::DType to_type) {
  if (from_type == to_type)
    std::memcpy(to, from, width * size_bytes(to_type));
  else if (to_type == ops::DType::bf16)
    store_row(static_cast<const float*>(from), width, static_cast<ops::BFloat16*>(to));
  else
    load_row(static_cast<const ops::BFloat16*>(from), width, static_cast<float*>(to));
}

}  // namespace sluice::backend::cpu::cache::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::backend::cpu::cache {

HWY_EXPORT(copy_row);

void copy_rows(const Context& context, const ops::ConstView& from, const ops::View& to) {
  const std::size_t width = from.shape.back();
  const auto copy = SLUICE_DISPATCH(context, copy_row);
  for (std::int64_t r = 0; r < row_count(from.shape); ++r)
    copy(row_at(from, r), from.dtype, width, row_at(to, r), to.dtype);
}

}  // namespace sluice::backend::cpu::cache
#endif
