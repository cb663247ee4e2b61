// Every file of tests/data/ops has one op's inputs and the results of an independent implementation: inputs
// under their field names, attributes as "attr.NAME", expected outputs as "expect.FIELD", the op as "op" and
// the largest relative L2 error as "tolerance".
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "cuda_device.h"
#include "op_names.h"
#include "runner/bound_op.h"
#include "runner/compare.h"
#include "source_dir.h"

namespace sluice::runner {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kExpectPrefix = "expect.";

struct Golden {
  std::string op;
  double tolerance = 0;
  OpFile inputs;
  std::map<std::string, HostTensor> expected;
};

Golden read_golden(const fs::path& path) {
  Golden golden;
  const auto metadata = checkpoint::SafetensorsFile(path).metadata();
  golden.op = metadata.at("op");
  golden.tolerance = std::stod(metadata.at("tolerance"));
  golden.inputs = read_op_file(path);
  auto& tensors = golden.inputs.tensors;
  for (auto it = tensors.lower_bound(std::string(kExpectPrefix));
       it != tensors.end() && it->first.starts_with(kExpectPrefix); it = tensors.erase(it))
    golden.expected.emplace(it->first.substr(kExpectPrefix.size()), std::move(it->second));
  return golden;
}

bool is_float(ops::DType type) {
  return type == ops::DType::f32 || type == ops::DType::bf16 || type == ops::DType::f16;
}

class Goldens : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Goldens, Agree) {
  const auto& [file, backend_name] = GetParam();
  const Golden golden = read_golden(fs::path(test_data()) / "ops" / (file + ".safetensors"));
  ASSERT_FALSE(golden.expected.empty());
  if (backend_name == "cuda") {
    SLUICE_NEED_CUDA();
  }
  const auto backend = ops::make_backend(backend_name, {.threads = 2});
  const OpFile outputs = run_op(*backend, golden.op, golden.inputs);
  for (const auto& [field, want] : golden.expected) {
    ASSERT_TRUE(outputs.tensors.contains(field)) << golden.op << " has no output '" << field << "'";
    const HostTensor& have = outputs.tensors.at(field);
    ASSERT_EQ(have.shape, want.shape) << field;
    if (is_float(want.dtype))
      EXPECT_LE(relative_l2(have, want), golden.tolerance) << field;
    else
      EXPECT_EQ(have.bytes, want.bytes) << field;
  }
}

std::vector<std::string> golden_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(test_data()) / "ops"))
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, Goldens,
                         ::testing::Combine(::testing::ValuesIn(golden_files()),
                                            ::testing::Values("reference", "cpu", "cuda")),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param);
                         });

// Combined ops: the reference runs their parts, or other tests compare them with their parts.
const std::set<std::string> kMadeOfOthers{
    "delta_step",   "mla_turboquant_append", "mla_turboquant_attention",
    "qk_norm_rope", "qk_norm_rope_append",   "qk_norm_rope_turboquant_append"};

TEST(GoldenFiles, AreThereForEveryOtherOp) {
  std::set<std::string> missing;
  for (const std::string& op : op_names()) missing.insert(op);
  for (const std::string& file : golden_files())
    missing.erase(read_golden(fs::path(test_data()) / "ops" / (file + ".safetensors")).op);
  EXPECT_EQ(missing, kMadeOfOthers);
}

}  // namespace
}  // namespace sluice::runner
