// scores = scale * (q_latent . latent + q_pe . rope); out = softmax(scores) latent, with latents decoded from
// the packed cache.
//
// Computed in the rotated basis: queries are rotated once, and the sums are rotated back once. F32
// throughout.
#include "sluice/ops/attention/mla_turboquant_attention.h"

#include "backend/cuda/attention/latent/joined_cache.cuh"
#include "backend/cuda/attention/packed/fresh_cache.cuh"
#include "backend/cuda/attention/plain.cuh"
#include "backend/cuda/cache/rotate_rows.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::attention::latent {

namespace {

// [T,rank] as [T,1,rank].
ops::ConstView one_head(const ops::ConstView& x) {
  return {x.data, x.dtype, {x.dim(0), 1, x.dim(1)}, {x.strides[0], x.dim(1), 1}};
}

std::size_t aligned(std::size_t bytes) {
  return divide_up<std::size_t>(bytes, 256) * 256;
}

}  // namespace

}  // namespace sluice::backend::cuda::attention::latent

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::MlaTurboquantAttention& op) {
  using namespace attention;
  using namespace attention::latent;
  const CachePlan plan(op, op.latent_codes, 0, context.fault());
  const auto* signs = static_cast<const unsigned char*>(op.signs.data);
  AttendCall attend(op, op.q_latent.dim(0), op.out, op.start);
  attend.group = attend.heads;
  attend.set_caches(plan, context.fault());
  attend.own_rows = op.latent_new.present();
  const bool decode = context.decode_class(op.q_latent.dim(0));
  const std::size_t query_bytes = aligned(to_size(op.q_latent.elements()) * sizeof(float));
  const std::size_t token_bytes =
      op.latent_new.present() ? aligned(to_size(op.latent_new.elements()) * sizeof(float)) : 0;
  std::byte* scratch =
      context.scratch(2 * query_bytes + token_bytes + (decode ? SplitSizes(attend).bytes : 0));
  const auto rotated = [&](const ops::ConstView& x, std::byte* memory) {
    const ops::View to(memory, ops::DType::f32, x.shape);
    cache::rotate_rows(context, {x.data, to.data, RowOffsets(x), RowOffsets(to), signs, false}, x.dim(2),
                       x.dtype, ops::DType::f32);
    return HeadRows(to);
  };
  const ops::View sums(scratch + query_bytes, ops::DType::f32, op.q_latent.shape);
  attend.out = HeadRows(sums);
  const HeadRows queries = rotated(op.q_latent, scratch);
  const packed::FreshCache latents{
      packed::PackedCache(op.latent_codes, op.latent_norms, op.bits, plan.pooled, false),
      op.latent_new.present() ? rotated(one_head(op.latent_new), scratch + 2 * query_bytes) : HeadRows()};
  const JoinedCache<packed::FreshCache> keys{latents, DenseCache(op.rope_cache, plan.pooled), queries.width};
  run_plain(context,
            PlainCall<JoinedCache<packed::FreshCache>, packed::FreshCache>{
                attend, {{queries, HeadRows(op.q_pe)}}, keys, latents},
            scratch + 2 * query_bytes + token_bytes);
  cache::rotate_rows(context, {sums.data, op.out.data, RowOffsets(sums), RowOffsets(op.out), signs, true},
                     op.q_latent.dim(2), ops::DType::f32, op.out.dtype);
}

}  // namespace sluice::backend::cuda
