// The next token of each row: the largest logit after the request's penalties, bias and mask, or a draw by
// integer weights (see sampling/draw.h). Grid: slices of a row x rows. Each pass reads the row once, from L2,
// with its counts and its mask if the request has any. All rows share the launches: which launches are needed
// depends on the call, and what they do on the row.
#include <algorithm>

#include "backend/cuda/routing/sample_logprobs.cuh"
#include "backend/cuda/routing/sample_row.cuh"
#include "backend/cuda/routing/sample_search.cuh"
#include "base/integer_cast.h"

namespace sluice::backend::cuda::routing {

namespace {

// Reads the row's settings and clears its histograms.
__global__ void prepare_row(SampleCall call) {
  wait_for_inputs();
  allow_successor();
  const long long r = blockIdx.x;
  for (int i = threadIdx.x; i < kBins; i += to_int(blockDim.x)) {
    call.weights[r * kBins + i] = 0;
    call.counted[r * kBins + i] = 0;
    call.first_weights[r * kBins + i] = 0;
    call.first_counted[r * kBins + i] = 0;
  }
  if (threadIdx.x != 0) return;
  SampleRow row{};
  row.slot = call.slots != nullptr ? call.slots[r] : r;
  if (row.slot < -1 || row.slot >= call.pool) {
    report(call.fault, FaultKind::pool_slot, row.slot, call.pool);
    row.slot = -1;
  }
  if (row.slot >= 0) {
    row.temperature = call.temperature[row.slot];
    row.top_p = call.top_p[row.slot];
    row.min_p = call.min_p[row.slot];
    row.top_k = call.top_k[row.slot];
    row.seed = call.seed[row.slot];
    row.penalties = {static_cast<float>(call.repetition_penalty[row.slot]),
                     static_cast<float>(call.presence_penalty[row.slot]),
                     static_cast<float>(call.frequency_penalty[row.slot])};
    row.logprobs = to_int(call.logprobs[row.slot]);
  }
  call.rows[r] = row;
}

__global__ void __launch_bounds__(kSampleThreads) find_largest(SampleCall call, bool last_kernel) {
  __shared__ float logits[kSlice];
  __shared__ Sum partial[kSampleThreads / kWarp];
  wait_for_inputs();
  allow_successor();
  const long long r = blockIdx.y;
  SampleRow& row = call.rows[r];
  if (row.slot < 0) return;
  const long long begin = static_cast<long long>(blockIdx.x) * kSlice;
  const int count = load_slice(call, r, blockIdx.x, logits);
  Sum best = 0;
  for (int i = threadIdx.x; i < count; i += kSampleThreads) {
    if (isnan(call.logits[r][begin + i])) report(call.fault, FaultKind::sampled_logit, begin + i, 0);
    if (!allows(call, row, begin + i)) continue;
    const Sum one = ranked(logits[i], begin + i);
    best = one > best ? one : best;
  }
  best = block_largest(best, partial);
  if (threadIdx.x == 0) atomicMax(&row.largest, best);
  if (!last_block(call.tickets + r) || threadIdx.x != 0) return;
  best = *static_cast<volatile Sum*>(&row.largest);
  if (best == 0) return report(call.fault, FaultKind::sampled_mask, r, 0);
  *call.positions[r] += 1;
  *call.ids[r] = index_of(best);
  if (last_kernel) count_choice(call, r);
}

template <class T>
std::int64_t entries(const ops::RowValue<T>& setting) {
  return setting.per_row.present() ? setting.per_row.dim(0) : 0;
}

// How many slots the op's fields have.
std::int64_t pool_of(const ops::Sample& op) {
  std::int64_t pool = 0;
  for (const ops::ConstView& field : {ops::ConstView(op.counts), op.bias_ids, op.allowed})
    if (field.present()) pool = field.dim(0);
  for (const auto* setting : {&op.temperature, &op.top_p, &op.min_p, &op.repetition_penalty,
                              &op.presence_penalty, &op.frequency_penalty})
    pool = std::max(pool, entries(*setting));
  pool = std::max({pool, entries(op.top_k), entries(op.logprobs), entries(op.seed)});
  return pool > 0 ? pool : op.logits.dim(0);
}

// Allocates scratch memory for the passes of a call.
void place(Context& context, SampleCall& call, std::size_t rows, bool logprobs) {
  const std::size_t slices = call.slices;
  const std::size_t bins = rows * kBins;
  // At the end, the counts of slices reuse the memory of the histograms.
  const std::size_t sums = rows * (slices > kBins ? slices : kBins);
  const std::size_t tops = logprobs ? rows * slices * kMostLogprobs : 0;
  call.weights = reinterpret_cast<Sum*>(context.scratch(
      sizeof(Sum) * (sums + 3 * bins + tops) + sizeof(double) * rows * slices + sizeof(SampleRow) * rows));
  call.counted = call.weights + sums;
  call.first_weights = call.counted + bins;
  call.first_counted = call.first_weights + bins;
  call.tops = call.first_counted + bins;
  call.sums = reinterpret_cast<double*>(call.tops + tops);
  call.rows = reinterpret_cast<SampleRow*>(call.sums + rows * slices);
  call.tickets = context.counters();
  call.fault = context.fault();
}

}  // namespace

}  // namespace sluice::backend::cuda::routing

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::Sample& op) {
  using namespace routing;
  const auto rows = to_unsigned(op.logits.dim(0));
  SampleCall call(op);
  call.pool = pool_of(op);
  const bool reported = op.logprob.present() || op.top_ids.present();
  const bool drawn = op.temperature.per_row.present() || op.temperature.value > 0;
  place(context, call, rows, reported);

  const Grid all{dim3(to_unsigned(call.slices), rows), dim3(kSampleThreads)};
  launch(context, prepare_row, {dim3(rows), dim3(kSampleThreads)}, call);
  launch(context, find_largest, all, call, !drawn && !reported);
  if (drawn) {
    launch(context, search_digit<0>, all, call, Search::top_k);
    const auto search = [&](Search which) {
      launch(context, search_digit<1>, all, call, which);
      launch(context, search_digit<2>, all, call, which);
    };
    if (op.top_k.per_row.present() || (op.top_k.value > 0 && op.top_k.value < call.vocab))
      search(Search::top_k);
    if (op.top_p.per_row.present() || op.top_p.value < 1) search(Search::top_p);
    search(Search::draw);
    launch(context, pick, all, call, !reported);
  }
  if (reported) launch(context, find_logprobs, all, call);
}

}  // namespace sluice::backend::cuda
