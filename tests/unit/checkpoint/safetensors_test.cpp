#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "expect_error.h"
#include "source_dir.h"
#include "temporary_folder.h"

namespace sluice::checkpoint {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string result;
  for (const std::byte byte : bytes) result += fmt::format("{:02x}", std::to_integer<int>(byte));
  return result;
}

std::string image_of(std::string_view header, std::string_view data) {
  std::string image;
  for (int i = 0; i < 8; ++i) image += static_cast<char>(header.size() >> (8 * i));
  return image.append(header).append(data);
}

Safetensors parse(std::string_view image) {
  return {std::as_bytes(std::span(image)), "x.safetensors"};
}

void expect_refused(std::string_view header, size_t data_bytes, std::initializer_list<std::string_view> parts,
                    ErrorKind kind = ErrorKind::checkpoint) {
  SCOPED_TRACE(header);
  const std::string image = image_of(header, std::string(data_bytes, 'd'));
  expect_error(kind, {"x.safetensors"}, [&] { parse(image); });
  expect_error(kind, parts, [&] { parse(image); });
}

std::string entry(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"dtype":"{}","shape":{},"data_offsets":{}}})", dtype, shape, offsets);
}

class OtherWriters : public testing::TestWithParam<const char*> {};

TEST_P(OtherWriters, EveryTensorIsRead) {
  const std::string folder = test_data() + "/checkpoint/";
  const SafetensorsFile file(folder + GetParam() + ".safetensors");
  const Json all = read_json_file(folder + "safetensors.json");
  const Json& expected = all.at(GetParam());
  EXPECT_EQ(file.tensors().size(), expected.size());
  const std::string whole = read_all(file.path());
  bool unaligned = false;
  for (const auto& [name, description] : expected.items()) {
    SCOPED_TRACE(name);
    const TensorEntry* tensor = file.find(name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(checkpoint::name(tensor->dtype), description.at("dtype").get<std::string>());
    EXPECT_EQ(Json(tensor->shape), description.at("shape"));
    EXPECT_EQ(hex(tensor->data), description.at("hex").get<std::string>());
    EXPECT_EQ(hex(std::as_bytes(std::span(whole)).subspan(tensor->file_offset, tensor->data.size())),
              description.at("hex").get<std::string>());
    unaligned |= tensor->file_offset % size_bytes(tensor->dtype) != 0;
  }
  EXPECT_EQ(unaligned, std::string_view(GetParam()) == "mlx");
  EXPECT_EQ(file.metadata().at("format"), std::string_view(GetParam()) == "mlx" ? "mlx" : "pt");
  EXPECT_EQ(file.find("absent"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Golden, OtherWriters, testing::Values("hf", "mlx"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Safetensors, ListsTensorsInFileOrderAndAcceptsTrailingSpaces) {
  const std::string header = R"({"b":)" + entry("U8", "[3]", "[0,3]") + R"(,"a":)" +
                             entry("BF16", "[1,2]", "[3,7]") + R"(,"e":)" + entry("F32", "[0]", "[3,3]") +
                             "}   ";
  const std::string image = image_of(header, "123abcd");
  const Safetensors file = parse(image);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "b");
  EXPECT_EQ(file.tensors()[1].name, "e");
  EXPECT_EQ(file.tensors()[2].name, "a");
  EXPECT_EQ(hex(file.find("a")->data), "61626364");
  EXPECT_TRUE(file.find("e")->data.empty());
}

TEST(Safetensors, AcceptsAFileWithoutTensors) {
  EXPECT_TRUE(parse(image_of("{}", "")).tensors().empty());
  EXPECT_EQ(parse(image_of(R"({"__metadata__":{"k":"v"}})", "")).metadata().at("k"), "v");
}

TEST(Safetensors, RefusesABrokenFrame) {
  expect_error(ErrorKind::checkpoint, {"0 bytes"}, [] { parse(""); });
  expect_error(ErrorKind::checkpoint, {"7 bytes", "too few"}, [] { parse("1234567"); });
  const std::string image = image_of(R"({"a":)" + entry("U8", "[3]", "[0,3]") + "}", "abc");
  ASSERT_NO_THROW(parse(image));
  for (size_t length = 0; length < image.size(); ++length) {
    const std::string cut = image.substr(0, length);
    expect_error(ErrorKind::checkpoint, {"x.safetensors"}, [&] { parse(cut); });
  }
  std::string huge(16, '\0');
  huge[7] = '\x7f';
  expect_error(ErrorKind::checkpoint, {"header of", "only 8 follow"}, [&] { parse(huge); });
}

TEST(Safetensors, RefusesAHeaderBeyondTheLimit) {
  const std::string image = image_of(std::string(kMaxSafetensorsHeader + 1, ' '), "");
  expect_error(ErrorKind::checkpoint, {"100000001", "the format allows 100000000"}, [&] { parse(image); });
}

TEST(Safetensors, RefusesABrokenHeader) {
  expect_refused("", 0, {"invalid JSON"});
  expect_refused("{", 0, {"invalid JSON"});
  expect_refused("[]", 0, {"not a JSON object"});
  expect_refused(R"({"a":1})", 0, {"tensor 'a'", "expected an object"});
  expect_refused(R"({"a":null})", 0, {"tensor 'a'", "expected an object"});
  expect_refused(R"({"__metadata__":[]})", 0, {"__metadata__", "expected an object"});
  expect_refused(R"({"__metadata__":{"k":1}})", 0, {"__metadata__", "'k'", "expected a string"});
  expect_refused(R"({"__metadata__":{"k":null}})", 0, {"__metadata__", "'k'"});
  const std::string one = entry("U8", "[1]", "[0,1]");
  expect_refused(R"({"a":)" + one + R"(,"a":)" + one + "}", 1, {"'a'", "twice"});
  expect_refused(std::string(9, '[') + std::string(9, ']'), 0, {"deeper"});
}

TEST(Safetensors, RefusesABrokenEntry) {
  const auto refuse = [](std::string_view e, std::initializer_list<std::string_view> parts,
                         ErrorKind kind = ErrorKind::checkpoint) {
    expect_refused(fmt::format(R"({{"t.w":{}}})", e), 4, parts, kind);
    expect_refused(fmt::format(R"({{"t.w":{}}})", e), 4, {"'t.w'"}, kind);
  };
  refuse(R"({"shape":[4],"data_offsets":[0,4]})", {"'dtype'", "missing"});
  refuse(R"({"dtype":"U8","data_offsets":[0,4]})", {"'shape'", "missing"});
  refuse(R"({"dtype":"U8","shape":[4]})", {"'data_offsets'", "missing"});
  refuse(entry("F4", "[4]", "[0,4]"), {"unknown element type 'F4'"}, ErrorKind::unsupported);
  refuse(entry("u8", "[4]", "[0,4]"), {"'u8'"}, ErrorKind::unsupported);
  refuse(entry("U8", "4", "[0,4]"), {"expected an array"});
  refuse(entry("U8", "[4.0]", "[0,4]"), {"integer"});
  refuse(entry("U8", "[-4]", "[0,4]"), {"impossible shape"});
  refuse(entry("U8", "[4294967296,4294967296]", "[0,4]"), {"impossible shape"});
  refuse(entry("F32", "[4611686018427387904]", "[0,4]"), {"impossible shape"});
  refuse(entry("U8", "[9223372036854775808]", "[0,4]"), {"64-bit"});
  refuse(entry("U8", "[4]", "[0]"), {"data_offsets"});
  refuse(entry("U8", "[4]", "[0,4,4]"), {"data_offsets"});
  refuse(entry("U8", "[4]", "[4,0]"), {"data_offsets"});
  refuse(entry("U8", "[4]", "[-1,3]"), {"data_offsets"});
  refuse(entry("U8", "[3]", "[0,4]"), {"4 bytes", "needs 3"});
  refuse(entry("F32", "[]", "[0,2]"), {"2 bytes", "needs 4"});
  refuse(entry("U8", "[5]", "[0,5]"), {"cut short"});
  refuse(entry("U8", "[2]", "[9223372036854775805,9223372036854775807]"), {"cut short"});
}

TEST(Safetensors, RefusesOverlapsHolesAndTrailingBytes) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":)" + a + R"(,"b":)" + b + "}";
  };
  expect_refused(two(entry("U8", "[3]", "[0,3]"), entry("U8", "[3]", "[2,5]")), 5, {"'b'", "overlap"});
  expect_refused(two(entry("U8", "[3]", "[0,3]"), entry("U8", "[3]", "[0,3]")), 3, {"overlap"});
  expect_refused(two(entry("U8", "[3]", "[0,3]"), entry("U8", "[0]", "[1,1]")), 3, {"overlap"});
  expect_refused(two(entry("U8", "[2]", "[0,2]"), entry("U8", "[2]", "[3,5]")), 5, {"'b'", "hole"});
  expect_refused(two(entry("U8", "[2]", "[1,3]"), entry("U8", "[2]", "[3,5]")), 5, {"'a'", "hole"});
  expect_refused(two(entry("U8", "[2]", "[0,2]"), entry("U8", "[2]", "[2,4]")), 6, {"2 bytes after"});
}

TEST(SafetensorsFile, NamesTheFileInErrors) {
  const TemporaryFolder folder;
  const auto path = folder.write("broken.safetensors", "short");
  expect_error(ErrorKind::checkpoint, {"broken.safetensors"}, [&] { SafetensorsFile{path}; });
  expect_error(ErrorKind::input, {"none.safetensors"},
               [&] { SafetensorsFile(folder.path() / "none.safetensors"); });
}

}  // namespace
}  // namespace sluice::checkpoint
