#include "sluice/ops/view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "expect_error.h"
#include "ops/overlap.h"

namespace sluice::ops {
namespace {

// A [2,3,4] tensor whose elements are their own positions.
class Views : public ::testing::Test {
 protected:
  Views() { std::iota(values_.begin(), values_.end(), 0.0f); }
  View all() { return {values_.data(), DType::f32, {2, 3, 4}}; }
  static float first(const ConstView& view) { return *static_cast<const float*>(view.data); }

  std::vector<float> values_ = std::vector<float>(24);
};

TEST(Shapes, CountAndPrint) {
  EXPECT_EQ(Shape({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape({5, 0, 7}).elements(), 0);
  EXPECT_EQ(to_string(Shape{2, 3}), "[2,3]");
  EXPECT_EQ(contiguous_strides({2, 3, 4}), Shape({12, 4, 1}));
}

TEST(Shapes, HaveALargestRank) {
  Shape shape{1, 2, 3, 4, 5, 6};
  expect_error(ErrorKind::input, {"6 dimensions"}, [&] { shape.push_back(7); });
}

TEST_F(Views, DefaultIsAbsent) {
  EXPECT_FALSE(View().present());
  EXPECT_TRUE(all().present());
}

TEST_F(Views, IndexDropsTheFirstDimension) {
  const View row = all()[1];
  EXPECT_EQ(row.shape, Shape({3, 4}));
  EXPECT_EQ(first(row), 12);
  EXPECT_EQ(first(row[2]), 20);
  expect_error(ErrorKind::internal, {"index 2", "[2,3,4]"}, [&] { all()[2]; });
  expect_error(ErrorKind::internal, {"index -1"}, [&] { all()[-1]; });
  expect_error(ErrorKind::internal, {"index 0", "[4]"}, [&] { row[2][0]; });
}

TEST_F(Views, ColumnsKeepTheOuterStrides) {
  const View part = all().columns(1, 2, {2});
  EXPECT_EQ(part.shape, Shape({2, 3, 2}));
  EXPECT_EQ(part.strides, Shape({12, 4, 1}));
  EXPECT_EQ(first(part[1][2]), 21);
  EXPECT_FALSE(part.contiguous());
  const View heads = all().columns(0, 4, {2, 2});
  EXPECT_EQ(heads.shape, Shape({2, 3, 2, 2}));
  EXPECT_EQ(first(heads[1][1][1]), 18);
  EXPECT_TRUE(heads.contiguous());
  expect_error(ErrorKind::internal, {"columns 3+2", "[2,3,4]"}, [&] { all().columns(3, 2, {2}); });
  expect_error(ErrorKind::internal, {"columns -1+2"}, [&] { all().columns(-1, 2, {2}); });
  expect_error(ErrorKind::internal, {"columns 0+4", "[3]"}, [&] { all().columns(0, 4, {3}); });
  expect_error(ErrorKind::internal, {"columns 0+1"}, [&] { View().columns(0, 1, {1}); });
}

TEST_F(Views, RowsCutTheFirstDimension) {
  const View tail = all().rows(1, 1);
  EXPECT_EQ(tail.shape, Shape({1, 3, 4}));
  EXPECT_EQ(first(tail), 12);
  EXPECT_EQ(all().rows(2, 0).elements(), 0);
  expect_error(ErrorKind::internal, {"rows 1+2", "[2,3,4]"}, [&] { all().rows(1, 2); });
  expect_error(ErrorKind::internal, {"rows -1+1"}, [&] { all().rows(-1, 1); });
}

TEST_F(Views, ReshapeNeedsContiguousElements) {
  const View flat = all().reshaped({6, 4});
  EXPECT_EQ(first(flat[5]), 20);
  expect_error(ErrorKind::internal, {"[2,3,4]", "[5,5]"}, [&] { all().reshaped({5, 5}); });
  expect_error(ErrorKind::internal, {"[2,3,2]", "[12]"}, [&] { all().columns(0, 2, {2}).reshaped({12}); });
}

TEST_F(Views, ContiguousIgnoresStridesOfSingleRows) {
  EXPECT_TRUE(View(values_.data(), DType::f32, {1, 4}, {100, 1}).contiguous());
  EXPECT_FALSE(View(values_.data(), DType::f32, {2, 4}, {100, 1}).contiguous());
}

TEST_F(Views, OverlapOfRanges) {
  EXPECT_TRUE(overlaps(all(), all()));
  EXPECT_TRUE(overlaps(all(), all()[1]));
  EXPECT_FALSE(overlaps(all()[0], all()[1]));
  EXPECT_FALSE(overlaps(all().rows(0, 1), all().rows(1, 1)));
  EXPECT_FALSE(overlaps(all(), View()));
  EXPECT_FALSE(overlaps(all(), all().rows(1, 0)));
}

TEST_F(Views, ColumnsOfOneTensorOverlapOnlyWhereTheyShareElements) {
  const View rows = all().reshaped({6, 4});
  const View left = rows.columns(0, 2, {2});
  const View right = rows.columns(2, 2, {2});
  EXPECT_FALSE(overlaps(left, right));
  EXPECT_FALSE(overlaps(right, left));
  EXPECT_TRUE(overlaps(left, rows.columns(1, 2, {2})));
  EXPECT_TRUE(overlaps(rows.columns(1, 2, {2}), left));
  EXPECT_TRUE(overlaps(rows, right));
  // Shifted by a row they are still different columns.
  EXPECT_FALSE(overlaps(left.rows(1, 5), right.rows(0, 5)));
  // The same bytes with another element size.
  EXPECT_TRUE(overlaps(left, View(values_.data(), DType::bf16, {6, 4}, {8, 1})));
  EXPECT_FALSE(overlaps(right, View(values_.data(), DType::bf16, {6, 4}, {8, 1})));
}

TEST_F(Views, IdenticalMeansTheSameElementsInTheSameOrder) {
  EXPECT_TRUE(identical(all(), all()));
  EXPECT_FALSE(identical(all(), all().reshaped({6, 4})));
  EXPECT_FALSE(identical(all().rows(0, 1), all().rows(1, 1)));
  EXPECT_FALSE(identical(all(), View(values_.data(), DType::i32, {2, 3, 4})));
}

}  // namespace
}  // namespace sluice::ops
