// Laws of sharing, on random activities, for one Fluid and for Levels, under both
// policies. Every solution is compared with one of everything as well.

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "base/int128.h"
#include "executor/sharing/fluid.h"
#include "executor/sharing/levels.h"
#include "gtest/gtest.h"
#include "tests/executor/sharing/random_sharing.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

constexpr int128 kWorkPerByte = (int128{1} << 16) * 1'000'000'000'000;

struct Live {
  int32_t id = 0;
  int kind = 0;
  int128 work = 0, done = 0;  // 2^-16 B/s times ps
  int64_t rate = 0;
};

// Holds the rates of what runs against the laws.
void ExpectLaws(const RandomSharing& sharing, LinkSharing policy, const std::vector<Live>& live) {
  const auto class_of = [&](const RandomSharing::Kind& kind) {
    return policy == LinkSharing::kMaxMin ? 0 : kind.priority;
  };
  std::vector<int128> load(sharing.resources.size());
  for (const Live& a : live) {
    for (const auto& use : sharing.kinds[a.kind].uses) {
      load[use.resource] += int128{use.coefficient_q20} * a.rate;
    }
  }
  for (size_t r = 0; r < load.size(); ++r) {
    EXPECT_LE(load[r], int128{sharing.resources[r].capacity} << 36) << "resource beyond capacity";
  }
  for (const Live& a : live) {
    const RandomSharing::Kind& kind = sharing.kinds[a.kind];
    EXPECT_LE(a.rate, kind.CapQ16()) << "faster than its cap";
    bool held = a.rate == kind.CapQ16();
    for (const auto& use : kind.uses) {
      const int128 capacity = int128{sharing.resources[use.resource].capacity} << 36;
      EXPECT_LE(int128{a.rate} * use.coefficient_q20, capacity) << "faster than alone";
      // Full by its class and more urgent ones, but for the remainder of one division.
      int128 full = 0, granule = 0;
      for (const Live& b : live) {
        const RandomSharing::Kind& other = sharing.kinds[b.kind];
        if (class_of(other) > class_of(kind)) continue;
        for (const auto& u : other.uses) {
          if (u.resource != use.resource) continue;
          full += int128{u.coefficient_q20} * b.rate;
          if (class_of(other) == class_of(kind)) {
            granule += int128{u.coefficient_q20} * other.weight;
          }
        }
      }
      held = held || full + granule > capacity;
    }
    EXPECT_TRUE(held) << "kind " << a.kind << " could be faster";
  }
}

template <typename Shares>
class SharingLawsTest : public testing::Test {
 protected:
  void SetUp() override { Fluid::CheckSolutions(true); }
  void TearDown() override { Fluid::CheckSolutions(false); }
};

using Solvers = testing::Types<Fluid, Levels>;
TYPED_TEST_SUITE(SharingLawsTest, Solvers);

constexpr LinkSharing kPolicies[] = {LinkSharing::kMaxMin, LinkSharing::kPriority};
constexpr int kSeeds = 250;

TYPED_TEST(SharingLawsTest, HoldAtEveryMoment) {
  const auto first = static_cast<uint32_t>(TestSeed(1));
  int64_t moments = 0, shared = 0;
  for (uint32_t seed = first; seed < first + kSeeds && !this->HasFailure(); ++seed) {
    for (LinkSharing policy : kPolicies) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " policy " << static_cast<int>(policy));
      std::mt19937 random(seed);
      const auto draw = [&](int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
      };
      const RandomSharing sharing = DrawSharing(random);
      TypeParam shares(policy);
      AddAll(sharing, shares);
      std::vector<Live> live;
      const auto advance = [&](int64_t to) {
        const int64_t past = to - shares.now();
        for (Live& a : live) {
          // Just not through a picosecond ago.
          if (past > 0) {
            EXPECT_LT(a.done + int128{a.rate} * (past - 1), a.work);
          }
          a.done += int128{a.rate} * past;
        }
        for (int32_t id : shares.AdvanceTo(to)) {
          const auto ended =
              std::find_if(live.begin(), live.end(), [id](const Live& a) { return a.id == id; });
          ASSERT_NE(ended, live.end());
          EXPECT_GE(ended->done, ended->work) << "ended with work left";
          live.erase(ended);
        }
        for (const Live& a : live) EXPECT_LT(a.done, a.work) << "did not end";
      };
      for (int step = 0; step < 50; ++step) {
        const int64_t what = draw(0, 9);
        const int64_t next = shares.NextCompletion();
        if (live.empty() || what < 5) {
          for (int64_t n = draw(1, 3); n > 0; --n) {
            const int kind =
                static_cast<int>(draw(0, static_cast<int64_t>(sharing.kinds.size()) - 1));
            const int64_t work = draw(1, 2) == 1 ? sharing.unit : draw(1, 100 * sharing.unit);
            live.push_back({shares.Start(kind, work), kind, work * kWorkPerByte, 0, 0});
          }
        } else if (what < 8) {
          advance(next);
        } else if (what < 9) {
          advance(shares.now() + (next - shares.now()) / draw(2, 5));
        } else {
          const auto gone = live.begin() + draw(0, static_cast<int64_t>(live.size()) - 1);
          shares.Remove(gone->id);
          live.erase(gone);
        }
        ASSERT_EQ(shares.num_active(), static_cast<int>(live.size()));
        std::vector<int> active;
        for (const Live& a : live) active.push_back(a.kind);
        const std::vector<int64_t> rates = PlainRates(sharing, policy, active);
        shares.NextCompletion();
        for (size_t i = 0; i < live.size(); ++i) {
          live[i].rate = shares.RateQ16(live[i].id);
          ASSERT_EQ(live[i].rate, rates[i]) << "activity " << i << " of kind " << live[i].kind;
          shared += rates[i] < sharing.kinds[live[i].kind].CapQ16();
        }
        ExpectLaws(sharing, policy, live);
        ++moments;
      }
    }
  }
  EXPECT_GT(shared, moments);  // most moments have several that are held up
}

