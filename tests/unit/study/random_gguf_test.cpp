// Random models as GGUF files, read back by the format's published layout: block sizes and type numbers are
// those of ggml's Q3_K, Q4_K and Q6_K.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "expect_error.h"
#include "sluice/random_model.h"

namespace sluice {
namespace {

constexpr const char* kGeometry = "qwen3.6-35b-a3b:layers=1,experts=8,vocab=512";

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : file_(path, std::ios::binary) {}
  template <class T>
  T get() {
    T value{};
    file_.read(reinterpret_cast<char*>(&value), sizeof(value));
    EXPECT_TRUE(file_.good());
    return value;
  }
  std::string text() {
    std::string result(get<std::uint64_t>(), '\0');
    file_.read(result.data(), static_cast<std::streamsize>(result.size()));
    return result;
  }
  void skip_value(std::uint32_t type) {
    if (type == 8) {
      text();
    } else if (type == 9) {
      const auto element = get<std::uint32_t>();
      for (auto left = get<std::uint64_t>(); left > 0; --left) skip_value(element);
    } else {
      get<std::uint32_t>();
    }
  }
  std::uint64_t at() { return static_cast<std::uint64_t>(file_.tellg()); }
  void go_to(std::uint64_t at) { file_.seekg(static_cast<std::streamoff>(at)); }

 private:
  std::ifstream file_;
};

struct Blocks {
  int bits;
  std::uint32_t type;
  std::uint64_t bytes;     // per 256 weights
  std::uint64_t scale_at;  // offset of the F16 that scales all of them
};

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + 31) / 32 * 32;
}

void expect_file(const Blocks& blocks, const std::filesystem::path& path) {
  SCOPED_TRACE(blocks.bits);
  write_random_gguf(kGeometry, blocks.bits, path);
  Reader file(path);
  EXPECT_EQ(file.get<std::uint32_t>(), 0x46554747u);  // "GGUF"
  EXPECT_EQ(file.get<std::uint32_t>(), 3u);
  const auto tensors = file.get<std::uint64_t>();
  for (auto keys = file.get<std::uint64_t>(); keys > 0; --keys) {
    file.text();
    file.skip_value(file.get<std::uint32_t>());
  }
  std::uint64_t end = 0;
  std::uint64_t first_packed = 0;
  std::map<std::uint32_t, int> types;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    file.text();
    std::uint64_t elements = 1;
    for (auto dims = file.get<std::uint32_t>(); dims > 0; --dims) elements *= file.get<std::uint64_t>();
    const auto type = file.get<std::uint32_t>();
    EXPECT_EQ(file.get<std::uint64_t>(), end);
    if (type != 0 && types[type]++ == 0) first_packed = end;
    end += aligned(type == 0 ? 4 * elements : elements / 256 * blocks.bytes);
  }
  ASSERT_EQ(types.size(), 1u);
  EXPECT_GT(types[blocks.type], 5);
  const std::uint64_t data = aligned(file.at());
  EXPECT_EQ(std::filesystem::file_size(path), data + end);
  for (std::uint64_t block = 0; block < 4; ++block) {
    file.go_to(data + first_packed + block * blocks.bytes + blocks.scale_at);
    const auto scale = file.get<std::uint16_t>();  // F16 between 0 and 0.01
    EXPECT_GT(scale, 0);
    EXPECT_LT(scale, 0x211f);
  }
}

TEST(RandomGguf, HasBlocksOfThreeFourAndSixBits) {
  const auto path = std::filesystem::temp_directory_path() / ("random-" + std::to_string(getpid()) + ".gguf");
  for (const Blocks& blocks : {Blocks{3, 11, 110, 108}, {4, 12, 144, 0}, {6, 14, 210, 208}})
    expect_file(blocks, path);
  std::filesystem::remove(path);
  expect_error(ErrorKind::input, {"3, 4 or 6 bits", "not 5"}, [&] { write_random_gguf(kGeometry, 5, path); });
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace sluice
