#include "executor/what_if/what_if.h"

#include "absl/strings/str_cat.h"
#include "executor/executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000'000;

// Tasks t0 (forward), t1 (tp), t2 (backward), t3 (dp), one after another.
ExecutionGraph Chain() {
  GraphBuilder b({{"dp", 2}, {"tp", 2}});
  b.Block("step").Kernel(1).Comm(CollectiveKind::kAllGather, 1'000'000'000, {1}, {0});
  b.Kernel(3, {1}, Purpose::kBackward);
  b.Comm(CollectiveKind::kAllReduce, 10'000'000'000, {0}, {2}, Purpose::kDp, StreamKind::kGradComm);
  b.Program("all").Run("step", {}, 1);
  ExecutionGraph graph = b.Build();
  graph.blocks[0].label = {"attn.qkv", "gather", "mlp.fc1.bwd", "grads"};
  return graph;
}

Machine TwoHosts() { return *Machine::Create(UnitMachine(2, 2)); }

SimResult Simulated(const std::string& what_if, RuntimeParams runtime = {},
                    const Machine& machine = TwoHosts()) {
  std::vector<WhatIfChange> changes;
  if (!what_if.empty()) changes = *ParseWhatIf(what_if);
  const auto plan = ChangePlan(changes, Chain(), machine, runtime);
  EXPECT_TRUE(plan.ok()) << plan.status();
  const auto result = Execute(plan->graph, plan->machine, UnitCost(), plan->runtime, plan->options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

int64_t TimeOf(const std::string& what_if) { return Simulated(what_if).makespan_ps; }

TEST(WhatIfTest, NothingChangedIsNothingChanged) {
  const Machine machine = TwoHosts();
  const auto as_is = Execute(Chain(), machine, UnitCost(), RuntimeParams());
  EXPECT_EQ(TimeOf(""), as_is->makespan_ps);
  EXPECT_EQ(TimeOf("op:attn=1x,nic=1x,purpose:dp=100%"), as_is->makespan_ps);
}

TEST(WhatIfTest, KernelsByLabelFamilyAndPurpose) {
  const int64_t now = TimeOf("");
  EXPECT_EQ(TimeOf("op:attn=free"), now - kSecond);
  EXPECT_EQ(TimeOf("op:attn.qkv=2x"), now - kSecond / 2);
  EXPECT_EQ(TimeOf("op:*.fc1.*=50%"), now + 3 * kSecond);
  EXPECT_EQ(TimeOf("op:*=free"), now - 4 * kSecond);
  EXPECT_EQ(TimeOf("purpose:backward=3x"), now - 2 * kSecond);
  EXPECT_EQ(TimeOf("compute=4x"), now - 3 * kSecond);
  EXPECT_EQ(TimeOf("compute=2x,op:mlp=3x"), now - kSecond / 2 - 5 * kSecond / 2);
  // No such kernels in this plan.
  EXPECT_EQ(TimeOf("purpose:recompute=2x"), now);
}

TEST(WhatIfTest, EveryFamilyOfKernelsHasAName) {
  for (const char* family : {"gemm", "attention", "memory", "optimizer", "convolution"}) {
    const std::string change = absl::StrCat("kernel:", family, "=2x");
    // Those of GraphBuilder are of family kMemory.
    EXPECT_EQ(TimeOf(change) < TimeOf(""), family == std::string("memory")) << change;
  }
  ExecutionGraph graph = Chain();
  for (KernelSpec& kernel : graph.kernels) kernel.family = KernelFamily::kConvolution;
  const auto plan =
      ChangePlan(*ParseWhatIf("kernel:convolution=2x"), graph, TwoHosts(), RuntimeParams());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->options.kernel_time, testing::Each(0.5));
}

TEST(WhatIfTest, CommunicationsByKindAndPurpose) {
  const SimResult now = Simulated("");
  const int64_t tp = now.critical_path.exposed_tp, dp = now.critical_path.exposed_dp;
  EXPECT_EQ(now.makespan_ps, 4 * kSecond + tp + dp);
  EXPECT_EQ(TimeOf("purpose:dp=free"), now.makespan_ps - dp);
  EXPECT_EQ(TimeOf("collective:all_gather=free"), now.makespan_ps - tp);
  EXPECT_EQ(TimeOf("communication=free"), 4 * kSecond);
  EXPECT_NEAR(static_cast<double>(TimeOf("collective:all_reduce=2x")),
              static_cast<double>(now.makespan_ps - dp / 2), 2);
}

TEST(WhatIfTest, LinksDevicesAndTheHost) {
  const SimResult now = Simulated("");
  const SimResult nic = Simulated("nic=2x");
  EXPECT_LT(nic.critical_path.exposed_dp, now.critical_path.exposed_dp);
  EXPECT_GT(nic.critical_path.exposed_dp, now.critical_path.exposed_dp * 2 / 5);
  EXPECT_EQ(nic.critical_path.exposed_tp, now.critical_path.exposed_tp);
  EXPECT_LT(Simulated("nvlink=2x").critical_path.exposed_tp, now.critical_path.exposed_tp);
  // One slow interface holds its groups up.
  EXPECT_GT(TimeOf("nic:3=0.5x"), now.makespan_ps);
  const SimResult slow = Simulated("device:2=50%");
  EXPECT_EQ(slow.makespan_ps, now.makespan_ps + 4 * kSecond);
  EXPECT_EQ(slow.classes.size(), 4);
  RuntimeParams runtime;
  runtime.launch_s = 10;
  EXPECT_GT(Simulated("", runtime).makespan_ps, 20 * kSecond);
  EXPECT_EQ(Simulated("launch=free", runtime).makespan_ps, now.makespan_ps);
  // What is free is not launched either.
  EXPECT_EQ(Simulated("", runtime).makespan_ps - Simulated("op:attn=free", runtime).makespan_ps,
            10 * kSecond);
}

// Two all-reduces, one of each tp rank, share the only interface of a host.
TEST(WhatIfTest, LinksOfOnesOwn) {
  const Machine narrow = *Machine::Create(UnitMachine(2, 2, /*gpus_per_nic=*/2));
  const SimResult shared = Simulated("", {}, narrow), alone = Simulated("sharing=free", {}, narrow);
  EXPECT_GT(shared.critical_path.exposed_dp, alone.critical_path.exposed_dp * 9 / 5);
  EXPECT_EQ(shared.critical_path.exposed_tp, alone.critical_path.exposed_tp);
  EXPECT_EQ(alone.critical_path.exposed_dp, Simulated("").critical_path.exposed_dp);
  // Where nothing is shared nothing changes.
  EXPECT_EQ(TimeOf("sharing=free"), TimeOf(""));
}

TEST(WhatIfTest, KernelsAndCommunicationsThatDoNotMeet) {
  GraphBuilder b({{"dp", 2}, {"tp", 2}});
  b.Block("step").Kernel(4);
  b.Comm(CollectiveKind::kAllReduce, 10'000'000'000, {0}, {}, Purpose::kDp, StreamKind::kGradComm);
  b.Program("all").Run("step", {}, 1);
  const ExecutionGraph graph = b.Build();
  const auto time = [&](const std::string& what_if, double interference) {
    RuntimeParams runtime;
    runtime.interference = runtime.comm_interference = interference;
    std::vector<WhatIfChange> changes;
    if (!what_if.empty()) changes = *ParseWhatIf(what_if);
    const auto plan = ChangePlan(changes, graph, TwoHosts(), runtime);
    return Execute(plan->graph, plan->machine, UnitCost(), plan->runtime, plan->options)
        ->makespan_ps;
  };
  EXPECT_GT(time("", 0.5), time("", 0));
  EXPECT_EQ(time("interference=free", 0.5), time("", 0));
}

TEST(WhatIfTest, TextGoesBothWays) {
  const auto changes =
      ParseWhatIf(" nic=2x, nic:3=0.5x,op:attn=free ,device:7=80%,launch=4x,sharing=free");
  ASSERT_TRUE(changes.ok()) << changes.status();
  std::vector<std::string> texts;
  for (const WhatIfChange& change : *changes) texts.push_back(change.DebugString());
  EXPECT_THAT(texts, ElementsAre("nic=2x", "nic:3=0.5x", "op:attn=free", "device:7=0.8x",
                                 "launch=4x", "sharing=free"));
}

TEST(WhatIfTest, ErrorsSayWhatThereIs) {
  const auto parse = [](const std::string& text) {
    return std::string(ParseWhatIf(text).status().message());
  };
  EXPECT_THAT(parse("nic"), HasSubstr("`nic` does not say by how much"));
  EXPECT_THAT(parse("nic=fast"), HasSubstr("`fast` in `nic=fast` is no factor"));
  EXPECT_THAT(parse("nic=0x"), HasSubstr("is no factor"));
  EXPECT_THAT(parse("nic=free"), HasSubstr("a link cannot be free"));
  EXPECT_THAT(parse("op=2x"), HasSubstr("does not say which op"));
  EXPECT_THAT(parse("device:x=2x"), HasSubstr("is no number of a device"));
  EXPECT_THAT(parse("sharing=2x"), HasSubstr("Write `sharing=free`"));
  EXPECT_THAT(parse("interference=50%"), HasSubstr("Write `interference=free`"));
  const auto change = [](const std::string& text) {
    return std::string(
        ChangePlan(*ParseWhatIf(text), Chain(), TwoHosts(), RuntimeParams()).status().message());
  };
  EXPECT_THAT(change("nik=2x"), HasSubstr("Did you mean `nic`?"));
  EXPECT_THAT(change("op:atn=2x"),
              HasSubstr("no op `atn`. Did you mean `attn`? There are `attn`, `mlp`."));
  EXPECT_THAT(change("kernel:gem=2x"), HasSubstr("Did you mean `gemm`?"));
  EXPECT_THAT(change("purpose:ddp=2x"), HasSubstr("Did you mean `dp`?"));
  EXPECT_THAT(change("collective:allreduce=2x"), HasSubstr("Did you mean `all_reduce`?"));
  EXPECT_THAT(change("device:4=2x"), HasSubstr("the machine has 4 devices, counted from 0"));
  EXPECT_THAT(change("sharing=free,nic:3=0.5x"), HasSubstr("Change the whole class"));
  EXPECT_THAT(change("nic:4=2x"), HasSubstr("the machine has 4 `nic`, counted from 0"));
}

}  // namespace
}  // namespace plancast