// When what is started, each at its time, ends; by label.
template <typename Shares>
std::vector<int64_t> EndsOf(const RandomSharing& sharing, LinkSharing policy,
                            const std::vector<std::tuple<int64_t, int, int64_t, int>>& starts) {
  Shares shares(policy);
  AddAll(sharing, shares);
  std::map<int32_t, int> label_of;
  std::vector<int64_t> ends(starts.size(), -1);
  size_t next = 0;
  while (true) {
    const int64_t start = next < starts.size() ? std::get<0>(starts[next]) : Fluid::kNever;
    const int64_t time = std::min(start, shares.NextCompletion());
    if (time == Fluid::kNever) return ends;
    for (int32_t id : shares.AdvanceTo(time)) ends[label_of[id]] = time;
    for (; next < starts.size() && std::get<0>(starts[next]) == time; ++next) {
      const auto& [at, kind, work, label] = starts[next];
      label_of[shares.Start(kind, work)] = label;
    }
  }
}

TYPED_TEST(SharingLawsTest, EndsDependOnNoOrderOfCalls) {
  const auto first = static_cast<uint32_t>(TestSeed(1));
  for (uint32_t seed = first; seed < first + kSeeds && !this->HasFailure(); ++seed) {
    for (LinkSharing policy : kPolicies) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " policy " << static_cast<int>(policy));
      std::mt19937 random(seed);
      const auto draw = [&](int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
      };
      const RandomSharing sharing = DrawSharing(random);
      std::vector<std::tuple<int64_t, int, int64_t, int>> starts;
      for (int label = 0; label < 20; ++label) {
        const int kind = static_cast<int>(draw(0, static_cast<int64_t>(sharing.kinds.size()) - 1));
        starts.emplace_back(draw(0, 3) * 1'000'000'000'000, kind, draw(1, 5) * sharing.unit, label);
      }
      std::sort(starts.begin(), starts.end());
      const std::vector<int64_t> ends = EndsOf<TypeParam>(sharing, policy, starts);
      EXPECT_EQ(std::count(ends.begin(), ends.end(), -1), 0) << "some never end";
      std::shuffle(starts.begin(), starts.end(), random);
      std::stable_sort(starts.begin(), starts.end(), [](const auto& a, const auto& b) {
        return std::get<0>(a) < std::get<0>(b);
      });
      EXPECT_EQ(EndsOf<TypeParam>(sharing, policy, starts), ends);
    }
  }
}

// One activity with coefficient m*c does as m with coefficient c, alongside others.
TYPED_TEST(SharingLawsTest, FoldedEqualsFlat) {
  const auto first = static_cast<uint32_t>(TestSeed(1));
  for (uint32_t seed = first; seed < first + kSeeds && !this->HasFailure(); ++seed) {
    for (LinkSharing policy : kPolicies) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " policy " << static_cast<int>(policy));
      std::mt19937 random(seed);
      const auto draw = [&](int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
      };
      const RandomSharing one = DrawSharing(random);
      RandomSharing all = one;
      std::vector<int64_t> copies;
      for (RandomSharing::Kind& kind : all.kinds) {
        copies.push_back(draw(1, 4));
        for (ActivityKinds::Use& use : kind.uses) use.coefficient_q20 *= copies.back();
      }
      std::vector<std::tuple<int64_t, int, int64_t, int>> flat, folded;
      for (size_t kind = 0; kind < all.kinds.size(); ++kind) {
        const int64_t at = draw(0, 2) * 1'000'000'000'000, work = draw(1, 10) * one.unit;
        folded.emplace_back(at, kind, work, kind);
        for (int64_t c = 0; c < copies[kind]; ++c) flat.emplace_back(at, kind, work, 0);
      }
      std::sort(flat.begin(), flat.end());
      std::sort(folded.begin(), folded.end());
      std::vector<int> kind_of;
      for (size_t i = 0; i < flat.size(); ++i) {
        kind_of.push_back(std::get<1>(flat[i]));
        std::get<3>(flat[i]) = static_cast<int>(i);
      }
      const std::vector<int64_t> folded_ends = EndsOf<TypeParam>(all, policy, folded),
                                 flat_ends = EndsOf<TypeParam>(one, policy, flat);
      for (size_t i = 0; i < flat.size(); ++i) EXPECT_EQ(flat_ends[i], folded_ends[kind_of[i]]);
    }
  }
}

}  // namespace
}  // namespace plancast
