#include "scheduler/prefix/disk_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <thread>

#include "expect_error.h"
#include "printed_seed.h"
#include "saved.h"
#include "temporary_folder.h"

namespace sluice::scheduler::prefix {
namespace {

using Ids = std::vector<std::int32_t>;
using Bytes = std::vector<std::byte>;

class DiskStoreTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRowBytes = 1000;  // per block
  static constexpr std::uint64_t kStateBytes = 3001;

  DiskStoreTest() { random_.seed(printed_seed()); }
  DiskOptions options(std::uint64_t bytes = 1 << 20, std::uint64_t fingerprint = 7) {
    return {.folder = folder_.path(),
            .bytes = bytes,
            .fingerprint = fingerprint,
            .row_bytes = kRowBytes,
            .state_bytes = kStateBytes,
            .log = [this](const std::string& line) {
              const std::lock_guard lock(mutex_);
              lines_.push_back(line);
            }};
  }
  Ids some_ids(std::size_t blocks) {
    Ids ids(blocks * 64);
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random_() % 1000);
    return ids;
  }
  SavedState some_bytes(std::size_t count) {
    Bytes bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return saved(std::move(bytes));
  }
  // Rows [begin, end) of a prompt with that many blocks.
  DiskStore::Content rows(const Ids& ids, std::int64_t begin = 0) {
    const auto blocks = static_cast<std::size_t>((static_cast<std::int64_t>(ids.size()) - begin) / 64);
    return {FileKind::rows, salt_of("a"), ids, begin, blocks * 64, some_bytes(blocks * kRowBytes)};
  }
  DiskStore::Content state(const Ids& ids) {
    return {FileKind::state, salt_of("a"),           ids, static_cast<std::int64_t>(ids.size()),
            ids.size(),      some_bytes(kStateBytes)};
  }
  static void wait(const DiskStore::Reading& reading) {
    while (!reading.done) std::this_thread::yield();
  }
  std::filesystem::path only_file() const {
    return std::filesystem::directory_iterator(folder_.path())->path();
  }
  std::uint64_t bytes_in_folder() const {
    std::uint64_t sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) sum += entry.file_size();
    return sum;
  }

  TemporaryFolder folder_;
  std::unique_ptr<ops::Backend> backend_ = ops::make_backend("reference");
  HostMemory memory_{[this](std::size_t bytes) { return backend_->allocate_pinned(bytes); },
                     {.kept = 1 << 20}};
  std::mt19937 random_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

// A file that cannot be read now may be readable later, so it stays.
TEST_F(DiskStoreTest, KeepsFilesThatCannotBeReadNow) {
  const Ids ids = some_ids(3);
  { DiskStore(options(), memory_).write(rows(ids)); }
  const std::filesystem::path file = only_file();
  const TemporaryFolder elsewhere;
  const std::filesystem::path moved = elsewhere.path() / "moved";
  DiskStore store(options(), memory_);
  std::vector<DiskStore::Found> found = store.found();
  ASSERT_EQ(found.size(), 1u);
  std::filesystem::copy_file(file, moved);
  std::filesystem::remove(file);
  std::filesystem::create_symlink(moved, file);  // links are not followed
  const auto reading = store.read({{found[0].file, 0, 3}});
  wait(*reading);
  EXPECT_TRUE(reading->failed);
  store.settle();
  EXPECT_TRUE(found[0].file->gone);
  EXPECT_EQ(store.bytes(), 0u);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("cannot read"), std::string::npos) << lines_[0];
  std::filesystem::remove(file);
  std::filesystem::copy_file(moved, file);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((found = store.found()).empty() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_EQ(found.size(), 1u);
  const auto again = store.read({{found[0].file, 0, 3}});
  wait(*again);
  EXPECT_FALSE(again->failed);
}

TEST_F(DiskStoreTest, GivesBackWhatWasWritten) {
  const Ids ids = some_ids(9);
  const DiskStore::Content content = rows(ids, 128);
  const DiskStore::Content saved = state(ids);
  const auto expect = [&](DiskStore& store, const FilePtr& row_file, const FilePtr& state_file) {
    for (std::int64_t first = 0; first < 7; ++first)
      for (std::int64_t count = 1; first + count <= 7; ++count) {
        const auto reading = store.read({{row_file, first, count}, {state_file}});
        wait(*reading);
        ASSERT_FALSE(reading->failed);
        const auto begin = content.bytes->begin() + first * static_cast<std::int64_t>(kRowBytes);
        EXPECT_TRUE(std::equal(reading->parts[0]->begin(), reading->parts[0]->end(), begin,
                               begin + count * static_cast<std::int64_t>(kRowBytes)));
        EXPECT_TRUE(same(reading->parts[1], saved.bytes));
      }
  };
  {
    DiskStore store(options(), memory_);
    EXPECT_TRUE(store.found().empty());
    const FilePtr row_file = store.write(content);
    const FilePtr state_file = store.write(saved);
    expect(store, row_file, state_file);  // whether they are on disk already or not
    EXPECT_EQ(store.write(content), row_file);
  }
  EXPECT_EQ(folder_.count(), 2u);
  DiskStore store(options(), memory_);
  EXPECT_EQ(store.bytes(), bytes_in_folder());
  const std::vector<DiskStore::Found> found = store.found();
  ASSERT_EQ(found.size(), 2u);
  for (const DiskStore::Found& one : found) {
    EXPECT_EQ(one.ids, ids);
    EXPECT_EQ(one.salt, salt_of("a"));
    EXPECT_EQ(one.file->begin, one.file->kind == FileKind::rows ? 128 : 9 * 64);
  }
  const bool rows_first = found[0].file->kind == FileKind::rows;
  expect(store, found[rows_first ? 0 : 1].file, found[rows_first ? 1 : 0].file);
  EXPECT_TRUE(lines_.empty());
}

