#include "base/files/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <utility>

#include "expect_error.h"
#include "temporary_folder.h"

namespace sluice::files {
namespace {

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(MappedFile, ShowsTheWholeFileAndItsParts) {
  const TemporaryFolder folder;
  const MappedFile file(folder.write("a", "hello"));
  EXPECT_EQ(text(file.bytes()), "hello");
  EXPECT_EQ(text(file.bytes(1, 3)), "ell");
  EXPECT_EQ(text(file.bytes(5, 0)), "");
}

TEST(MappedFile, RefusesPartsOutsideTheFile) {
  const TemporaryFolder folder;
  const MappedFile file(folder.write("a", "hello"));
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  for (const auto& [offset, length] :
       {std::pair<uint64_t, uint64_t>{0, 6}, {6, 0}, {5, 1}, {kHuge, 2}, {2, kHuge}, {kHuge, kHuge}}) {
    expect_error(ErrorKind::input, {"has 5 bytes"}, [&, o = offset, l = length] { file.bytes(o, l); });
  }
}

TEST(MappedFile, ViewsSurviveMoves) {
  const TemporaryFolder folder;
  MappedFile first(folder.write("a", "first"));
  const auto view = first.bytes();
  MappedFile moved(std::move(first));
  MappedFile assigned(folder.write("b", "other"));
  assigned = std::move(moved);
  EXPECT_EQ(text(view), "first");
  EXPECT_EQ(text(assigned.bytes()), "first");
}

TEST(MappedFile, ReleasedPagesReadTheSame) {
  const TemporaryFolder folder;
  const std::string content(100'000, 'x');
  const MappedFile file(folder.write("file", content));
  release_pages(file.bytes(3, 99'000));
  release_pages(file.bytes(5, 10));
  release_pages({});
  EXPECT_EQ(text(file.bytes()), content);
}

TEST(MappedFile, SaysWhatIsWrongWithAPath) {
  const TemporaryFolder folder;
  expect_error(ErrorKind::input, {"missing", "No such file"}, [&] { MappedFile(folder.path() / "missing"); });
  expect_error(ErrorKind::input, {"a directory"}, [&] { MappedFile{folder.path()}; });
  expect_error(ErrorKind::input, {"'", "empty"}, [&] { MappedFile(folder.write("e", "")); });
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  expect_error(ErrorKind::input, {"pipe", "regular file"}, [&] { MappedFile(folder.path() / "pipe"); });
  if (::geteuid() == 0) return;  // root may read everything
  const auto secret = folder.write("secret", "x");
  ASSERT_EQ(::chmod(secret.c_str(), 0), 0);
  expect_error(ErrorKind::input, {"secret", "denied"}, [&] { MappedFile{secret}; });
}

}  // namespace
}  // namespace sluice::files
