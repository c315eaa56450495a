// Once as many activities have run at once as ever will, events allocate nothing.

#include <cstdlib>
#include <new>
#include <random>
#include <vector>

#include "executor/sharing/fluid.h"
#include "executor/sharing/levels.h"
#include "gtest/gtest.h"
#include "tests/executor/sharing/random_sharing.h"

namespace {

int64_t allocations = 0;

}  // namespace

void* operator new(size_t size) {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace plancast {
namespace {

template <typename Shares>
class NoAllocationTest : public testing::Test {};
using Solvers = testing::Types<Fluid, Levels>;
TYPED_TEST_SUITE(NoAllocationTest, Solvers);

// The same rounds of starts and ends again and again.
TYPED_TEST(NoAllocationTest, ByEventsLikeThoseBefore) {
  Fluid::CheckSolutions(false);
  for (LinkSharing policy : {LinkSharing::kMaxMin, LinkSharing::kPriority}) {
    std::mt19937 random(7);
    const RandomSharing sharing = DrawSharing(random);
    TypeParam shares(policy);
    AddAll(sharing, shares);
    const auto round = [&] {
      for (int again = 0; again < 3; ++again) {
        for (size_t k = 0; k < sharing.kinds.size(); ++k) {
          shares.Start(static_cast<int32_t>(k), sharing.unit * static_cast<int64_t>(1 + k % 5));
        }
        shares.AdvanceTo(shares.NextCompletion());
      }
      while (shares.num_active() > 0) shares.AdvanceTo(shares.NextCompletion());
    };
    for (int i = 0; i < 4; ++i) round();
    const int64_t before = allocations;
    for (int i = 0; i < 100; ++i) round();
    EXPECT_EQ(allocations, before);
  }
}

}  // namespace
}  // namespace plancast
