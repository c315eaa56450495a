// Keys that queries read in documents: closed forms.

#include "graph/model/packed_documents.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace plancast {
namespace {

TEST(PackedDocumentsTest, OneDocumentIsPlainCausal) {
  for (const int64_t seq : {1, 7, 512}) {
    for (const int64_t length : {seq, 3 * seq}) {
      EXPECT_DOUBLE_EQ(KeysOfBusiest({length}, seq, 0, {}), static_cast<double>(seq + 1) / 2);
    }
  }
}

TEST(PackedDocumentsTest, EqualLengthsReadTheirOwn) {
  for (const int64_t length : {1, 8, 64}) {
    const double keys = static_cast<double>(length + 1) / 2;
    EXPECT_DOUBLE_EQ(KeysOfBusiest({length}, 512, 0, {}), keys);
    // Every rank has the same of each document, and every replica the same sequences.
    EXPECT_DOUBLE_EQ(KeysOfBusiest({length}, 512, 0, {8, 2, 3, 4}), keys);
  }
}

TEST(PackedDocumentsTest, MixedLengthsAddTheirSquares) {
  // Of 16 queries: 1..4, then 1..12.
  EXPECT_DOUBLE_EQ(KeysOfBusiest({4, 12}, 16, 0, {}), (10 + 78) / 16.0);
  // What does not fit goes on in the next sequence: 10 and 6, 4 and 10 and 2, ...
  const double first = 55 + 21, second = 10 + 55 + 3;
  EXPECT_DOUBLE_EQ(KeysOfBusiest({10}, 16, 0, {1, 1, 2, 1}), (first + second) / 32);
}

TEST(PackedDocumentsTest, ManyDrawsApproachTheExpectedSumOfSquares) {
  std::mt19937_64 random(11);
  std::exponential_distribution<double> draw(1.0 / 40);
  std::vector<int64_t> lengths;
  double sum = 0, squares = 0;
  for (int i = 0; i < 50'000; ++i) {
    const double length = 1 + std::floor(draw(random));
    lengths.push_back(static_cast<int64_t>(length));
    sum += length;
    squares += length * length;
  }
  // Sequences far longer than documents, so that few are cut.
  const double expected = (squares / sum + 1) / 2;
  EXPECT_NEAR(KeysOfBusiest(lengths, 1 << 16, 0, {1, 1, 30, 1}), expected, 0.01 * expected);
}

TEST(PackedDocumentsTest, WindowsAreNoLongerThanDocuments) {
  EXPECT_DOUBLE_EQ(KeysOfBusiest({64}, 64, 4, {}), (10 + 60 * 4) / 64.0);
  EXPECT_DOUBLE_EQ(KeysOfBusiest({8}, 64, 100, {}), 4.5);
  EXPECT_DOUBLE_EQ(KeysOfBusiest({8}, 64, 4, {}), (10 + 4 * 4) / 8.0);
}

TEST(PackedDocumentsTest, TheSlowestReplicaDecides) {
  // Sequences in turn: one document of 8, eight of 1.
  const std::vector<int64_t> lengths = {8, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_DOUBLE_EQ(KeysOfBusiest(lengths, 8, 0, {2, 1, 1, 1}), 4.5);
  EXPECT_DOUBLE_EQ(KeysOfBusiest(lengths, 8, 0, {1, 2, 1, 1}), (36 + 8) / 16.0);
  // Over steps they are as busy, where each gets both.
  EXPECT_DOUBLE_EQ(KeysOfBusiest(lengths, 8, 0, {3, 1, 2, 1}), (36 + 8) / 16.0);
}

TEST(PackedDocumentsTest, PiecesOfTheSequenceAreAsBusyAsTheirDocuments) {
  const int64_t n = 4;
  const double whole = 16 * 17 / 2.0, own = 16.0 / n;
  const auto busiest = [&](const std::vector<int64_t>& lengths, DocumentCut cut) {
    return KeysOfBusiest(lengths, 16, 0, {1, 1, 1, n, cut});
  };
  // One document: both halves balance it, blocks do not.
  EXPECT_DOUBLE_EQ(busiest({16}, DocumentCut::kZigzag), whole / n / own);
  EXPECT_DOUBLE_EQ(busiest({16}, DocumentCut::kBlock), (13 + 14 + 15 + 16) / own);
  // A long one, then short ones: whoever has the end of the long one is busiest.
  const std::vector<int64_t> mixed = {12, 1, 1, 1, 1};
  EXPECT_DOUBLE_EQ(busiest(mixed, DocumentCut::kZigzag), (7 + 8 + 9 + 10) / own);
  EXPECT_DOUBLE_EQ(busiest(mixed, DocumentCut::kBlock), (9 + 10 + 11 + 12) / own);
  EXPECT_DOUBLE_EQ(busiest(mixed, DocumentCut::kEvenly), (78 + 4) / 16.0);
}

}  // namespace
}  // namespace plancast
