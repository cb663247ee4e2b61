#include "checkpoint/safetensors_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "checkpoint/safetensors.h"
#include "expect_error.h"
#include "printed_seed.h"
#include "temporary_folder.h"

namespace sluice::checkpoint {
namespace {

std::vector<std::byte> random_bytes(size_t count, std::mt19937& random) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(SafetensorsWriter, RoundTrip) {
  const TemporaryFolder folder;
  std::mt19937 random(printed_seed());
  const std::vector<TensorInfo> tensors = {{"z", FileDType::bf16, {3, 5}},
                                           {"scalar", FileDType::f64, {}},
                                           {"empty", FileDType::f32, {0, 7}},
                                           {"odd \"é\"", FileDType::u8, {3}},
                                           {"a", FileDType::u32, {2, 2, 2}}};
  const auto path = folder.path() / "m.safetensors";
  SafetensorsWriter writer(path, tensors, {{"format", "mlx"}, {"k", "v"}});
  std::map<std::string, std::vector<std::byte>> written;
  for (const TensorInfo& tensor : tensors) {
    auto bytes = random_bytes(*size_bytes(tensor), random);
    const size_t half = bytes.size() / 2;
    writer.write(tensor.name, std::span(bytes).first(half));
    writer.write(tensor.name, std::span(bytes).subspan(half));
    written[tensor.name] = std::move(bytes);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.finish();

  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  EXPECT_EQ(file.tensors().front().file_offset % 8, 0u);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "mlx"}, {"k", "v"}}));
  for (const TensorInfo& tensor : tensors) {
    const TensorEntry* read = file.find(tensor.name);
    ASSERT_NE(read, nullptr) << tensor.name;
    EXPECT_EQ(read->dtype, tensor.dtype);
    EXPECT_EQ(read->shape, tensor.shape);
    EXPECT_TRUE(std::equal(read->data.begin(), read->data.end(), written[tensor.name].begin(),
                           written[tensor.name].end()));
  }
}

TEST(SafetensorsWriter, EmptyTensorsNeedNoWrite) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.safetensors";
  SafetensorsWriter writer(path, {{"e", FileDType::u8, {0}}, {"a", FileDType::u8, {1}}});
  writer.write("a", std::vector<std::byte>(1, std::byte{42}));
  writer.finish();
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), 2u);
  const TensorEntry* empty = file.find("e");
  const TensorEntry* one = file.find("a");
  ASSERT_TRUE(empty != nullptr && one != nullptr);
  EXPECT_EQ(empty->shape, (std::vector<std::int64_t>{0}));
  EXPECT_TRUE(empty->data.empty());
  ASSERT_EQ(one->data.size(), 1u);
  EXPECT_EQ(one->data[0], std::byte{42});
}

TEST(SafetensorsWriter, RefusesWritesThatDoNotMatchTheDeclaration) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes(2);
  {
    SafetensorsWriter writer(folder.path() / "m", {{"a", FileDType::u8, {2}}, {"b", FileDType::u8, {2}}});
    expect_error(ErrorKind::internal, {"'b'", "expected 'a'"}, [&] { writer.write("b", bytes); });
    writer.write("a", bytes);
    expect_error(ErrorKind::internal, {"'a'", "2 bytes too many"}, [&] { writer.write("a", bytes); });
    expect_error(ErrorKind::internal, {"'b'", "lacks 2 bytes"}, [&] { writer.finish(); });
    writer.write("b", bytes);
    expect_error(ErrorKind::internal, {"'c'", "expected the end"}, [&] { writer.write("c", bytes); });
  }
  EXPECT_EQ(folder.count(), 0u);
}

TEST(SafetensorsWriter, RefusesImpossibleDeclarations) {
  const TemporaryFolder folder;
  const auto refuse = [&](std::vector<TensorInfo> tensors, std::string_view part) {
    expect_error(ErrorKind::input, {part}, [&] { SafetensorsWriter(folder.path() / "m", tensors); });
  };
  refuse({{"a", FileDType::u8, {1}}, {"a", FileDType::u8, {1}}}, "'a'");
  refuse({{"__metadata__", FileDType::u8, {1}}}, "reserved");
  refuse({{"a", FileDType::u8, {-1}}}, "impossible shape");
  refuse({{"a", FileDType::f64, {int64_t{1} << 61}}}, "impossible shape");
  refuse({{"a\xff", FileDType::u8, {1}}}, "UTF-8");
  EXPECT_EQ(folder.count(), 0u);
}

}  // namespace
}  // namespace sluice::checkpoint
