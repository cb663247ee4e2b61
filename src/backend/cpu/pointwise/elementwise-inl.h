// out = f(a, b) element by element, for tensors of equal shape and any strides. Included once per instruction
// set. A vector is loaded before it is stored, so out may share the memory of a or b. Every element is
// computed by the same vector code wherever it is, so its bits do not depend on the shape.
#if defined(SLUICE_BACKEND_CPU_ELEMENTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_BACKEND_CPU_ELEMENTWISE_INL_H_
#undef SLUICE_BACKEND_CPU_ELEMENTWISE_INL_H_
#else
#define SLUICE_BACKEND_CPU_ELEMENTWISE_INL_H_
#endif

#include <algorithm>

#include "backend/cpu/runtime/context.h"
#include "backend/cpu/runtime/row_walk.h"
#include "backend/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE {

using namespace simd::HWY_NAMESPACE;

template <class F, class A, class B>
HWY_INLINE void apply_row(const F& f, const A* a, const B* b, A* out, std::size_t count) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) store(d, f(d, load(d, a + i), load(d, b + i)), out + i);
  if (i == count) return;
  A padded_a[hn::MaxLanes(FloatTag())] = {};
  B padded_b[hn::MaxLanes(FloatTag())] = {};
  std::copy(a + i, a + count, padded_a);
  std::copy(b + i, b + count, padded_b);
  store(d, f(d, load(d, padded_a), load(d, padded_b)), padded_a);
  std::copy(padded_a, padded_a + (count - i), out + i);
}

// Elements per task of a thread: enough work to justify waking it.
constexpr std::int64_t kElementsPerTask = 16384;

template <class F, class A, class B>
void apply_typed(Context& context, const ops::ConstView& a, const ops::ConstView& b, const ops::View& out) {
  const bool flat = a.contiguous() && b.contiguous() && out.contiguous();
  const std::int64_t width = flat ? out.elements() : out.shape.back();
  const std::int64_t rows = flat ? 1 : row_count(out.shape);
  const std::int64_t pieces = (width + kElementsPerTask - 1) / kElementsPerTask;
  const std::int64_t grain = std::max<std::int64_t>(1, kElementsPerTask / width);
  context.pool().parallel_for(0, rows * pieces, grain,
                              [&](std::int64_t begin, std::int64_t end, int) HWY_ATTR {
                                for (std::int64_t piece = begin; piece < end; ++piece) {
                                  const std::int64_t row = piece / pieces;
                                  const std::int64_t at = piece % pieces * kElementsPerTask;
                                  const auto* from_a = static_cast<const A*>(flat ? a.data : row_at(a, row));
                                  const auto* from_b = static_cast<const B*>(flat ? b.data : row_at(b, row));
                                  auto* to = static_cast<A*>(flat ? out.data : row_at(out, row));
                                  const std::size_t count = std::min(kElementsPerTask, width - at);
                                  apply_row(F{}, from_a + at, from_b + at, to + at, count);
                                }
                              });
}

// F has FloatVec operator()(FloatTag, FloatVec a, FloatVec b). out has the type of a.
template <class F>
void apply_elementwise(Context& context, const ops::ConstView& a, const ops::ConstView& b,
                       const ops::View& out) {
  const bool wide_a = a.dtype == ops::DType::f32;
  const bool wide_b = b.dtype == ops::DType::f32;
  if (wide_a && wide_b)
    apply_typed<F, float, float>(context, a, b, out);
  else if (wide_a)
    apply_typed<F, float, ops::BFloat16>(context, a, b, out);
  else if (wide_b)
    apply_typed<F, ops::BFloat16, float>(context, a, b, out);
  else
    apply_typed<F, ops::BFloat16, ops::BFloat16>(context, a, b, out);
}

}  // namespace sluice::backend::cpu::pointwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