// Whichever bit changes and wherever a file ends, none of it is used; it is removed, and one line reports it.
TEST_F(DiskStoreTest, UsesNothingThatIsDamaged) {
  const Ids ids = some_ids(2);
  for (int round = 0; round < 300; ++round) {
    lines_.clear();
    { DiskStore(options(), memory_).write(round % 2 == 0 ? rows(ids) : state(ids)); }
    const std::filesystem::path file = only_file();
    std::string text = read_all(file);
    const std::size_t at = round < 100 ? static_cast<std::size_t>(round) : random_() % text.size();
    if (round % 3 == 0)
      text.resize(at);
    else
      text[at] = static_cast<char>(text[at] ^ (1 << random_() % 8));
    if (round % 7 == 0) text += "more";
    folder_.write(file.filename().string(), text);
    {
      DiskStore store(options(), memory_);
      for (const DiskStore::Found& found : store.found()) {
        const auto reading =
            store.read({{found.file, 0, found.file->kind == FileKind::rows ? std::int64_t{2} : 1}});
        wait(*reading);
        EXPECT_TRUE(reading->failed) << "byte " << at << " of " << text.size();
        store.found();
        EXPECT_TRUE(found.file->gone);
      }
    }
    EXPECT_EQ(folder_.count(), 0u) << "byte " << at << " of " << text.size();
    EXPECT_EQ(lines_.size(), 1u);
  }
}

