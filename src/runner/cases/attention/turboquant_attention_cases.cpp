#include "sluice/ops/attention/turboquant_attention.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/integer_cast.h"
#include "runner/case.h"
#include "runner/paged_case.h"
#include "runner/random_tensor.h"
#include "sluice/ops/fresh_rows.h"

namespace sluice::runner {

namespace {

struct Settings {
  std::int64_t tokens = 1;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t width = 64;
  std::int64_t slots = 96;
  std::int64_t length = 77;
  std::int64_t ring_start = 0;
  std::int64_t window = 0;
  std::int64_t k_bits = 4;
  std::int64_t v_bits = 4;
  bool rotated = false;
  bool signs = true;
  bool fresh = false;  // the call's own rows are passed beside the cache
  ops::DType type = ops::DType::f32;
  double sharpness = 1;  // the spread of the scores
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// BF16 numbers as bytes.
HostTensor numbers(Random& random, const ops::Shape& bytes) {
  HostTensor tensor(ops::DType::u8, bytes);
  tensor.bytes = normal(random, ops::DType::bf16, {bytes.elements() / 2}).bytes;
  return tensor;
}

// The caches of `pool` sequences, or of one without a pool dimension.
void add_caches(OpFile& file, Random& random, const Settings& s, std::int64_t pool) {
  const auto shape = [&](std::initializer_list<std::int64_t> inner) {
    ops::Shape all;
    if (pool > 0) all.push_back(pool);
    for (const std::int64_t dim : inner) all.push_back(dim);
    return all;
  };
  const double norm = std::sqrt(s.width);
  for (const std::string side : {"k", "v"}) {
    const std::int64_t bits = side == "k" ? s.k_bits : s.v_bits;
    const ops::Shape codes = shape({s.kv_heads, s.slots, s.width * bits / 8});
    file.tensors[side + "_codes"] =
        bits == 16 ? numbers(random, codes) : random_bytes(random, ops::DType::u8, codes);
    file.tensors[side + "_norms"] =
        uniform(random, ops::DType::f32, shape({s.kv_heads, s.slots}), 0.5 * norm, 1.5 * norm);
  }
}

OpFile make(std::uint64_t seed, const Settings& s, std::int64_t pool = 0) {
  Random random(seed);
  OpFile file;
  file.tensors["q"] = normal(random, s.type, {s.tokens, s.heads, s.width});
  if (s.signs) file.tensors["signs"] = random_bytes(random, ops::DType::u8, {s.width / 8});
  add_caches(file, random, s, pool);
  if (s.fresh)
    for (const char* side : {"k_new", "v_new"})
      file.tensors[side] = normal(random, s.type, {s.tokens, s.kv_heads, s.width});
  file.attributes["k_bits"] = std::to_string(s.k_bits);
  file.attributes["v_bits"] = std::to_string(s.v_bits);
  file.attributes["window"] = std::to_string(s.window);
  file.attributes["scale"] = fmt::format("{}", s.sharpness / std::sqrt(s.width));
  file.attributes["rotated"] = s.rotated ? "1" : "0";
  if (pool > 0) return file;
  file.attributes["length"] = std::to_string(s.length);
  file.attributes["ring_start"] = std::to_string(s.ring_start);
  // Poison the rows that no query reads.
  const std::int64_t read_end = s.fresh ? ops::first_fresh_row(s.length - 1, s.length - s.tokens) : s.length;
  const std::int64_t seen = s.length - s.tokens + 1;
  const std::int64_t first = s.window > 0 && seen > s.window ? seen - s.window : 0;
  for (std::int64_t i = 0; i < s.kv_heads * s.slots; ++i) {
    const std::int64_t logical = (i % s.slots - s.ring_start + s.slots) % s.slots;
    if (logical >= first && logical < read_end) continue;
    set(file.tensors["k_norms"], i, kNan);
    set(file.tensors["v_norms"], i, kNan);
  }
  return file;
}

// Four sequences, one of them empty and one on a wrapped ring, in a pool of five.
OpFile make_sequences(std::uint64_t seed, bool slots, bool fresh) {
  Settings s;
  s.tokens = 14;
  s.window = 40;
  s.fresh = fresh;
  OpFile file = make(seed, s, 5);
  file.tensors["seq_starts"] = indices({0, 3, 3, 4, 14});
  file.tensors["length"] = indices({3, 0, 96, 50});
  file.tensors["ring_start"] = indices({0, 0, 17, 0});
  if (slots) file.tensors["slots"] = indices({4, 2, 0, 1});
  return file;
}

// The same with starts instead of lengths, and without rings.
OpFile make_started_sequences(std::uint64_t seed) {
  OpFile file = make_sequences(seed, true, true);
  file.tensors.erase("length");
  file.tensors.erase("ring_start");
  file.tensors["start"] = indices({0, 0, 95, 40});
  return file;
}

void add_widths(std::vector<Settings>& table) {
  for (const std::int64_t bits : {2, 3, 4, 5, 6, 8})
    for (const std::int64_t width : {32, 64, 128, 256, 512, 1024}) {
      Settings s;
      s.k_bits = bits;
      s.v_bits = bits == 8 ? 3 : bits == 3 ? 8 : bits;
      s.width = width;
      s.tokens = 2;
      table.push_back(s);
    }
}

// BF16 queries of 128 and 256: several parts of the cache, wrapped rings, ragged tiles.
void add_bf16(std::vector<Settings>& table) {
  for (const auto& [k_bits, v_bits] : {std::pair{4, 4}, std::pair{8, 8}, std::pair{8, 4}, std::pair{4, 8},
                                       std::pair{2, 2}, std::pair{3, 5}, std::pair{5, 6}, std::pair{6, 3}})
    for (const std::int64_t width : {128, 256}) {
      Settings s;
      s.type = ops::DType::bf16;
      s.k_bits = k_bits;
      s.v_bits = v_bits;
      s.width = width;
      s.heads = 18;
      s.kv_heads = 1;
      s.slots = s.length = 1200;
      s.ring_start = 700;
      table.push_back(s);
      s.heads = 3;
      s.tokens = 50;
      s.slots = s.length = 230;
      s.ring_start = 100;
      table.push_back(s);
      s.window = 70;
      table.push_back(s);
    }
}

// Prompts long enough that a device may convert all rows to levels first.
void add_prompts(std::vector<Settings>& table) {
  for (const auto& [k_bits, v_bits] : {std::pair{4, 4}, std::pair{8, 8}, std::pair{8, 4}})
    for (const std::int64_t width : {128, 256}) {
      Settings s;
      s.type = ops::DType::bf16;
      s.k_bits = k_bits;
      s.v_bits = v_bits;
      s.width = width;
      s.heads = 6;
      s.tokens = 130;
      s.slots = s.length = 333;
      s.ring_start = 100;
      table.push_back(s);
      s.window = 90;
      table.push_back(s);
      s.ring_start = 0;
      s.fresh = true;
      table.push_back(s);
      s.window = 0;
      s.slots = 340;
      table.push_back(s);
    }
}

void add_shapes(std::vector<Settings>& table) {
  for (const std::int64_t tokens : {1, 2, 63, 64, 65}) {
    Settings s;
    s.tokens = tokens;
    table.push_back(s);
    s.window = 20;
    s.length = s.slots;
    s.ring_start = 33;
    table.push_back(s);
    s.type = ops::DType::bf16;
    table.push_back(s);
  }
  for (const std::int64_t heads : {1, 3, 5, 8, 24}) {  // query heads per KV head
    Settings s;
    s.heads = heads;
    s.kv_heads = 1;
    s.tokens = 3;
    s.width = 32;
    table.push_back(s);
  }
  for (const std::int64_t length : {1, 15, 16, 17, 511, 512, 513, 1500}) {
    Settings s;
    s.slots = 1600;
    s.length = length;
    s.window = length == 1500 ? 700 : 0;
    s.heads = 2;
    s.width = 128;
    table.push_back(s);
  }
}

void add_modes(std::vector<Settings>& table) {
  for (const ops::DType type : {ops::DType::f32, ops::DType::bf16})
    for (const bool rotated : {false, true})
      for (const bool signs : {false, true}) {
        Settings s;
        s.type = type;
        s.rotated = rotated;
        s.signs = signs;
        table.push_back(s);
      }
  for (const double sharpness : {0.0, 0.01, 5.0, -1.0}) {
    Settings s;
    s.sharpness = sharpness;
    table.push_back(s);
  }
  Settings long_call;  // more queries than one pass takes, rows in several parts
  long_call.tokens = 257;
  long_call.length = 700;
  long_call.slots = 700;
  long_call.ring_start = 1;
  long_call.heads = 1;
  long_call.kv_heads = 1;
  long_call.width = 32;
  table.push_back(long_call);
}

// The call's rows beside the cache, on both sides of the boundaries of a tile and a part, and 16-bit rows.
void add_fresh(std::vector<Settings>& table) {
  for (const ops::DType type : {ops::DType::f32, ops::DType::bf16})
    for (const std::int64_t tokens : {1, 5, 64, 100, 200})
      for (const std::int64_t past : {0, 1, 63, 450, 600}) {
        Settings s;
        s.type = type;
        s.fresh = true;
        s.tokens = tokens;
        s.width = type == ops::DType::f32 ? 64 : 128;
        s.heads = 6;
        s.length = past + tokens;
        s.slots = s.length + 3;
        s.window = past == 450 ? 130 : 0;
        s.rotated = past == 63;
        table.push_back(s);
      }
  for (const auto& [k_bits, v_bits] : {std::pair{16, 16}, std::pair{8, 16}, std::pair{16, 3}})
    for (const bool fresh : {false, true}) {
      Settings s;
      s.tokens = 3;
      s.k_bits = k_bits;
      s.v_bits = v_bits;
      s.fresh = fresh;
      s.length = s.slots;
      s.ring_start = 91;
      table.push_back(s);
    }
}

std::string label(const Settings& s) {
  return fmt::format("{} tokens, {}/{} heads of {}, {}+{} bits, rows {} of {} from {}{}{}{}{}{}{}", s.tokens,
                     s.heads, s.kv_heads, s.width, s.k_bits, s.v_bits, s.length, s.slots, s.ring_start,
                     s.window > 0 ? fmt::format(", window {}", s.window) : "", s.rotated ? ", rotated" : "",
                     s.signs ? "" : ", no signs", s.fresh ? ", own rows" : "",
                     s.type == ops::DType::bf16 ? ", bf16" : "",
                     s.sharpness == 1 ? "" : fmt::format(", sharpness {}", s.sharpness));
}

}  // namespace

template <>
std::vector<Case> cases<ops::TurboquantAttention>() {
  std::vector<Settings> settings;
  add_widths(settings);
  add_bf16(settings);
  add_prompts(settings);
  add_shapes(settings);
  add_modes(settings);
  add_fresh(settings);
  std::vector<Case> table;
  table.reserve(settings.size() + 5);
  for (const Settings& s : settings)
    table.push_back({label(s), [=](std::uint64_t seed) { return make(seed, s); }});
  for (const bool fresh : {false, true})
    for (const bool slots : {false, true})
      table.push_back({fmt::format("sequences{}{}", slots ? " with slots" : "", fresh ? ", own rows" : ""),
                       [=](std::uint64_t seed) { return make_sequences(seed, slots, fresh); }});
  table.push_back({"sequences that start", make_started_sequences});
  add_paged_cases(table, ops::TurboquantAttention::kName);
  return table;
}

template <>
std::vector<BenchCase> bench_cases<ops::TurboquantAttention>() {
  std::vector<BenchCase> table;
  const auto add = [&](std::int64_t bits, std::int64_t tokens, std::int64_t rows, std::int64_t heads,
                       std::int64_t width) {
    Settings s;
    s.tokens = tokens;
    s.heads = heads;
    s.width = width;
    s.slots = s.length = rows;
    s.k_bits = s.v_bits = bits;
    s.type = ops::DType::bf16;
    const auto vectors = 2.0 * to_double(2 * rows);
    const std::int64_t sharing = heads / 2;
    table.push_back(
        {fmt::format("{} tokens on {} rows, {}/2 heads of {}, {} bits", tokens, rows, heads, width, bits),
         [=](std::uint64_t seed) { return make(seed, s); }, vectors * (to_double(width * bits) / 8 + 4),
         vectors * to_double(sharing * width * 2 * tokens)});
  };
  for (const std::int64_t heads : {16, 32}) add(4, 1, 262144, heads, 256);
  add(4, 1, 262144, 16, 512);
  for (const std::int64_t bits : {4, 8, 3}) add(bits, 1, 32768, 16, 256);
  add(4, 64, 32768, 16, 256);
  add_paged_bench_cases(table, ops::TurboquantAttention::kName, 256);
  return table;
}

}  // namespace sluice::runner
