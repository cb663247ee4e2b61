// The prefix cache compared with a simple model: a list of prefixes.
#include "scheduler/prefix/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "printed_seed.h"
#include "saved.h"

namespace sluice::scheduler::prefix {
namespace {

using Ids = std::vector<std::int32_t>;

// Pages with known contents: the blocks of the prompt in them.
class FakePages : public PageOwner {
 public:
  static constexpr std::int64_t kRows = 256;
  std::int64_t rows() const override { return kRows; }
  void hold(std::int32_t page) override {
    EXPECT_GT(users.at(page), 0);
    ++users[page];
  }
  void drop(std::int32_t page) override {
    ASSERT_GT(users.at(page), 0);
    --users[page];
  }
  bool shared(std::int32_t page) const override { return users.at(page) > 1; }
  SavedState save_block(std::int32_t page, std::int64_t block) override {
    if (!saves) return {};
    const std::span rows = std::span(contents.at(page)).subspan(static_cast<std::size_t>(block * 64), 64);
    const auto bytes = std::as_bytes(rows);
    return saved({bytes.begin(), bytes.end()});
  }
  SavedState save_snapshot(std::int32_t place) override { return snapshots.at(place); }

  // New pages with the rows of a prompt, used by the caller.
  std::vector<std::int32_t> fill(const Ids& prompt, std::int64_t rows) {
    std::vector<std::int32_t> pages;
    for (std::int64_t at = 0; at < rows; at += kRows) {
      const auto page = static_cast<std::int32_t>(users.size());
      users[page] = 1;
      const auto end = std::min(at + kRows, rows);
      contents[page] = Ids(prompt.begin() + at, prompt.begin() + end);
      pages.push_back(page);
    }
    return pages;
  }
  void release(const std::vector<std::int32_t>& pages) {
    for (const std::int32_t page : pages) drop(page);
  }
  std::size_t held() const {
    return static_cast<std::size_t>(
        std::count_if(users.begin(), users.end(), [](const auto& one) { return one.second > 0; }));
  }

  std::map<std::int32_t, int> users;
  std::map<std::int32_t, Ids> contents;
  bool saves = false;  // whether rows can be saved when they are evicted from a page
  std::map<std::int32_t, SavedState> snapshots;
};

// As if they had been found in these pages.
PrefixTree::Match own_rows(std::int64_t rows, const std::vector<std::int32_t>& pages) {
  PrefixTree::Match match;
  match.rows = rows;
  match.pages = pages;
  return match;
}

SavedState state_of(const Ids& prompt, std::int64_t rows) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows) * 4);
  std::memcpy(bytes.data(), prompt.data(), bytes.size());
  bytes.resize(4096);
  return saved(std::move(bytes));
}

class PrefixTreeTest : public ::testing::Test {
 protected:
  void SetUp() override { random_.seed(printed_seed()); }
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  // Few different blocks, so that prompts share prefixes.
  Ids some_prompt() {
    Ids prompt;
    const int blocks = below(12);
    for (int i = 0; i < blocks; ++i) prompt.insert(prompt.end(), 64, below(3));
    for (int rest = below(64); rest > 0; --rest) prompt.push_back(below(3));
    if (prompt.empty()) prompt.push_back(1);
    return prompt;
  }
  // The blocks that a match claims are in its pages.
  void expect_rows(const PrefixTree::Match& match, const Ids& prompt) {
    for (std::int64_t at = 0; at < match.rows; ++at) {
      const Ids& page = pages_.contents.at(match.pages.at(static_cast<std::size_t>(at / FakePages::kRows)));
      ASSERT_EQ(page.at(static_cast<std::size_t>(at % FakePages::kRows)),
                prompt[static_cast<std::size_t>(at)]);
    }
    EXPECT_EQ(match.pages.size(), static_cast<std::size_t>((match.rows + 255) / 256));
  }

  FakePages pages_;
  std::mt19937 random_;
};

