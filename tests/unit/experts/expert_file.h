// A file of random experts, bound like a checkpoint.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/files/mapped_file.h"
#include "experts/store.h"
#include "temporary_folder.h"

namespace sluice::experts {

class ExpertFile {
 public:
  static constexpr std::int64_t kExperts = 12;
  static constexpr std::int64_t kInner = 32;
  static constexpr std::int64_t kHidden = 96;

  // Stacks of matrices after an odd number of bytes, or each expert's three matrices side by side.
  explicit ExpertFile(bool side_by_side)
      : folder_(), file_(folder_.write("weights.bin", contents(kFirst + 3 * kExperts * kMatrix))) {
    for (std::int64_t e = 0; e < kExperts; ++e)
      for (std::int64_t m = 0; m < 3; ++m) {
        const std::int64_t index = side_by_side ? 3 * e + m : m * kExperts + e;
        ops::Weight& weight = matrices_[static_cast<std::size_t>(m)].emplace_back();
        const ops::Shape shape = m == 2 ? ops::Shape{kHidden, kInner} : ops::Shape{kInner, kHidden};
        weight.values = {file_.bytes().data() + kFirst + index * kMatrix, ops::DType::bf16, shape};
      }
  }

  const std::filesystem::path& path() const { return file_.path(); }
  std::vector<SourceFile> files() const { return {{file_.path(), file_.bytes()}}; }
  LayerSource layer() const { return {7, {{}, matrices_[0]}, {{}, matrices_[1]}, {{}, matrices_[2]}, {}}; }
  // Whether `expert` has the file's contents for number `e`.
  bool same(std::int64_t e, const Expert& expert) const {
    const Expert bound = layer()[e];
    std::vector<std::span<const std::byte>> want;
    std::vector<std::span<const std::byte>> got;
    for_each_tensor(bound, [&](const ops::ConstView& tensor) { want.push_back(bytes_of(tensor)); });
    for_each_tensor(expert, [&](const ops::ConstView& tensor) { got.push_back(bytes_of(tensor)); });
    return std::equal(want.begin(), want.end(), got.begin(), got.end(), [](const auto& a, const auto& b) {
      return a.data() != b.data() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
    });
  }

 private:
  static constexpr std::int64_t kMatrix = kInner * kHidden * 2;
  static constexpr std::int64_t kFirst = 4099;

  static std::string contents(std::int64_t bytes) {
    std::mt19937 random(5);
    std::string text(static_cast<std::size_t>(bytes), '\0');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  }

  TemporaryFolder folder_;
  files::MappedFile file_;
  std::vector<ops::Weight> matrices_[3];
};

}  // namespace sluice::experts
