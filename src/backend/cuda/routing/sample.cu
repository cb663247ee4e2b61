// The next token of each row: the largest logit, or a draw by integer weights (see ops/draw.h).
//
// Nothing is sorted. Logits become keys that order like them; "the first token, in falling order, at which a
// running sum passes a goal" is found digit by digit: a histogram of the next digit of the keys that match so
// far, whose last block walks the bins from the top. The sums are counts (top_k) or weights (top_p, the
// draw); all are integers, so the order of atomic additions does not matter. Tokens with equal keys have
// equal weights: their number and a division say which of them, and the last pass finds it by index. Up to
// three searches of three digits each; the first digit's histogram serves all. Grid: slices of a row x rows;
// each pass reads the row once, from the L2.
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/runtime/launch.h"
#include "ops/draw.h"
#include "sluice/ops/sample.h"

namespace sluice::backend::cuda::routing {

namespace {

using Sum = unsigned long long;

constexpr int kThreads = 512;
constexpr int kSlice = 4096;  // logits a block
constexpr int kDigits = 3;
constexpr int kBins = 2048;

__host__ __device__ constexpr int digit_bits(int digit) {
  return digit == 2 ? 10 : 11;
}
__host__ __device__ constexpr int digit_shift(int digit) {
  return digit == 0 ? 21 : digit == 1 ? 10 : 0;
}

enum class Search : int { top_k, top_p, draw };

struct Row {
  unsigned long long largest;  // key and the complement of the index: the maximum is the lowest of equals
  Sum least_weights;           // of the tokens that min_p keeps
  Sum limit;                   // weights of the tokens kept so far
  // The search that is running.
  unsigned prefix;  // digits found
  Sum goal;
  Sum before;          // what the bins above add up to
  Sum before_weights;  // their weights
  Sum chosen;          // which of the tokens with the key found
};

struct SampleCall {
  const float* logits;
  long long row_stride;
  long long vocab;
  int* positions;
  long long position_stride;
  int* ids;
  long long id_stride;
  double temperature;
  double top_p;
  double min_p;
  long long top_k;
  unsigned long long seed;
  long long slices;  // blocks a row
  Row* rows;
  Sum* weights;        // [rows, kBins] of the digit that is counted
  Sum* counts;         // alike
  Sum* first_weights;  // of the first digit, kept
  Sum* first_counts;
  int* tickets;
  Fault* fault;
};

__device__ unsigned key_of(float logit) {
  const unsigned bits = __float_as_uint(logit + 0.0f);  // -0 equals 0
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ float logit_of(unsigned key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

// Whether this is the last block of its row to get here; its threads then see what the others wrote.
__device__ bool last_block(int* ticket) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(ticket, 1) == static_cast<int>(gridDim.x) - 1;
    if (last) *ticket = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}

__global__ void clear(SampleCall call) {
  wait_for_inputs();
  allow_successor();
  const long long row = blockIdx.x;
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += static_cast<int>(blockDim.x)) {
    call.weights[row * kBins + i] = 0;
    call.counts[row * kBins + i] = 0;
    call.first_weights[row * kBins + i] = 0;
    call.first_counts[row * kBins + i] = 0;
  }
  if (threadIdx.x == 0) call.rows[row] = {};
}

__global__ void __launch_bounds__(kThreads) find_largest(SampleCall call) {
  __shared__ unsigned long long partial[kThreads / kWarp];
  wait_for_inputs();
  allow_successor();
  const long long row = blockIdx.y;
  const float* logits = call.logits + row * call.row_stride;
  const long long begin = static_cast<long long>(blockIdx.x) * kSlice;
  const long long end = begin + kSlice < call.vocab ? begin + kSlice : call.vocab;
  unsigned long long best = 0;
  for (long long i = begin + threadIdx.x; i < end; i += kThreads) {
    const float logit = logits[i];
    if (isnan(logit)) report(call.fault, FaultKind::sampled_logit, i, 0);
    const unsigned long long one =
        static_cast<unsigned long long>(key_of(logit)) << 32 | (0xffffffffu - static_cast<unsigned>(i));
    best = one > best ? one : best;
  }
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const unsigned long long other = __shfl_xor_sync(0xffffffffu, best, step);
    best = other > best ? other : best;
  }
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = best;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (const unsigned long long other : partial) best = other > best ? other : best;
    atomicMax(&call.rows[row].largest, best);
  }
  if (!last_block(call.tickets + row)) return;
  if (threadIdx.x == 0) {
    call.positions[row * call.position_stride] += 1;
    call.ids[row * call.id_stride] = static_cast<int>(
        0xffffffffu -
        static_cast<unsigned>(*static_cast<volatile unsigned long long*>(&call.rows[row].largest)));
  }
}