// With room for everything, the longest cached prefix is found, never another one.
TEST_F(PrefixTreeTest, FindsTheLongestCachedPrefix) {
  PrefixTree tree(pages_, {});
  struct Kept {
    std::string salt;
    Ids ids;
  };
  std::vector<Kept> kept;
  for (int i = 0; i < 2000; ++i) {
    const Ids prompt = some_prompt();
    const std::string salt = below(5) == 0 ? "salt" : "";
    const auto most = static_cast<std::int64_t>(prompt.size()) - 1;
    std::int64_t want = 0;
    std::int64_t common = 0;
    for (const Kept& one : kept) {
      if (one.salt != salt) continue;
      const auto end = std::mismatch(one.ids.begin(), one.ids.end(), prompt.begin(), prompt.end()).second;
      common = std::max<std::int64_t>(common, end - prompt.begin());
      const auto rows = static_cast<std::int64_t>(one.ids.size()) / 64 * 64;
      if (end - prompt.begin() >= rows && rows <= most) want = std::max(want, rows);
    }
    const PrefixTree::Match match = tree.find(salt_of(salt), prompt, most);
    EXPECT_EQ(match.rows, want);
    EXPECT_LE(match.common, common);
    EXPECT_GE(match.common, common / 64 * 64);
    EXPECT_FALSE(match.evicted);
    expect_rows(match, prompt);
    if (match.rows > 0) {
      EXPECT_TRUE(same(match.state.bytes, state_of(prompt, match.rows)));
    }
    const auto rows = static_cast<std::int64_t>(prompt.size()) / 64 * 64;
    if (rows == 0 || below(3) == 0) continue;
    const auto used = pages_.fill(prompt, rows);
    tree.insert(salt_of(salt), prompt, rows, used, {.bytes = state_of(prompt, rows)});
    pages_.release(used);
    kept.push_back({salt, prompt});
  }
  tree.clear();
  EXPECT_EQ(pages_.held(), 0u);
}

// With little room, what is found is correct, and missing parts have a reason.
TEST_F(PrefixTreeTest, WhatIsFoundIsRightWhateverWasEvicted) {
  for (const bool states : {false, true}) {
    PrefixTree tree(pages_, {.states = states, .host_bytes = 5 * 4096, .nodes = 60});
    std::vector<std::pair<PrefixTree::Match, Ids>> users;
    for (int i = 0; i < 3000; ++i) {
      const Ids prompt = some_prompt();
      const auto rows = static_cast<std::int64_t>(prompt.size()) / 64 * 64;
      const PrefixTree::Match match = tree.find(salt_of(""), prompt, rows);
      expect_rows(match, prompt);
      if (match.rows > 0 && states) {
        EXPECT_TRUE(same(match.state.bytes, state_of(prompt, match.rows)));
      }
      if (match.rows > 0 && below(4) == 0) {
        for (const std::int32_t page : match.pages) pages_.hold(page);
        users.push_back({match, prompt});
      }
      if (rows > 0) {
        const auto used = pages_.fill(prompt, rows);
        tree.insert(salt_of(""), prompt, rows, used, {.bytes = states ? state_of(prompt, rows) : nullptr});
        // Some continue with pages of their own, of which the tree holds only those that it lacked.
        if (below(4) == 0)
          users.emplace_back(own_rows(rows, used), prompt);
        else
          pages_.release(used);
      }
      const std::int64_t room = below(8) == 0 ? 0 : 20;
      while (tree.spare_pages() > room) ASSERT_TRUE(tree.evict_page());
      EXPECT_LE(tree.host_bytes(), 5u * 4096);
      while (users.size() > 10) {
        pages_.release(users.front().first.pages);
        users.erase(users.begin());
      }
    }
    for (const auto& [match, prompt] : users) {
      expect_rows(match, prompt);  // its pages were not taken away
      pages_.release(match.pages);
    }
    while (tree.evict_page()) {
    }
    EXPECT_EQ(pages_.held(), 0u);
    EXPECT_EQ(tree.host_bytes(), 0u);
    const Ids prompt(300, 1);
    EXPECT_EQ(tree.find(salt_of(""), prompt, 256).rows, 0);
  }
}

