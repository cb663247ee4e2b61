// The CUDA backend on this machine's device: every op against the reference, invariance within each class of
// kernels, and errors for bad contents or lack of memory. Skipped without a device.
#include <cmath>

#include "cuda_device.h"
#include "expect_error.h"
#include "invariance.h"
#include "op_names.h"
#include "runner/compare.h"
#include "sluice/ops/backend.h"

namespace sluice::runner {
namespace {

using ops::DType;
using Phase = ops::Phase;

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    SLUICE_NEED_CUDA();
    backend_ = ops::make_backend("cuda");
  }
  // Runs an op with a known result.
  void expect_usable() {
    OpFile file;
    file.tensors["a"] = constant(DType::f32, {3, 5}, 1.5);
    file.tensors["b"] = constant(DType::f32, {3, 5}, 2);
    const HostTensor sum = run_op(*backend_, "add", file).tensors.at("out");
    EXPECT_TRUE(same_bits(sum, constant(DType::f32, {3, 5}, 3.5)));
  }

  std::unique_ptr<ops::Backend> backend_;
};

class CudaOp : public Cuda, public ::testing::WithParamInterface<std::string> {
 protected:
  // Every case of the op in one class of kernels; its parts must give the bits of the complete call.
  void check_invariance(Phase phase, const PartCheck& check_part) {
    backend_ = ops::make_backend("cuda", {.phase = phase});
    const OpTable table = table_of(GetParam());
    for (const Case& one : table.cases) {
      SCOPED_TRACE(fmt::format("{} [{}]", table.op, one.label));
      const OpFile file = make_case(table, one);
      const OpFile together = run_op(*backend_, table.op, file);
      const OpFile again = run_op(*backend_, table.op, file);
      for (const auto& [name, tensor] : together.tensors)
        EXPECT_TRUE(same_bits(tensor, again.tensors.at(name))) << name << " on a second run";
      check_parts(*backend_, table, file, together, check_part);
      if (HasFailure()) return;
    }
  }
  void check_against_reference(Phase phase) {
    backend_ = ops::make_backend("cuda", {.phase = phase});
    const auto reference = ops::make_backend("reference");
    for (const Case& one : table_of(GetParam()).cases) {
      const std::uint64_t seed = case_seed(GetParam(), one.label);
      SCOPED_TRACE(fmt::format("{} [{}] seed {}", GetParam(), one.label, seed));
      const Verdict verdict = compare(*backend_, *reference, GetParam(), one.make(seed));
      EXPECT_TRUE(verdict.pass) << verdict.detail;
    }
  }
};

TEST_P(CudaOp, MatchesReference) {
  check_against_reference(Phase::automatic);
}
TEST_P(CudaOp, DecodeKernelsMatchReference) {
  check_against_reference(Phase::decode);
}
TEST_P(CudaOp, PrefillKernelsMatchReference) {
  check_against_reference(Phase::prefill);
}
TEST_P(CudaOp, DecodeIsInvariant) {
  check_invariance(Phase::decode, check_tokens);
}
TEST_P(CudaOp, PrefillIsInvariant) {
  check_invariance(Phase::prefill, check_prefix);
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaOp, ::testing::ValuesIn(op_names()),
                         [](const auto& info) { return info.param; });

TEST_F(Cuda, NamesABadTokenId) {
  OpFile file;
  file.tensors["table"] = constant(DType::f32, {5, 8}, 1);
  for (const std::int32_t id : {5, -1}) {
    file.tensors["ids"] = indices({0, id});
    expect_error(ErrorKind::input, {"ids", std::to_string(id), "0 to 4"},
                 [&] { run_op(*backend_, "embed", file); });
    expect_usable();
  }
}

TEST_F(Cuda, NamesABadExpert) {
  OpFile file;
  file.tensors["x"] = constant(DType::f32, {1, 32}, 1);
  file.tensors["w"] = constant(DType::f32, {3, 16, 32}, 1);
  for (const std::int32_t expert : {3, -1}) {
    file.tensors["experts"] = indices({0, expert});
    file.tensors["experts"].shape = {1, 2};
    expect_error(ErrorKind::input, {"experts", std::to_string(expert), "0 to 2"},
                 [&] { run_op(*backend_, "expert_matmul", file); });
    expect_usable();
  }
}

TEST_F(Cuda, NamesARowPastTheCache) {
  OpFile file;
  for (const char* name : {"k", "v"}) {
    file.tensors[name] = constant(DType::f32, {2, 1, 32}, 1);
    file.tensors[std::string(name) + "_cache"] = constant(DType::f32, {1, 4, 1, 32}, 0);
  }
  file.tensors["seq_starts"] = indices({0, 2});
  file.tensors["start"] = indices({3});
  expect_error(ErrorKind::input, {"cache row", "0 to 3"}, [&] { run_op(*backend_, "kv_append", file); });
  expect_usable();
}

TEST_F(Cuda, NamesATokenOutsideTheSums) {
  OpFile file;
  file.tensors["bucket_out"] = constant(DType::f32, {2, 8}, 1);
  file.tensors["weights"] = constant(DType::f32, {2}, 1);
  file.tensors["sum"] = constant(DType::f32, {3, 8}, 0);
  file.tensors["token_idx"] = indices({1, 3});
  expect_error(ErrorKind::input, {"token_idx", "3", "0 to 2"},
               [&] { run_op(*backend_, "moe_scatter_add", file); });
  expect_usable();
}

TEST_F(Cuda, NamesNanAmongRouterLogits) {
  OpFile file;
  file.tensors["logits"] = constant(DType::f32, {3, 40}, 1);
  set(file.tensors["logits"], 2 * 40 + 37, NAN);
  file.attributes["k"] = "4";
  expect_error(ErrorKind::input, {"logits", "token 2", "NaN"},
               [&] { run_op(*backend_, "route_softmax", file); });
  expect_usable();
  file.tensors["bias"] = constant(DType::f32, {40}, 0);
  expect_error(ErrorKind::input, {"logits", "token 2", "NaN"},
               [&] { run_op(*backend_, "route_sigmoid", file); });
  expect_usable();
}

TEST_F(Cuda, SurvivesRunningOutOfMemory) {
  expect_error(ErrorKind::resource, {}, [&] { (void)backend_->allocate(std::size_t{1} << 60); });
  expect_usable();
}

TEST_F(Cuda, ReplaysARecordedProgramOverNewContents) {
  constexpr std::int64_t kWidth = 256;
  constexpr std::size_t kBytes = kWidth * sizeof(float);
  const ops::Buffer a = backend_->allocate(kBytes);
  const ops::Buffer b = backend_->allocate(kBytes);
  const auto view = [](const ops::Buffer& buffer) {
    return ops::View(buffer.data(), DType::f32, {1, kWidth});
  };
  // Adds a to b three times.
  ops::Add op;
  op.a = view(b);
  op.b = view(a);
  op.out = view(b);
  const auto program = backend_->record([&] {
    for (int i = 0; i < 3; ++i) backend_->run(op);
  });
  for (const float step : {1.0f, -2.5f, 7.0f}) {
    const std::vector<float> steps(kWidth, step);
    const std::vector<float> begin(kWidth, 10.0f);
    backend_->upload(a.data(), steps.data(), kBytes);
    backend_->upload(b.data(), begin.data(), kBytes);
    program->run();
    std::vector<float> end(kWidth, NAN);
    backend_->download(end.data(), b.data(), kBytes);
    EXPECT_EQ(end, std::vector<float>(kWidth, 10.0f + 3 * step));
  }
}

}  // namespace
}  // namespace sluice::runner