// Walks the bins of one digit from the top to the one in which the sum passes the goal. One warp.
__device__ void walk(Row& row, const Sum* weights, const Sum* counts, int digit, bool by_count) {
  const int bins = 1 << digit_bits(digit);
  for (int top = bins - kWarp; top >= 0; top -= kWarp) {
    const int bin = top + kWarp - 1 - static_cast<int>(threadIdx.x);  // lane 0 has the highest
    const Sum weight = weights[bin];
    Sum amount = by_count ? counts[bin] : weight;
    Sum all = amount;
    Sum all_weights = weight;
    for (int step = 1; step < kWarp; step *= 2) {
      const Sum lower = __shfl_up_sync(0xffffffffu, all, step);
      const Sum lower_weights = __shfl_up_sync(0xffffffffu, all_weights, step);
      if (static_cast<int>(threadIdx.x) >= step) {
        all += lower;
        all_weights += lower_weights;
      }
    }
    const unsigned passed = __ballot_sync(0xffffffffu, row.before + all > row.goal);
    if (passed != 0) {
      const int lane = __ffs(static_cast<int>(passed)) - 1;
      if (static_cast<int>(threadIdx.x) == lane) {
        row.before += all - amount;
        row.before_weights += all_weights - weight;
        row.prefix = row.prefix << digit_bits(digit) | static_cast<unsigned>(bin);
      }
      __syncwarp();
      return;
    }
    const Sum sum = __shfl_sync(0xffffffffu, all, kWarp - 1);
    const Sum sum_weights = __shfl_sync(0xffffffffu, all_weights, kWarp - 1);
    if (threadIdx.x == 0) {
      row.before += sum;
      row.before_weights += sum_weights;
    }
    __syncwarp();
  }
}

__device__ void begin_search(const SampleCall& call, long long r, Search search, Sum goal) {
  Row& row = call.rows[r];
  if (threadIdx.x == 0) {
    row.prefix = 0;
    row.goal = goal;
    row.before = 0;
    row.before_weights = 0;
  }
  __syncwarp();
  walk(row, call.first_weights + r * kBins, call.first_counts + r * kBins, 0, search == Search::top_k);
}

// The goal of a search that follows others: what is kept must be known.
__device__ Sum goal_of(const SampleCall& call, long long r, Search search) {
  const Row& row = call.rows[r];
  if (search == Search::top_k) return static_cast<Sum>(call.top_k - 1);
  if (search == Search::top_p) return ops::kept_goal(call.top_p, row.limit) - 1;
  Sum kept = row.limit;
  if (call.min_p > 0 && row.least_weights < kept) kept = row.least_weights;
  return ops::draw_target(call.seed, static_cast<Sum>(call.positions[r * call.position_stride]), kept);
}

// After the last digit: how much lies up to the token found, itself included.
__device__ void end_search(const SampleCall& call, long long r, Search search) {
  Row& row = call.rows[r];
  if (threadIdx.x == 0) {
    const float largest = logit_of(static_cast<unsigned>(row.largest >> 32));
    const Sum weight = ops::draw_weight(logit_of(row.prefix), largest, call.temperature);
    const Sum unit = search == Search::top_k ? 1 : weight;
    row.chosen = (row.goal - row.before) / unit;
    if (search != Search::draw) row.limit = row.before_weights + (row.chosen + 1) * weight;
  }
  __syncwarp();
}

