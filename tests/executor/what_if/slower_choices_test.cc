#include "executor/what_if/slower_choices.h"

#include "executor/what_if/what_if.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A gather of 1 MiB over pairs: NCCL leaves LL for Simple where NVLink is twice as fast.
ExecutionGraph Gathers() {
  GraphBuilder b({{"dp", 4}, {"tp", 2}});
  b.Block("step").Comm(CollectiveKind::kAllGather, 1 << 20, {1});
  b.Program("all").Run("step", {}, 1);
  return b.Build();
}

std::vector<std::string> Sentences(const std::string& what_if, const char* preset) {
  const ExecutionGraph graph = Gathers();
  const Machine machine = *MachineFromPreset(preset);
  const auto changed = ChangePlan(*ParseWhatIf(what_if), graph, machine, RuntimeParams());
  EXPECT_TRUE(changed.ok()) << changed.status();
  return *SlowerChoices(graph, machine, changed->machine, RuntimeParams());
}

TEST(SlowerChoices, SaysThatALibraryChoosesWhatTakesLonger) {
  EXPECT_THAT(
      Sentences("nvlink=2x", "dgx-a100-80g:1"),
      ElementsAre(AllOf(HasSubstr("chooses ring/Simple for `all_gather` of 1.05 MB over 2 devices"),
                        HasSubstr("where it chose ring/LL"))));
}

TEST(SlowerChoices, IsSilentWhereNothingTakesLonger) {
  EXPECT_THAT(Sentences("nvlink=1x", "dgx-a100-80g:1"), IsEmpty());
  EXPECT_THAT(Sentences("pcie=2x", "dgx-a100-80g:1"), IsEmpty());
}

// That slower links take longer needs no word.
TEST(SlowerChoices, IsSilentOfSlowerLinks) {
  EXPECT_THAT(Sentences("nvlink=50%", "dgx-a100-80g:1"), IsEmpty());
}

}  // namespace
}  // namespace plancast
