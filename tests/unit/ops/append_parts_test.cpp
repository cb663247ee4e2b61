// The ops that rotate and append give the bits of the two ops that they combine, on every backend.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "cuda_device.h"
#include "runner/bound_op.h"
#include "runner/case.h"
#include "runner/random_tensor.h"
#include "sluice/ops/cache/qk_norm_rope_append.h"
#include "sluice/ops/cache/qk_norm_rope_turboquant_append.h"

namespace sluice::runner {
namespace {

class AppendParts : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "cuda") {
      SLUICE_NEED_CUDA();
    }
    backend_ = ops::make_backend(GetParam(), {.threads = 2});
  }
  // qk_norm_rope, then `append` with the resulting keys.
  OpFile in_parts(std::string_view append, const OpFile& file) {
    OpFile first;
    for (const char* field : {"q", "k", "q_weight", "k_weight", "inv_freq", "positions"})
      first.tensors[field] = file.tensors.at(field);
    for (const char* attribute : {"eps", "mscale"})
      first.attributes[attribute] = file.attributes.at(attribute);
    OpFile turned = run_op(*backend_, "qk_norm_rope", first);
    OpFile second = file;
    second.tensors["k"] = turned.tensors.at("k");
    for (const char* field : {"q", "q_weight", "k_weight", "inv_freq", "positions"})
      second.tensors.erase(field);
    for (const char* attribute : {"eps", "mscale"}) second.attributes.erase(attribute);
    for (auto& [name, tensor] : run_op(*backend_, append, second).tensors) turned.tensors[name] = tensor;
    return turned;
  }
  template <class Op>
  void check(std::string_view append, const OpFile& file) {
    const OpFile want = in_parts(append, file);
    const OpFile have = run_op(*backend_, Op::kName, file);
    ASSERT_EQ(have.tensors.size(), want.tensors.size());
    for (const auto& [name, tensor] : want.tensors)
      EXPECT_TRUE(have.tensors.at(name).bytes == tensor.bytes) << name;
  }
  // Every case, and again with arbitrary keys and positions.
  template <class Op>
  void check_all(std::string_view append) {
    for (const Case& one : cases<Op>()) {
      const std::uint64_t seed = case_seed(Op::kName, one.label);
      SCOPED_TRACE(fmt::format("[{}] seed {}", one.label, seed));
      OpFile file = one.make(seed);
      check<Op>(append, file);
      Random random(seed + 1);
      HostTensor& k = file.tensors.at("k");
      k = normal(random, k.dtype, k.shape, 3);
      HostTensor& positions = file.tensors.at("positions");
      positions = integers(random, positions.shape, 262144);
      check<Op>(append, file);
      if (HasFailure()) return;
    }
  }

  std::unique_ptr<ops::Backend> backend_;
};

TEST_P(AppendParts, GiveTheSameBits) {
  check_all<ops::QkNormRopeAppend>("kv_append");
}

TEST_P(AppendParts, GiveTheSameBitsPacked) {
  check_all<ops::QkNormRopeTurboquantAppend>("turboquant_append");
}

INSTANTIATE_TEST_SUITE_P(Backends, AppendParts, ::testing::Values("reference", "cpu", "cuda"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice::runner