// Counts one digit of the keys that begin with the digits found, then looks up the goal in it.
template <int digit>
__global__ void __launch_bounds__(kThreads)
    search_digit(SampleCall call, Search search, Search next, bool has_next) {
  __shared__ Sum weights[kBins];
  __shared__ unsigned counts[kBins];
  wait_for_inputs();
  allow_successor();
  const long long r = blockIdx.y;
  Row& row = call.rows[r];
  const float* logits = call.logits + r * call.row_stride;
  for (int i = threadIdx.x; i < kBins; i += kThreads) {
    weights[i] = 0;
    counts[i] = 0;
  }
  __syncthreads();
  const float largest = logit_of(static_cast<unsigned>(row.largest >> 32));
  const bool finite = isfinite(largest);
  const unsigned prefix = row.prefix;
  const double least = call.min_p / ops::kWeightUnit;
  const long long begin = static_cast<long long>(blockIdx.x) * kSlice;
  const long long end = begin + kSlice < call.vocab ? begin + kSlice : call.vocab;
  Sum kept = 0;
  for (long long i = begin + threadIdx.x; finite && i < end; i += kThreads) {
    const float logit = logits[i] + 0.0f;
    const unsigned key = key_of(logit);
    if (digit > 0 && key >> digit_shift(digit - 1) != prefix) continue;
    const Sum weight = ops::draw_weight(logit, largest, call.temperature);
    if (digit == 0 && static_cast<double>(weight) >= least) kept += weight;
    const unsigned bin = key >> digit_shift(digit) & ((1u << digit_bits(digit)) - 1);
    atomicAdd(&counts[bin], 1u);
    if (weight != 0) atomicAdd(&weights[bin], weight);
  }
  __syncthreads();
  Sum* all_weights = (digit == 0 ? call.first_weights : call.weights) + r * kBins;
  Sum* all_counts = (digit == 0 ? call.first_counts : call.counts) + r * kBins;
  for (int i = threadIdx.x; i < kBins; i += kThreads)
    if (counts[i] != 0) {
      atomicAdd(&all_counts[i], static_cast<Sum>(counts[i]));
      atomicAdd(&all_weights[i], weights[i]);
    }
  if (digit == 0) {
    for (int step = kWarp / 2; step > 0; step /= 2) kept += __shfl_xor_sync(0xffffffffu, kept, step);
    if (threadIdx.x % kWarp == 0 && kept != 0) atomicAdd(&row.least_weights, kept);
  }
  if (!last_block(call.tickets + r) || !finite) return;
  if (threadIdx.x < kWarp) {
    if (digit == 0) {
      Sum total = 0;
      for (int i = threadIdx.x; i < kBins; i += kWarp) total += all_weights[i];
      for (int step = kWarp / 2; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
      if (threadIdx.x == 0) row.limit = total;
      __syncwarp();
      begin_search(call, r, search, goal_of(call, r, search));
    } else {
      walk(row, all_weights, all_counts, digit, search == Search::top_k);
      if (digit == kDigits - 1) {
        end_search(call, r, search);
        if (has_next) begin_search(call, r, next, goal_of(call, r, next));
      }
    }
  }
  __syncthreads();
  if (digit > 0)  // clean for the next digit
    for (int i = threadIdx.x; i < kBins; i += kThreads) all_weights[i] = all_counts[i] = 0;
}

// Tokens of a block's slice with the key found, before thread `threadIdx.x` of pass `begin`; adds the pass to
// `before`.
__device__ Sum matches_before(bool match, Sum& before, int* found) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const unsigned matches = __ballot_sync(0xffffffffu, match);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) found[warp] = __popc(matches);
  __syncthreads();
  Sum mine = before + static_cast<Sum>(__popc(matches & ((1u << threadIdx.x % kWarp) - 1)));
  for (int w = 0; w < kThreads / kWarp; ++w) {
    if (w < warp) mine += static_cast<Sum>(found[w]);
    before += static_cast<Sum>(found[w]);
  }
  return mine;
}

