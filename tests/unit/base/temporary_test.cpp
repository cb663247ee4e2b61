// Temporaries of killed writers are removed; those of running ones, and files with similar names, stay.
#include "base/files/temporary.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/files/file_writer.h"
#include "base/files/output_folder.h"
#include "temporary_folder.h"

namespace sluice::files {
namespace {

namespace fs = std::filesystem;

// The files left in the folder when `write` is killed midway.
template <class F>
void kill_while(F&& write) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    write();
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
}

size_t entries_in(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(Temporary, FilesOfKilledWritersGo) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out";
  for (int i = 0; i < 2; ++i) kill_while([&] { (new FileWriter(path))->write("half"); });
  ASSERT_EQ(entries_in(folder.path()), 1U);  // the second removed the first's
  FileWriter(path).commit();
  EXPECT_EQ(entries_in(folder.path()), 1U);
  EXPECT_TRUE(fs::exists(path));
}

TEST(Temporary, FoldersOfKilledWritersGo) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out";
  kill_while([&] { FileWriter(*(new fs::path((new OutputFolder(path))->path())) / "inside").commit(); });
  ASSERT_EQ(entries_in(folder.path()), 1U);
  OutputFolder(path).commit();
  EXPECT_EQ(entries_in(folder.path()), 1U);
  EXPECT_TRUE(fs::is_empty(path));
}

TEST(Temporary, ThoseOfLivingWritersStay) {
  const TemporaryFolder folder;
  FileWriter first(folder.path() / "file");
  OutputFolder made(folder.path() / "folder");
  {
    FileWriter second(folder.path() / "file");
    const OutputFolder other(folder.path() / "folder");
    EXPECT_EQ(entries_in(folder.path()), 4U);
    second.commit();
  }
  first.commit();
  made.commit();
  EXPECT_EQ(entries_in(folder.path()), 2U);
}

TEST(Temporary, WhatLooksSimilarStays) {
  const TemporaryFolder folder;
  const char* const names[] = {"out.tmp",       "out.1.tmp",       "out.1-.tmp",
                               "out.-1.tmp",    "out.1-2.tmpx",    "out.a-1.tmp",
                               "other.1-2.tmp", "out.1-2.1-2.tmp", "xout.1-2.tmp"};
  for (const char* name : names) std::ofstream(folder.path() / name) << "mine";
  std::ofstream(folder.path() / "target") << "mine";
  fs::create_symlink(folder.path() / "target", folder.path() / "out.7-7.tmp");
  remove_stale_temporaries(folder.path() / "out");
  for (const char* name : names) EXPECT_TRUE(fs::exists(folder.path() / name)) << name;
  EXPECT_TRUE(fs::exists(folder.path() / "target"));
}

TEST(Temporary, WhatAnotherRemovedIsNotClaimed) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "out.1-0.tmp";
  std::ofstream(path) << "";
  const FileDescriptor file(::open(path.c_str(), O_RDONLY));
  remove_stale_temporaries(folder.path() / "out");
  EXPECT_FALSE(claim_temporary(file, path));
}

}  // namespace
}  // namespace sluice::files
