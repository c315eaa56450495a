// Grids of ranks for matrix products.

#include "planner/search/product_grid.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

std::vector<ProductGrid> Grids(const ProductGridRequest& request) {
  const auto grids = ProductGrids(request);
  EXPECT_OK(grids.status());
  return grids.ok() ? *grids : std::vector<ProductGrid>{};
}

// DISTAL's log of COSMA (8192 cubed on 40 ranks) has m/2, n/2, n/2, k/5: a permutation of (2, 4,
// 5).
TEST(ProductGridTest, FortyRanksHaveSixBestGrids) {
  const double n = 8192;
  const std::vector<ProductGrid> grids = Grids({8192, 8192, 8192, 40});
  std::set<std::multiset<int64_t>> best;
  size_t count = 0;
  while (count < grids.size() && grids[count].surface < grids[0].surface * (1 + 1e-12)) {
    const ProductGrid& grid = grids[count++];
    best.insert({grid.rows, grid.columns, grid.layers});
    EXPECT_NEAR(grid.surface, 0.275 * n * n, 1);
  }
  EXPECT_EQ(count, 6);
  EXPECT_EQ(best, (std::set<std::multiset<int64_t>>{{2, 4, 5}}));
  EXPECT_NEAR(grids[6].surface, 0.35 * n * n, 1);
}

TEST(ProductGridTest, EveryGridOfTheRanksIsThereOnce) {
  std::set<std::tuple<int64_t, int64_t, int64_t>> seen;
  for (const ProductGrid& grid : Grids({64, 96, 128, 24})) {
    EXPECT_EQ(grid.rows * grid.columns * grid.layers, 24);
    EXPECT_TRUE(seen.insert({grid.rows, grid.columns, grid.layers}).second);
  }
  EXPECT_EQ(seen.size(), 30);  // ordered factorisations of 24 in three
}

TEST(ProductGridTest, LongDimsAreCutFirst) {
  const ProductGrid best = Grids({1 << 20, 64, 64, 64}).front();
  EXPECT_EQ(best, (ProductGrid{64, 1, 1}));
  EXPECT_EQ(Grids({64, 64, 1 << 20, 64}).front(), (ProductGrid{1, 1, 64}));
}

TEST(ProductGridTest, MoreLayersMoveLessAndHoldMore) {
  // Solomonik's 2.5-D: copies of C, c times n^2 / P elements each.
  const auto of = [](int64_t layers) {
    for (const ProductGrid& grid : Grids({4096, 4096, 4096, 64})) {
      if (grid.layers == layers && grid.rows == grid.columns) return grid;
    }
    return ProductGrid();
  };
  EXPECT_LT(of(4).moved, of(1).moved);
  EXPECT_EQ(of(4).rows, 4);
  const double n = 4096, one = n * n / 64;
  // With C and nothing else held, four layers need four times as much.
  for (const double memory : {1.5 * one, 2.5 * one, 4.5 * one, 8.5 * one}) {
    int64_t most = 0;
    for (const ProductGrid& grid : Grids({4096, 4096, 4096, 64, memory})) {
      EXPECT_LE(grid.held, memory);
      most = std::max(most, grid.layers);
    }
    EXPECT_EQ(most, memory < 2 * one ? 1 : memory < 4 * one ? 2 : memory < 8 * one ? 4 : 8);
  }
}

// DISTAL's log of ScaLAPACK (blocks of 2,048, 4 ranks a node) has `lld_a = 6144` on 2 x 4 and 4096
// on 4 x 4: six blocks on two rows of ranks and on four columns are three and two, of 2.83
// and 1.41.
TEST(ProductGridTest, BlocksThatAreDealtOutInTurnMayBeUneven) {
  const auto of = [](int64_t n, int64_t rows, int64_t columns, std::optional<int64_t> block) {
    for (const ProductGrid& grid : Grids({n, n, n, rows * columns, {}, 0, block})) {
      if (grid.layers == 1 && grid.rows == rows) return grid;
    }
    return ProductGrid();
  };
  const ProductGrid uneven = of(11584, 2, 4, 2048);
  EXPECT_DOUBLE_EQ(uneven.busiest, 6144.0 * 4096 * 8 / (11584.0 * 11584));
  EXPECT_DOUBLE_EQ(uneven.surface, 6144.0 * 11584 + 4096.0 * 11584 + 6144.0 * 4096);
  EXPECT_DOUBLE_EQ(of(11584, 2, 4, {}).busiest, 1);
  EXPECT_DOUBLE_EQ(of(16384, 4, 4, 2048).busiest, 1);
  EXPECT_DOUBLE_EQ(of(11584, 2, 4, 1).busiest, 1);
  // Against a count rank by rank.
  for (const int64_t n : {7, 12, 13, 29}) {
    for (const int64_t block : {1, 2, 3, 5, 40}) {
      for (const int64_t parts : {1, 2, 3, 4}) {
        std::vector<int64_t> own(parts, 0);
        for (int64_t i = 0; i < n; ++i) ++own[i / block % parts];
        const double most = static_cast<double>(*std::max_element(own.begin(), own.end()));
        EXPECT_DOUBLE_EQ(of(n, parts, 1, block).busiest, most * parts / n) << n << block << parts;
      }
    }
  }
}

TEST(ProductGridTest, SlicesMakeRoom) {
  const double n = 1024;
  const ProductGrid whole = Grids({1024, 1024, 1024, 16}).front();
  EXPECT_EQ(whole.steps, 1);
  const double tight = n * n / 16 + n * n / 64;
  const ProductGrid sliced = Grids({1024, 1024, 1024, 16, tight}).front();
  EXPECT_GT(sliced.steps, 1);
  EXPECT_LE(sliced.held, tight);
}

TEST(ProductGridTest, RanksMayBeLeftIdle) {
  const ProductGrid all = Grids({4096, 4096, 4096, 61}).front();
  const ProductGrid some = Grids({4096, 4096, 4096, 61, {}, 1}).front();
  EXPECT_EQ(all.rows * all.columns * all.layers, 61);  // a prime
  EXPECT_EQ(some.rows * some.columns * some.layers, 60);
  EXPECT_LT(some.surface, all.surface / 5);
}

TEST(ProductGridTest, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(ProductGrids({4096, 4096, 4096, 64, 1000.0}).status().message(),
              HasSubstr("the smallest needs"));
  EXPECT_THAT(ProductGrids({2, 2, 2, 64}).status().message(), HasSubstr("Use fewer ranks"));
  EXPECT_THAT(ProductGrids({0, 2, 2, 4}).status().message(), HasSubstr("1 or more"));
  EXPECT_THAT(ProductGrids({4, 2, 2, 4, {}, 4}).status().message(), HasSubstr("0 to 3"));
}

}  // namespace
}  // namespace plancast