// Which of the tokens with the key found: the one with so many of them before it. Every block counts its
// slice; the last one knows the slice then, and looks through it in order.
__global__ void __launch_bounds__(kThreads) pick(SampleCall call) {
  __shared__ int found[kThreads / kWarp];
  wait_for_inputs();
  allow_successor();
  const long long r = blockIdx.y;
  const Row& row = call.rows[r];
  const bool finite = isfinite(logit_of(static_cast<unsigned>(row.largest >> 32)));
  const float* logits = call.logits + r * call.row_stride;
  const auto matches = [&](long long i) { return i < call.vocab && key_of(logits[i]) == row.prefix; };
  Sum* slices = call.weights + r * call.slices;
  const long long begin = static_cast<long long>(blockIdx.x) * kSlice;
  Sum count = 0;
  for (int i = 0; i < kSlice; i += kThreads) matches_before(matches(begin + i + threadIdx.x), count, found);
  if (threadIdx.x == 0) slices[blockIdx.x] = count;
  if (!last_block(call.tickets + r) || !finite) return;
  Sum before = 0;
  long long slice = 0;
  while (before + slices[slice] <= row.chosen) before += slices[slice++];
  for (int i = 0; i < kSlice; i += kThreads) {
    const long long at = slice * kSlice + i + threadIdx.x;
    const bool match = matches(at);
    if (matches_before(match, before, found) == row.chosen && match)
      call.ids[r * call.id_stride] = static_cast<int>(at);
  }
}

}  // namespace

}  // namespace sluice::backend::cuda::routing

namespace sluice::backend::cuda {

template <>
void run(Context& context, const ops::Sample& op) {
  using namespace routing;
  const auto rows = static_cast<unsigned>(op.logits.dim(0));
  SampleCall call{};
  call.logits = static_cast<const float*>(op.logits.data);
  call.row_stride = op.logits.strides[0];
  call.vocab = op.logits.dim(1);
  call.slices = divide_up<long long>(call.vocab, kSlice);
  call.positions = static_cast<int*>(op.positions.data);
  call.position_stride = op.positions.strides[0];
  call.ids = static_cast<int*>(op.ids.data);
  call.id_stride = op.ids.strides[0];
  call.temperature = op.temperature;
  call.top_p = op.top_p;
  call.min_p = op.min_p;
  call.top_k = op.top_k;
  call.seed = static_cast<unsigned long long>(op.seed);
  // The counts of slices take the place of the histograms at the end.
  const std::size_t sums = rows * static_cast<std::size_t>(call.slices > kBins ? call.slices : kBins);
  call.weights =
      reinterpret_cast<Sum*>(context.scratch(sizeof(Sum) * (sums + 3 * kBins * rows) + sizeof(Row) * rows));
  call.counts = call.weights + sums;
  call.first_weights = call.counts + static_cast<std::size_t>(kBins) * rows;
  call.first_counts = call.first_weights + static_cast<std::size_t>(kBins) * rows;
  call.rows = reinterpret_cast<Row*>(call.first_counts + static_cast<std::size_t>(kBins) * rows);
  call.tickets = context.counters();
  call.fault = context.fault();

  const Grid all{dim3(static_cast<unsigned>(call.slices), rows), dim3(kThreads)};
  launch(context, clear, {dim3(rows), dim3(kThreads)}, call);
  launch(context, find_largest, all, call);
  if (op.temperature == 0) return;
  Search order[3];
  int searches = 0;
  if (op.top_k > 0 && op.top_k < call.vocab) order[searches++] = Search::top_k;
  if (op.top_p < 1) order[searches++] = Search::top_p;
  order[searches++] = Search::draw;
  launch(context, search_digit<0>, all, call, order[0], order[0], false);
  for (int s = 0; s < searches; ++s) {
    const bool has_next = s + 1 < searches;
    const Search next = has_next ? order[s + 1] : order[s];
    launch(context, search_digit<1>, all, call, order[s], next, has_next);
    launch(context, search_digit<2>, all, call, order[s], next, has_next);
  }
  launch(context, pick, all, call);
}

}  // namespace sluice::backend::cuda
