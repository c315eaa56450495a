#include "graph/row_copies.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace plancast {
namespace {

// Draws groups, then copies among their receivers, and counts the places that get one.
double Drawn(const RowCopies& rows, int places, int receivers, int draws) {
  std::mt19937 random(1);
  std::vector<int> groups(rows.groups);
  std::iota(groups.begin(), groups.end(), 0);
  const int of_group = receivers / rows.groups, of_place = receivers / places;
  double reached = 0;
  for (int i = 0; i < draws; ++i) {
    std::shuffle(groups.begin(), groups.end(), random);
    std::set<int> hit;
    for (int copy = 0; copy < rows.each; ++copy) {
      const int group = groups[random() % rows.chosen];
      hit.insert((group * of_group + static_cast<int>(random() % of_group)) / of_place);
    }
    reached += static_cast<double>(hit.size());
  }
  return reached / draws;
}

TEST(RowCopiesTest, PlacesAreReachedAsOftenAsWhereCopiesAreDrawn) {
  for (const RowCopies& rows : {RowCopies{8}, RowCopies{8, 8, 4}, RowCopies{6, 8, 3},
                                RowCopies{8, 4, 1}, RowCopies{2, 16, 5}}) {
    for (const int places : {1, 2, 4, 8, 16, 32, 64}) {
      const double drawn = Drawn(rows, places, /*receivers=*/256, /*draws=*/4000);
      EXPECT_NEAR(rows.Reached(places) / drawn, 1, 0.02)
          << rows.each << " in " << rows.chosen << " of " << rows.groups << " to " << places;
    }
  }
}

TEST(RowCopiesTest, WhatIsDealtReachesThePlacesOfNeighbours) {
  for (const auto& [each, receivers] :
       std::vector<std::pair<int, int>>{{8, 128}, {8, 256}, {8, 384}, {4, 32}, {6, 64}, {3, 8}}) {
    for (const int places : {1, 2, 4, 8, 16, 32, 64}) {
      if (receivers % places != 0) continue;
      double reached = 0;
      for (int row = 0; row < receivers; ++row) {
        std::set<int> hit;
        for (int copy = 0; copy < each; ++copy) {
          hit.insert((row * each + copy) % receivers / (receivers / places));
        }
        reached += static_cast<double>(hit.size()) / receivers;
      }
      EXPECT_NEAR((RowCopies{each, 1, 1, receivers}.Reached(places)), reached, 1e-9)
          << each << " of " << receivers << " on " << places;
    }
  }
}

TEST(RowCopiesTest, ManyGroupsAreNoneAlmost) {
  const double reached = RowCopies{8, 1'000'000, 500'000}.Reached(64);
  EXPECT_NEAR(reached, RowCopies{8}.Reached(64), 1e-3);
}

TEST(RowCopiesTest, GroupsNeverReachMorePlaces) {
  for (double places = 1; places <= 40; places += 0.5) {
    double before = 0;
    for (int chosen = 1; chosen <= 12; ++chosen) {
      const double reached = RowCopies{8, 12, chosen}.Reached(places);
      EXPECT_GE(reached, before - 1e-12) << places << " " << chosen;
      EXPECT_GE(reached, 1 - 1e-9);
      before = reached;
    }
    EXPECT_NEAR(before, RowCopies{8}.Reached(places), 1e-12);
  }
}

}  // namespace
}  // namespace plancast
