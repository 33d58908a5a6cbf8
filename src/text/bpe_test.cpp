#include "text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace tern::text {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Ids = std::vector<std::int32_t>;

// Tokens 0 to 2 are the bytes a, b, c; no other byte has one.
std::array<std::int32_t, 256> abc() {
  std::array<std::int32_t, 256> tokens{};
  tokens.fill(-1);
  for (int i = 0; i < 3; ++i) tokens[static_cast<std::size_t>('a' + i)] = i;
  return tokens;
}

Ids encode(const Bpe& bpe, std::string_view piece) {
  BpeScratch scratch;
  Ids ids;
  bpe.encode(piece, scratch, ids);
  return ids;
}

TEST(Bpe, MergesTheLowestRankFirst) {
  // ab: 3 (rank 1), bc: 4 (rank 0), abc: 5 from a + bc (rank 2)
  const Bpe bpe(abc(), MergeTable(6, {{0, 1, 3, 1}, {1, 2, 4, 0}, {0, 4, 5, 2}}));
  EXPECT_THAT(encode(bpe, "abc"), ElementsAre(5));
  EXPECT_THAT(encode(bpe, "ab"), ElementsAre(3));
  EXPECT_THAT(encode(bpe, "aab"), ElementsAre(0, 3));
  EXPECT_THAT(encode(bpe, "abcab"), ElementsAre(5, 3));
  EXPECT_THAT(encode(bpe, ""), IsEmpty());
}

TEST(Bpe, MergesTheLeftmostOfEqualRanks) {
  const Bpe bpe(abc(), MergeTable(5, {{0, 0, 3, 0}, {3, 3, 4, 1}}));
  EXPECT_THAT(encode(bpe, "aaa"), ElementsAre(3, 0));
  EXPECT_THAT(encode(bpe, "aaaaa"), ElementsAre(4, 0));
  EXPECT_THAT(encode(bpe, "aaaaaaa"), ElementsAre(4, 3, 0));
}

TEST(Bpe, LeavesOutBytesWithoutATokenBeforeItMerges) {
  const Bpe bpe(abc(), MergeTable(4, {{0, 1, 3, 0}}));
  EXPECT_THAT(encode(bpe, "axxb"), ElementsAre(3));
  EXPECT_THAT(encode(bpe, "xyz"), IsEmpty());
}

TEST(MergeTable, TakesTheLaterOfTwoEqualPairs) {
  const MergeTable table(5, {{0, 1, 3, 0}, {0, 1, 4, 7}, {1, 0, 3, 2}});
  EXPECT_EQ(table.size(), 2U);
  ASSERT_NE(table.find(0, 1), nullptr);
  EXPECT_EQ(table.find(0, 1)->rank, 7U);
  EXPECT_EQ(table.find(0, 1)->result, 4);
  EXPECT_EQ(table.find(0, 0), nullptr);
  EXPECT_EQ(table.find(4, 1), nullptr);
}

// The definition, step by step: find the pair of lowest rank, leftmost; merge it; again.
Ids merge_naively(Ids ids, const std::map<std::pair<int, int>, std::pair<unsigned, int>>& merges) {
  while (true) {
    std::size_t best = ids.size();
    unsigned rank = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto at = merges.find({ids[i], ids[i + 1]});
      if (at == merges.end() || (best != ids.size() && at->second.first >= rank)) continue;
      best = i;
      rank = at->second.first;
    }
    if (best == ids.size()) return ids;
    ids[best] = merges.at({ids[best], ids[best + 1]}).second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, EqualsTheDefinitionOnRandomVocabularies) {
  std::mt19937 random(3);
  const auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    std::vector<Merge> merges;
    std::map<std::pair<int, int>, std::pair<unsigned, int>> by_pair;
    int tokens = 3;
    for (unsigned rank = 0; rank < 12; ++rank) {
      const auto count = static_cast<std::size_t>(tokens);
      const Merge merge{below(count), below(count), tokens, rank};
      if (!by_pair.insert({{merge.left, merge.right}, {rank, tokens}}).second) continue;
      merges.push_back(merge);
      ++tokens;
    }
    const Bpe bpe(abc(), MergeTable(static_cast<std::size_t>(tokens), merges));
    for (int i = 0; i < 20; ++i) {
      std::string piece(static_cast<std::size_t>(below(30)), 'a');
      Ids bytes;
      for (char& c : piece) {
        c = static_cast<char>(c + below(3));
        bytes.push_back(c - 'a');
      }
      ASSERT_EQ(encode(bpe, piece), merge_naively(bytes, by_pair)) << piece;
    }
  }
}

}  // namespace
}  // namespace tern::text
