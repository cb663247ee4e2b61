// The reference's ops on packed latents equal the ops on plain latents plus packing, which are compared with
// independent implementations.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "runner/bound_op.h"
#include "runner/case.h"
#include "runner/compare.h"
#include "runner/random_tensor.h"
#include "sluice/ops/attention/mla_turboquant_attention.h"
#include "sluice/ops/cache/mla_turboquant_append.h"

namespace sluice::runner {
namespace {

class LatentParts : public ::testing::Test {
 protected:
  OpFile run(std::string_view op, const OpFile& file) { return run_op(*backend_, op, file); }

  // Calls check(file) for every case of one sequence without the given fields.
  template <class Op, class F>
  static void for_each_case(std::initializer_list<const char*> without, F&& check) {
    int checked = 0;
    for (const Case& one : cases<Op>()) {
      const std::uint64_t seed = case_seed(Op::kName, one.label);
      const OpFile file = one.make(seed);
      if (std::ranges::any_of(without, [&](const char* field) { return file.tensors.contains(field); }))
        continue;
      SCOPED_TRACE(fmt::format("[{}] seed {}", one.label, seed));
      check(file);
      if (HasFailure()) return;
      ++checked;
    }
    EXPECT_GT(checked, 5);
  }

  static HostTensor reshaped(HostTensor tensor, const ops::Shape& shape) {
    tensor.shape = shape;
    return tensor;
  }
  static void copy(const OpFile& from, OpFile& to, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (from.tensors.contains(name)) to.tensors[name] = from.tensors.at(name);
      if (from.attributes.contains(name)) to.attributes[name] = from.attributes.at(name);
    }
  }

  std::unique_ptr<ops::Backend> backend_ = ops::make_backend("reference");
};

TEST_F(LatentParts, AttentionIsThatOverDecodedRows) {
  for_each_case<ops::MlaTurboquantAttention>(
      {"seq_starts", "page_table", "latent_new"}, [&](const OpFile& file) {
        const HostTensor& codes = file.tensors.at("latent_codes");
        const std::int64_t rows = codes.shape[0];
        OpFile packed;
        copy(file, packed, {"signs", "bits"});
        packed.tensors["codes"] = reshaped(codes, {1, rows, codes.shape[1]});
        packed.tensors["norms"] = reshaped(file.tensors.at("latent_norms"), {1, rows});
        OpFile plain;
        copy(file, plain, {"q_latent", "q_pe", "rope_cache", "start", "scale"});
        plain.tensors["latent_cache"] = reshaped(run("turboquant_decode", packed).tensors.at("out"),
                                                 {rows, file.tensors.at("q_latent").shape[2]});
        const HostTensor want = run("mla_attention", plain).tensors.at("out");
        const HostTensor have = run("mla_turboquant_attention", file).tensors.at("out");
        EXPECT_LE(relative_l2(have, want), have.dtype == ops::DType::f32 ? 1e-6 : 1e-3);
      });
}

TEST_F(LatentParts, AppendingEncodesLatentsAndCopiesTheRest) {
  for_each_case<ops::MlaTurboquantAppend>({"seq_starts", "page_table"}, [&](const OpFile& file) {
    const HostTensor& latents = file.tensors.at("kv_latent");
    const std::int64_t tokens = latents.shape[0];
    const std::int64_t width = latents.shape[1];
    OpFile plain;
    copy(file, plain, {"signs", "bits", "norm"});
    plain.tensors["x"] = reshaped(latents, {tokens, 1, width});
    const OpFile encoded = run("turboquant_encode", plain);
    OpFile appended;
    copy(file, appended, {"kv_latent", "k_pe", "rope_cache", "start"});
    appended.tensors["latent_cache"] =
        constant(ops::DType::f32, {file.tensors.at("rope_cache").shape[0], width}, 0);
    const OpFile have = run("mla_turboquant_append", file);
    EXPECT_EQ(have.tensors.at("rope_cache").bytes,
              run("mla_append", appended).tensors.at("rope_cache").bytes);
    // Rows from `start` on are the encoded ones, all others are unchanged.
    const auto expect_rows = [&](const char* cache, const HostTensor& rows) {
      std::vector<std::byte> want = file.tensors.at(cache).bytes;
      const std::size_t row = rows.bytes.size() / static_cast<std::size_t>(tokens);
      const std::size_t start = std::stoul(file.attributes.at("start"));
      std::ranges::copy(rows.bytes, want.begin() + static_cast<std::ptrdiff_t>(start * row));
      EXPECT_TRUE(have.tensors.at(cache).bytes == want) << cache;
    };
    expect_rows("latent_codes", encoded.tensors.at("codes"));
    expect_rows("latent_norms", encoded.tensors.at("norms"));
  });
}

}  // namespace
}  // namespace sluice::runner