// Rows and states that are evicted from the device are found in host memory, block for block, within its
// limit.
TEST_F(PrefixTreeTest, WhatLeavesTheDeviceIsFoundInMemory) {
  constexpr std::uint64_t kBytes = 40 * 256 + 6 * 4096;
  pages_.saves = true;
  PrefixTree tree(pages_, {.host_bytes = kBytes});
  std::int32_t next = 0;
  int found = 0;
  std::vector<Ids> known;
  for (int i = 0; i < 3000; ++i) {
    known.push_back(known.empty() || below(2) == 0 ? some_prompt() : known[random_() % known.size()]);
    if (known.size() > 20) known.erase(known.begin());
    const Ids prompt = known.back();
    const auto rows = static_cast<std::int64_t>(prompt.size()) / 64 * 64;
    const PrefixTree::Match match = tree.find(salt_of(""), prompt, rows);
    expect_rows(match, prompt);
    const PrefixTree::StoredMatch more = tree.find_stored(salt_of(""), prompt, match.rows, rows);
    if (more.rows > 0) {
      ++found;
      EXPECT_GT(more.rows, match.rows);
      ASSERT_TRUE(more.in_memory());
      EXPECT_EQ(more.paged + 64 * std::ssize(more.pieces), more.rows);
      for (std::size_t piece = 0; piece < more.pieces.size(); ++piece) {
        const auto at = static_cast<std::size_t>(more.paged) + 64 * piece;
        const auto want = std::as_bytes(std::span(prompt).subspan(at, 64));
        ASSERT_TRUE(std::ranges::equal(want, *more.pieces[piece].bytes));
      }
      const SavedState state = more.state.place ? pages_.snapshots.at(*more.state.place) : more.state.bytes;
      EXPECT_TRUE(same(state, state_of(prompt, more.rows)));
    }
    if (rows == 0) continue;
    const auto used = pages_.fill(prompt, rows);
    KeptState state;
    if (below(2) == 0) {
      pages_.snapshots[next] = state_of(prompt, rows);
      state.place = SnapshotPlace(new std::int32_t(next++), [this](const std::int32_t* place) {
        EXPECT_EQ(pages_.snapshots.erase(*place), 1u);
        delete place;
      });
    } else {
      state.bytes = state_of(prompt, rows);
    }
    tree.insert(salt_of(""), prompt, rows, used, std::move(state));
    pages_.release(used);
    while (tree.spare_pages() > 8) ASSERT_TRUE(tree.evict_page());
    while (pages_.snapshots.size() > 4) ASSERT_TRUE(tree.evict_snapshot());
    EXPECT_LE(tree.host_bytes(), kBytes);
  }
  EXPECT_GT(found, 100);
  tree.clear();
  EXPECT_EQ(pages_.held(), 0u);
  EXPECT_TRUE(pages_.snapshots.empty());
  EXPECT_EQ(tree.host_bytes(), 0u);
}

TEST_F(PrefixTreeTest, SaysWhereAPromptDiffersAndWhatWasLost) {
  PrefixTree tree(pages_, {.host_bytes = 4096});
  Ids first(200, 1);
  const auto used = pages_.fill(first, 192);
  tree.insert(salt_of(""), first, 192, used, {.bytes = state_of(first, 192)});
  tree.note(salt_of(""), first);
  pages_.release(used);
  Ids second = first;
  second[195] = 9;
  PrefixTree::Match match = tree.find(salt_of(""), second, 199);
  EXPECT_EQ(match.common, 195);
  EXPECT_EQ(match.rows, 192);
  second[130] = 9;
  match = tree.find(salt_of(""), second, 199);
  EXPECT_EQ(match.common, 130);
  EXPECT_EQ(match.rows, 0);
  EXPECT_FALSE(match.evicted);  // nothing was cached at 128
  Ids other(200, 2);
  const auto others = pages_.fill(other, 192);
  // the first state is evicted
  tree.insert(salt_of(""), other, 192, others, {.bytes = state_of(other, 192)});
  pages_.release(others);
  match = tree.find(salt_of(""), first, 199);
  EXPECT_EQ(match.rows, 0);
  EXPECT_TRUE(match.evicted);
  EXPECT_EQ(tree.find(salt_of("other salt"), other, 199).common, 0);
}

// A prompt of complete blocks that begins with this token.
Ids blocks_of(std::int32_t first, int count) {
  Ids prompt(static_cast<std::size_t>(count) * 64, 7);
  prompt[0] = first;
  return prompt;
}

// A key's last prompt outlives later ones of others, until the key requests another.
TEST_F(PrefixTreeTest, KeepsTheLastPromptOfAKey) {
  for (const std::string key : {"", "mine"}) {
    for (const bool again : {false, true}) {
      PrefixTree tree(pages_, {.host_bytes = 2 * 4096});
      const auto keep = [&](const Ids& prompt, std::string_view own) {
        const auto rows = static_cast<std::int64_t>(prompt.size());
        const auto used = pages_.fill(prompt, rows);
        tree.insert(salt_of(""), prompt, rows, used, {.bytes = state_of(prompt, rows)}, {.key = own});
        pages_.release(used);
      };
      keep(blocks_of(1, 2), key);
      if (again) keep(blocks_of(2, 2), key);  // and no longer the first one
      keep(blocks_of(3, 2), {});
      keep(blocks_of(4, 2), {});
      const bool first = tree.find(salt_of(""), blocks_of(1, 3), 128).rows > 0;
      EXPECT_EQ(first, !key.empty() && !again) << key << again;
      EXPECT_EQ(tree.find(salt_of(""), blocks_of(2, 3), 128).rows > 0, !key.empty() && again) << key;
    }
  }
}

