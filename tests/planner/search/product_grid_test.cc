// Grids of ranks for matrix products.

#include "planner/search/product_grid.h"

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
