// For any slots, policy, reader and file layout: every requested expert is returned once, with its own bytes,
// and a failed read affects only one pass.
#include "experts/cache.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "expect_error.h"
#include "expert_file.h"

namespace sluice::experts {
namespace {

std::unique_ptr<Reader> open_reader(const ExpertFile& file, bool threads) {
  OpenFiles open;
  for (const SourceFile& source : file.files())
    open.push_back(open_for_reading(source.path, source.bytes.size()));
  return threads ? make_thread_reader(std::move(open), "asked for") : make_reader(std::move(open));
}

// Fails reads after a countdown.
class FaultyReader final : public Reader {
 public:
  FaultyReader(std::unique_ptr<Reader> real, int& until_failure)
      : real_(std::move(real)), left_(until_failure) {}
  std::string description() const override { return "faulty"; }
  void start(std::span<const Request> requests) override { real_->start(requests); }
  Completion wait() override {
    Completion done = real_->wait();
    if (left_-- == 0) done.error = "the disk is on fire";
    return done;
  }
  bool ready() override { return real_->ready(); }

 private:
  std::unique_ptr<Reader> real_;
  int& left_;
};

Cache::Options with_policy(const std::string& name) {
  Cache::Options options;
  options.policy = [name](int) { return make_policy(name, ExpertFile::kExperts); };
  return options;
}

// Runs one pass and checks everything it returns.
void check_pass(Cache& cache, const ExpertFile& file, std::vector<std::int32_t> wanted, int layer = 0,
                const std::vector<std::int32_t>& guessed = {}) {
  Cache::Pass pass(cache, layer, wanted);
  if (!guessed.empty()) pass.read_ahead(1 - layer, guessed);
  std::multiset<std::int32_t> got;
  for (auto residents = pass.next(); !residents.empty(); residents = pass.next())
    for (const Cache::Resident& resident : residents) {
      got.insert(resident.expert);
      EXPECT_TRUE(file.same(resident.expert, resident.weights)) << "expert " << resident.expert;
    }
  EXPECT_EQ(got, std::multiset<std::int32_t>(wanted.begin(), wanted.end()));
}

std::vector<std::int32_t> some_experts(std::mt19937& random) {
  std::vector<std::int32_t> all(ExpertFile::kExperts);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(1 + random() % all.size());
  return all;
}

TEST(Cache, HandsOutEveryExpertOnceWithItsOwnBytes) {
  for (const bool side_by_side : {false, true})
    for (const bool threads : {false, true})
      for (const std::string policy : {"lru", "lfru"}) {
        const ExpertFile file(side_by_side);
        Cache cache(Store(file.files(), {file.layer()}), open_reader(file, threads), with_policy(policy));
        std::mt19937 random(11);
        for (const std::int64_t slots : {1, 2, 5, 12, 3, 100}) {
          SCOPED_TRACE(fmt::format("{} {} {} slots", cache.reader().description(), policy, slots));
          cache.set_slots(slots);
          for (int i = 0; i < 20; ++i) check_pass(cache, file, some_experts(random));
        }
      }
}

TEST(Cache, CountsHitsAndReadsOnlyMisses) {
  const ExpertFile file(true);
  Cache cache(Store(file.files(), {file.layer()}), open_reader(file, false), with_policy("lru"));
  cache.set_slots(4);
  check_pass(cache, file, {0, 1, 2});
  check_pass(cache, file, {2, 1, 3});
  check_pass(cache, file, {4});  // in place of 0
  check_pass(cache, file, {1, 2, 3, 4});
  const Usage usage = cache.usage();
  EXPECT_EQ(usage.hits, 6u);
  EXPECT_EQ(usage.misses, 5u);
  EXPECT_EQ(usage.uses[0], (std::vector<std::uint32_t>{1, 3, 3, 2, 2, 0, 0, 0, 0, 0, 0, 0}));
  const std::size_t one = cache.store().pieces(0, 0)[0].bytes;
  EXPECT_GE(usage.bytes_read, 5 * one - 5 * kAlignment);
  EXPECT_LE(usage.bytes_read, 5 * one + 5 * kAlignment);
}

TEST(Cache, KeepsWhatAPassHoldsWhileItReads) {
  const ExpertFile file(false);
  Cache cache(Store(file.files(), {file.layer()}), open_reader(file, false), with_policy("lru"));
  cache.set_slots(2);
  check_pass(cache, file, {0, 1});
  const std::vector<std::int32_t> wanted{0, 5, 1};
  Cache::Pass pass(cache, 0, wanted);
  const auto hits = pass.next();
  ASSERT_EQ(hits.size(), 2u);  // both slots are in use, so nothing may be read into them yet
  EXPECT_TRUE(file.same(hits[0].expert, hits[0].weights));
  EXPECT_TRUE(file.same(hits[1].expert, hits[1].weights));
  const auto missed = pass.next();
  ASSERT_EQ(missed.size(), 1u);
  EXPECT_EQ(missed[0].expert, 5);
  EXPECT_TRUE(pass.next().empty());
}

TEST(Cache, AFailedReadCostsOnePass) {
  for (int failing = 0; failing < 12; ++failing) {
    const ExpertFile file(false);
    int until_failure = failing;
    Cache cache(Store(file.files(), {file.layer()}),
                std::make_unique<FaultyReader>(open_reader(file, false), until_failure), with_policy("lfru"));
    cache.set_slots(3);
    expect_error(ErrorKind::resource, {"cannot read expert ", " of layer 7", "weights.bin", "on fire"}, [&] {
      check_pass(cache, file, {3, 1, 2, 9});
    });
    check_pass(cache, file, {3, 1, 2, 9});
  }
}

TEST(Cache, WhatIsReadAheadIsThereForTheNextPass) {
  const ExpertFile file(true);
  Cache cache(Store(file.files(), {file.layer(), file.layer()}), open_reader(file, false),
              with_policy("lru"));
  cache.set_slots(4);
  check_pass(cache, file, {0, 1}, 0, {3, 4, 4, 5});
  check_pass(cache, file, {3, 5, 6}, 1, {0, 2});
  check_pass(cache, file, {0, 1}, 0);
  const Usage usage = cache.usage();
  EXPECT_EQ(usage.hits, 2u);
  EXPECT_EQ(usage.misses, 5u);
  EXPECT_EQ(usage.foreseen, 2u);  // 3 and 5
  EXPECT_EQ(usage.unused, 2u);    // 4 of one layer, 2 of the other, whose 0 was there already
}

TEST(Cache, GuessesChangeNothingButWhatIsInMemory) {
  for (const bool threads : {false, true}) {
    const ExpertFile file(false);
    Cache cache(Store(file.files(), {file.layer(), file.layer()}), open_reader(file, threads),
                with_policy("lfru"));
    std::mt19937 random(13);
    for (const std::int64_t slots : {1, 2, 5, 12, 3}) {
      SCOPED_TRACE(fmt::format("{} slots", slots));
      cache.set_slots(slots);  // while reads are in flight
      for (int i = 0; i < 40; ++i)
        check_pass(cache, file, some_experts(random), static_cast<int>(random() % 2), some_experts(random));
    }
    EXPECT_GT(cache.usage().foreseen, 0u);
  }
}

TEST(Cache, AFailedReadAheadIsReadAgain) {
  for (int failing = 0; failing < 12; ++failing) {
    const ExpertFile file(false);
    int until_failure = failing;
    Cache cache(Store(file.files(), {file.layer(), file.layer()}),
                std::make_unique<FaultyReader>(open_reader(file, false), until_failure), with_policy("lru"));
    cache.set_slots(4);
    { Cache::Pass(cache, 0, {}).read_ahead(1, std::vector<std::int32_t>{3, 1, 2, 9}); }
    check_pass(cache, file, {3, 1, 2, 9}, 1);
    EXPECT_LT(until_failure, 0) << "nothing failed";
  }
}

TEST(Cache, WhatIsReadAheadMayLoseItsSlot) {
  const ExpertFile file(true);
  Cache cache(Store(file.files(), {file.layer(), file.layer()}), open_reader(file, false),
              with_policy("lru"));
  cache.set_slots(4);
  check_pass(cache, file, {0}, 0, {1, 2, 3, 4});
  cache.set_slots(2);
  check_pass(cache, file, {1, 2, 3, 4}, 1);
  const Usage usage = cache.usage();
  EXPECT_EQ(usage.hits, 0u);
  EXPECT_EQ(usage.misses, 5u);
  EXPECT_EQ(usage.foreseen, 2u);
  EXPECT_EQ(usage.unused, 2u);
}

TEST(Cache, GuessesThatFailAreNotTrusted) {
  const ExpertFile file(true);
  Cache cache(Store(file.files(), {file.layer(), file.layer()}), open_reader(file, false),
              with_policy("lru"));
  cache.set_slots(4);
  for (int i = 0; i < 20; ++i) {
    check_pass(cache, file, {0, 1}, 0, {2 + i % 4, 6 + i % 4});
    check_pass(cache, file, {0, 1}, 1);
  }
  EXPECT_FALSE(Cache::Pass(cache, 0, {}).trusts_guesses());
}

TEST(Cache, AShortenedFileIsAnError) {
  const ExpertFile file(false);
  Cache cache(Store(file.files(), {file.layer()}), open_reader(file, false), with_policy("lru"));
  cache.set_slots(3);
  std::filesystem::resize_file(file.path(), 8192);
  expect_error(ErrorKind::resource, {"expert 11 of layer 7", "too early"},
               [&] { Cache::Pass(cache, 0, std::vector<std::int32_t>{11}).next(); });
}

TEST(Cache, BytesThatChangedAreAnError) {
  const ExpertFile file(false);
  Cache cache(Store(file.files(), {file.layer()}), open_reader(file, false), with_policy("lru"));
  cache.set_slots(1);
  check_pass(cache, file, {4});
  check_pass(cache, file, {5});
  const Piece piece = cache.store().pieces(0, 4)[1];
  {
    std::fstream written(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    written.seekg(static_cast<std::streamoff>(piece.offset + piece.needed - 1));
    const char before = static_cast<char>(written.get());
    written.seekp(static_cast<std::streamoff>(piece.offset + piece.needed - 1));
    written.put(static_cast<char>(before ^ 1));
  }
  expect_error(ErrorKind::resource, {"expert 4 of layer 7", "damaged or has changed"},
               [&] { check_pass(cache, file, {4}); });
  check_pass(cache, file, {5});
}

TEST(Cache, AFileOfAnotherSizeIsRefused) {
  const ExpertFile file(false);
  expect_error(ErrorKind::checkpoint, {"weights.bin", "12345"},
               [&] { open_for_reading(file.path(), 12345); });
}

}  // namespace
}  // namespace sluice::experts