TEST_F(DiskStoreTest, StaysWithinItsBytesAndKeepsWhatIsUsed) {
  constexpr std::uint64_t kBytes = 100'000;
  Ids ids = some_ids(1);
  std::vector<FilePtr> used;
  {
    DiskStore store(options(kBytes), memory_);
    used.push_back(store.write(rows(ids)));
    for (int i = 0; i < 200; ++i) {
      const Ids other = some_ids(1 + random_() % 9);
      ASSERT_NE(store.write(random_() % 2 == 0 ? rows(other) : state(other)), nullptr);
      store.use(used);
      EXPECT_LE(store.bytes(), kBytes);
      if (i % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(used[0]->gone);
    EXPECT_EQ(store.write(rows(some_ids(200))), nullptr);  // larger than the limit
  }
  EXPECT_LE(bytes_in_folder(), kBytes);
  EXPECT_GT(bytes_in_folder(), kBytes / 2);
  { DiskStore smaller(options(20'000), memory_); }
  EXPECT_LE(bytes_in_folder(), 20'000u);
  {
    DiskStore store(options(kBytes), memory_);
    store.clear();
  }
  EXPECT_EQ(folder_.count(), 0u);
}

// A client that writes a lot evicts only its own files, also after a restart, and another client's choice of
// what to evict does not depend on it.
TEST_F(DiskStoreTest, KeepsSharesApart) {
  constexpr std::uint64_t kBytes = 100'000;
  DiskOptions shared = options(kBytes);
  shared.shares = 2;
  const auto of = [&](const char* client, DiskStore::Content content) {
    content.salt = salt_of(client, "");
    return content;
  };
  std::vector<FilePtr> own;
  {
    DiskStore store(shared, memory_);
    for (int i = 0; i < 9; ++i) own.push_back(store.write(of("a", rows(some_ids(4)))));
    for (int i = 0; i < 100; ++i) ASSERT_NE(store.write(of("b", state(some_ids(3)))), nullptr);
    EXPECT_LE(store.bytes(), kBytes);
    for (const FilePtr& file : own) EXPECT_FALSE(file->gone);
    EXPECT_EQ(store.write(of("a", rows(some_ids(60)))), nullptr);  // more than half of the limit
  }
  DiskStore store(shared, memory_);
  std::int64_t found = 0;
  for (const DiskStore::Found& one : store.found()) found += one.salt == salt_of("a", "") ? 1 : 0;
  EXPECT_EQ(found, 9);
  for (int i = 0; i < 20; ++i) store.write(of("b", state(some_ids(3))));
  const FilePtr more = store.write(of("a", rows(some_ids(30))));  // evicts its own files
  ASSERT_NE(more, nullptr);
  EXPECT_LE(store.bytes(), kBytes);
}

TEST_F(DiskStoreTest, SharesAFolder) {
  DiskStore first(options(), memory_);
  DiskStore second(options(), memory_);
  const Ids ids = some_ids(3);
  const DiskStore::Content content = rows(ids);
  const FilePtr written = first.write(content);
  std::vector<DiskStore::Found> found;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (found.empty() && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    found = second.found();
  }
  ASSERT_EQ(found.size(), 1u);
  auto reading = second.read({{found[0].file, 0, 3}});
  wait(*reading);
  ASSERT_FALSE(reading->failed);
  EXPECT_TRUE(same(reading->parts[0], content.bytes));
  first.clear();
  while (folder_.count() > 0) std::this_thread::yield();
  reading = second.read({{found[0].file, 0, 3}});
  wait(*reading);
  EXPECT_TRUE(reading->failed);
  second.found();
  EXPECT_TRUE(found[0].file->gone);
  EXPECT_EQ(second.bytes(), 0u);
  EXPECT_TRUE(lines_.empty());  // no errors
}

TEST_F(DiskStoreTest, LeavesFilesOfOtherModelsUntilItNeedsTheRoom) {
  const Ids ids = some_ids(5);
  { DiskStore(options(1 << 20, 1), memory_).write(rows(ids)); }
  {
    DiskStore store(options(1 << 20, 2), memory_);
    EXPECT_TRUE(store.found().empty());
    EXPECT_EQ(lines_.size(), 1u);
    store.write(rows(ids));
  }
  EXPECT_EQ(folder_.count(), 2u);
  EXPECT_EQ(DiskStore(options(1 << 20, 1), memory_).found().size(), 1u);
  { DiskStore little(options(10'000, 2), memory_); }
  EXPECT_EQ(DiskStore(options(1 << 20, 1), memory_).found().size(), 0u);
  EXPECT_EQ(DiskStore(options(1 << 20, 2), memory_).found().size(), 1u);
}

TEST_F(DiskStoreTest, RemovesWhatKilledWritersLeft) {
  const Ids ids = some_ids(1);
  { DiskStore(options(), memory_).write(rows(ids)); }
  const std::string name = only_file().filename().string();
  folder_.write(name + ".4711-0.tmp", "half of it");
  folder_.write("notes.txt", "somebody else's");
  EXPECT_EQ(DiskStore(options(), memory_).found().size(), 1u);
  EXPECT_EQ(folder_.count(), 2u);
}

TEST_F(DiskStoreTest, ReadsLongFilesInParts) {
  DiskOptions large = options(256 << 20);
  large.row_bytes = 17 << 20;
  const Ids ids = some_ids(3);
  const SavedState all = some_bytes(3 * large.row_bytes);
  { DiskStore(large, memory_).write({FileKind::rows, salt_of("a"), ids, 0, 192, all}); }
  DiskStore store(large, memory_);
  const auto found = store.found();
  ASSERT_EQ(found.size(), 1u);
  const auto reading = store.read({{found[0].file, 0, 3}});
  wait(*reading);
  ASSERT_FALSE(reading->failed);
  EXPECT_GT(reading->parts.size(), 1u);
  std::size_t at = 0;
  for (const SavedState& part : reading->parts) {
    EXPECT_EQ(part->size() % large.row_bytes, 0u);
    EXPECT_TRUE(same(part, part_of(all, at, part->size())));
    at += part->size();
  }
  EXPECT_EQ(at, all->size());
}

// As on a full disk: nothing is written, one line reports it, and writing continues once there is room.
TEST_F(DiskStoreTest, ContinuesWhenNothingCanBeWritten) {
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit little{500, limit.rlim_max};
  DiskStore store(options(), memory_);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  std::vector<FilePtr> files;
  for (int i = 0; i < 3; ++i) files.push_back(store.write(rows(some_ids(2))));
  while (!files.back()->gone) store.found();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_EQ(store.bytes(), 0u);
  EXPECT_EQ(folder_.count(), 0u);
  const FilePtr file = store.write(rows(some_ids(2)));
  while (file->pending != nullptr) store.found();
  EXPECT_FALSE(file->gone);
  EXPECT_EQ(folder_.count(), 1u);
}

TEST_F(DiskStoreTest, RefusesWhatIsNoFolder) {
  DiskOptions wrong = options();
  wrong.folder = folder_.write("file", "text");
  expect_error(ErrorKind::input, {wrong.folder.string(), "not a folder"}, [&] { DiskStore(wrong, memory_); });
}

}  // namespace
}  // namespace sluice::scheduler::prefix