// With shares, what a client finds depends only on its own requests, whatever others do and wherever it is
// stored.
TEST_F(PrefixTreeTest, OthersDoNotAffectAShare) {
  constexpr std::uint64_t kBlockBytes = 64 * sizeof(std::int32_t);
  const unsigned seed = random_();
  const auto found = [&](int noise) {
    FakePages pages;
    pages.saves = true;
    PrefixTree tree(pages, {.shares = 3,
                            .block_bytes = kBlockBytes,
                            .state_bytes = 4096,
                            .host_bytes = 3 * (12 * 4096 + 24 * kBlockBytes)});
    std::mt19937 own(seed);
    std::vector<std::int64_t> rows_found;
    std::vector<Ids> asked;
    const auto ask = [&](const char* client, const Ids& prompt) {
      const Salt salt = salt_of(client, "");
      const auto rows = static_cast<std::int64_t>(prompt.size()) / 64 * 64;
      const PrefixTree::Match match = tree.find(salt, prompt, rows);
      const PrefixTree::StoredMatch more = tree.find_stored(salt, prompt, match.rows, rows);
      if (rows > 0) {
        const auto used = pages.fill(prompt, rows);
        tree.insert(salt, prompt, rows, used, {.bytes = state_of(prompt, rows)}, {.key = "same"});
        pages.release(used);
      }
      EXPECT_LE(tree.host_bytes(), 3 * (12 * 4096 + 24 * kBlockBytes));
      return std::max(match.rows, more.rows);
    };
    for (int i = 0; i < 300; ++i) {
      std::swap(random_, own);
      asked.push_back(asked.empty() || below(2) == 0 ? some_prompt() : asked[random_() % asked.size()]);
      std::swap(random_, own);
      if (asked.size() > 8) asked.erase(asked.begin());
      const Ids prompt = asked.back();
      rows_found.push_back(ask("one", prompt));
      for (int other = noise > 0 ? below(noise) : 0; other > 0; --other) {
        ask(below(2) == 0 ? "two" : "three", below(2) == 0 ? prompt : some_prompt());
        if (below(3) == 0) tree.evict_page();  // as running sequences need them
        if (below(3) == 0) tree.evict_snapshot();
      }
    }
    tree.clear();
    EXPECT_EQ(pages.held(), 0u);
    return rows_found;
  };
  const auto alone = found(0);
  EXPECT_GT(std::count_if(alone.begin(), alone.end(), [](std::int64_t rows) { return rows > 0; }), 60);
  EXPECT_EQ(found(3), alone);
  EXPECT_EQ(found(20), alone);
}

TEST_F(PrefixTreeTest, IsDescribedAsPeopleSeeIt) {
  PrefixTree tree(pages_, {.block_bytes = 10, .state_bytes = 100});
  const auto keep = [&](const Ids& prompt) {
    const auto rows = static_cast<std::int64_t>(prompt.size());
    const auto used = pages_.fill(prompt, rows);
    tree.insert(salt_of(""), prompt, rows, used, {.bytes = state_of(prompt, rows)});
    pages_.release(used);
  };
  Ids longer = blocks_of(1, 6);
  keep(blocks_of(1, 2));
  keep(longer);
  longer[3 * 64] = 9;
  keep(longer);
  tree.find(salt_of(""), blocks_of(1, 3), 128);
  const auto nodes = tree.describe(salt_of(""), 100);
  ASSERT_EQ(nodes.size(), 4u);  // the first two blocks, the third, and two continuations of it
  const std::vector<std::array<std::int64_t, 3>> want = {
      {-1, 0, 128}, {0, 128, 192}, {1, 192, 384}, {1, 192, 384}};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ((std::array{nodes[i].parent, nodes[i].begin, nodes[i].end}), want[i]) << i;
    EXPECT_EQ(nodes[i].on_device, nodes[i].end - nodes[i].begin);
    EXPECT_EQ(nodes[i].state_on_host, i != 1);
    EXPECT_EQ(nodes[i].hits, i == 0 ? 1u : 0u);
    const auto blocks = static_cast<std::uint64_t>(nodes[i].end - nodes[i].begin) / 64;
    EXPECT_EQ(nodes[i].bytes, blocks * 10 + (i == 1 ? 0 : 100));
  }
  EXPECT_EQ(nodes[2].ids[0], 7);
  EXPECT_EQ(nodes[3].ids[0], 9);
  EXPECT_EQ(tree.describe(salt_of(""), 2).size(), 2u);
  EXPECT_TRUE(tree.describe(salt_of("other"), 100).empty());
}

}  // namespace
}  // namespace sluice::scheduler::prefix
