// Paged caches give the bits of contiguous caches: every case of every op with a page table, over random
// tables with shared pages, with poison in all other memory.
#include "runner/paged_case.h"

#include <gtest/gtest.h>

#include "cuda_device.h"
#include "invariance.h"
#include "sluice/op_runner.h"

namespace sluice::runner {
namespace {

std::vector<std::string> ops_with_pages() {
  std::vector<std::string> names;
  for (const OpDescription& op : describe_ops())
    if (std::ranges::any_of(op.fields, [](const auto& field) { return field.name == "page_table"; }))
      names.push_back(op.name);
  return names;
}

void expect_same(ops::Backend& backend, const std::string& op, const PagedCase& both) {
  const OpFile flat = run_op(backend, op, both.flat);
  OpFile paged = run_op(backend, op, both.paged);
  both.flatten(paged);
  for (const auto& [name, tensor] : flat.tensors)
    EXPECT_TRUE(same_bits(tensor, paged.tensors.at(name))) << name;
}

// Every `step`-th case in pages of 64, 128 and 256 rows.
void check_op(ops::Backend& backend, const std::string& op, std::size_t step) {
  const OpTable table = table_of(op);
  std::size_t paged = 0;
  for (std::size_t i = 0; i < table.cases.size(); i += step) {
    const std::uint64_t seed = case_seed(op, table.cases[i].label);
    SCOPED_TRACE(fmt::format("{} [{}] seed {}", op, table.cases[i].label, seed));
    const OpFile file = table.cases[i].make(seed);
    if (file.tensors.contains("page_table")) continue;
    const PagedCase both = make_paged(op, file, std::int64_t{64} << i / step % 3, seed);
    if (!both.differs) continue;
    ++paged;
    expect_same(backend, op, both);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(paged, 0u);
}

// Four sequences of some hundred rows, so that each has several pages and reads or writes across their
// boundaries.
OpFile long_sequences(const std::string& op, std::uint64_t seed, ops::DType type) {
  constexpr std::int64_t kTokens = 200;
  Random random(seed);
  OpFile file;
  const auto rows = [&](const char* name, std::initializer_list<std::int64_t> shape) {
    file.tensors[name] = normal(random, type, shape);
  };
  if (op == "kv_append") {
    rows("k", {kTokens, 2, 64});
    rows("v", {kTokens, 2, 64});
  } else {
    rows("q", {kTokens, 6, 64});
    file.attributes["scale"] = "0.125";
  }
  rows("k_cache", {5, 700, 2, 64});
  rows("v_cache", {5, 700, 2, 64});
  file.tensors["seq_starts"] = indices({0, 130, 130, 131, 200});
  file.tensors["start"] = indices({100, 700, 699, 511});
  file.tensors["slots"] = indices({3, 1, 0, 4});
  return file;
}

class Paged : public ::testing::TestWithParam<std::string> {};

TEST_P(Paged, GivesTheBitsOfRowsInOnePieceOnTheCpu) {
  for (const bool exact : {true, false})
    check_op(*ops::make_backend("cpu", {.threads = 2, .exact = exact}), GetParam(), 1);
}

TEST_P(Paged, GivesTheBitsOfRowsInOnePieceOnTheReference) {
  check_op(*ops::make_backend("reference"), GetParam(), 4);
}

TEST_P(Paged, GivesTheBitsOfRowsInOnePieceOnTheGpu) {
  SLUICE_NEED_CUDA();
  check_op(*ops::make_backend("cuda"), GetParam(), 1);
}

INSTANTIATE_TEST_SUITE_P(Ops, Paged, ::testing::ValuesIn(ops_with_pages()),
                         [](const auto& info) { return info.param; });

void check_long_sequences(ops::Backend& backend) {
  for (const std::string op : {"kv_append", "attention"})
    for (const ops::DType type : {ops::DType::f32, ops::DType::bf16})
      for (const std::int64_t page_rows : {64, 128, 512}) {
        const auto seed = static_cast<std::uint64_t>(page_rows);
        SCOPED_TRACE(fmt::format("{} {} pages of {}", op, name(type), page_rows));
        const PagedCase both = make_paged(op, long_sequences(op, seed, type), page_rows, seed);
        ASSERT_TRUE(both.differs);
        expect_same(backend, op, both);
      }
}

TEST(PagedSequences, GiveTheSameBits) {
  check_long_sequences(*ops::make_backend("reference"));
  for (const bool exact : {true, false})
    check_long_sequences(*ops::make_backend("cpu", {.threads = 2, .exact = exact}));
}

TEST(PagedSequences, GiveTheSameBitsOnTheGpu) {
  SLUICE_NEED_CUDA();
  check_long_sequences(*ops::make_backend("cuda"));
}

// Two sequences that share their first page were made from one, and do share it.
TEST(PagedSequences, SharePages) {
  const PagedCase both = make_paged("attention", long_sequences("attention", 1, ops::DType::f32), 64, 1);
  const HostTensor& table = both.paged.tensors.at("page_table");
  const std::int64_t pages = table.shape[1];
  EXPECT_EQ(table.at(3 * pages), table.at(0 * pages));
}

}  // namespace
}  // namespace sluice::runner
