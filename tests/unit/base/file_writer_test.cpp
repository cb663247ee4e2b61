#include "base/files/file_writer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "expect_error.h"
#include "temporary_folder.h"

namespace sluice::files {
namespace {

TEST(FileWriter, CommitsWhatWasWritten) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "out";
  FileWriter writer(path);
  writer.write("one ");
  writer.write("");
  writer.write("two");
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.commit();
  EXPECT_EQ(read_all(path), "one two");
  EXPECT_EQ(folder.count(), 1u);
  expect_error(ErrorKind::internal, {"after its commit"}, [&] { writer.write("x"); });
  expect_error(ErrorKind::internal, {"twice"}, [&] { writer.commit(); });
}

TEST(FileWriter, LeavesNothingWithoutACommit) {
  const TemporaryFolder folder;
  const auto path = folder.write("out", "old");
  { FileWriter(path).write("new"); }
  EXPECT_EQ(read_all(path), "old");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(FileWriter, ReplacesAnOlderFile) {
  const TemporaryFolder folder;
  const auto path = folder.write("out", "old");
  FileWriter writer(path);
  writer.write("new");
  writer.commit();
  EXPECT_EQ(read_all(path), "new");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(FileWriter, TwoWritersOfOneFileDoNotMix) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "out";
  FileWriter a(path);
  FileWriter b(path);
  a.write("aaaa");
  b.write("b");
  a.commit();
  b.commit();
  EXPECT_EQ(read_all(path), "b");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(FileWriter, ObeysTheUmask) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  FileWriter writer(folder.path() / "out");
  ::umask(before);
  writer.commit();
  struct stat status {};
  ASSERT_EQ(::stat((folder.path() / "out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(FileWriter, RemovesTheTemporaryWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  {
    FileWriter writer(folder.path() / "out");
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);  // simulates a full disk
    expect_error(ErrorKind::resource, {"cannot write", "out", "too large"},
                 [&] { writer.write(std::string(10000, 'x')); });
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  }
  ::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(folder.count(), 0u);
}

TEST(FileWriter, SaysWhatIsWrongWithAPath) {
  const TemporaryFolder folder;
  expect_error(ErrorKind::input, {"no/such", "No such file"}, [&] { FileWriter(folder.path() / "no/such"); });
  expect_error(ErrorKind::input, {"directory"}, [&] { FileWriter{folder.path()}; });
}

}  // namespace
}  // namespace sluice::files
