#include "planner/forecast/predict.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "collectives/realise.h"
#include "executor/realise.h"
#include "gmock/gmock.h"
#include "graph/model/builder.h"
#include "graph/rule/op_rule.h"
#include "gtest/gtest.h"
#include "planner/forecast/model_source.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/ranked_prediction.h"
#include "tests/executor/graph_builder.h"
#include "tests/planner/small_transformer.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PredictTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(SmallTransformer()));
    ASSERT_OK_AND_ASSIGN(job_.profile, FindSoftwareProfile("megatron-core"));
    job_.global_batch = 32;
    costs_ = DefaultKernelCostModel();
  }

  absl::StatusOr<Forecast> Predict(const std::string& strategy, const std::string& machine,
                                   Session& session) {
    absl::StatusOr<ShortForm> form = ParseShortForm(strategy);
    if (!form.ok()) return form.status();
    absl::StatusOr<Machine> made = MachineFromPreset(machine);
    if (!made.ok()) return made.status();
    Job job = job_;
    job.strategy = StrategyTree::FromShortForm(*form);
    return plancast::Predict(job, *made, *costs_, session);
  }
  absl::StatusOr<Forecast> Predict(const std::string& strategy,
                                   const std::string& machine = "dgx-a100-80g:1") {
    Session session;
    return Predict(strategy, machine, session);
  }
  Forecast Known(const std::string& strategy, const std::string& machine = "dgx-a100-80g:1") {
    absl::StatusOr<Forecast> forecast = Predict(strategy, machine);
    EXPECT_TRUE(forecast.ok()) << strategy << ": " << forecast.status();
    return forecast.ok() ? *forecast : Forecast();
  }

  Job job_;
  std::shared_ptr<const KernelCostModel> costs_;
};

// Every digit that a user sees.
std::string Digits(const Forecast& f) {
  std::string text = absl::StrFormat("%s %.17g %.17g %.17g %d", f.strategy, f.iteration_time_s,
                                     f.interval_s[0], f.interval_s[1], f.peak_memory_bytes);
  for (const DeviceClassResult& c : f.result.classes) {
    absl::StrAppend(&text, "\n", c.name, " ", c.devices, " ", c.finish_ps, " ", c.breakdown.compute,
                    " ", c.breakdown.exposed_tp, " ", c.breakdown.exposed_dp, " ",
                    c.breakdown.exposed_pp, " ", c.breakdown.bubble, " ", c.memory.device);
  }
  return text;
}

const char* const kStrategies[] = {"tp=8",
                                   "tp=4,sp,zero=1",
                                   "tp=2,pp=2",
                                   "dp=8,overlap=grad",
                                   "tp=2,pp=2,vpp=2",
                                   "pp=4,mb=2",
                                   "tp=1,pp=1,zero=1,overlap=grad+param",
                                   "tp=2,recompute=full"};

// ---- machines ----

// Two hosts of two devices with one NIC a host; the first devices of both form
// a group, and so do the second ones. The first group reduces; `both`: the
// second does as well, at the same time. Returns how long the first one takes.
int64_t ReductionTime(const Machine& machine, int64_t bytes, bool both) {
  GraphBuilder b({{"dp", 2}, {"pp", 2}});
  b.Block("reduce").Comm(CollectiveKind::kAllReduce, bytes, {0});
  b.Block("rest").Kernel(1.0);
  b.Program("stage 0", {{1, 0}}).Run("reduce");
  b.Program("stage 1", {{1, 1}}).Run(both ? "reduce" : "rest");
  SimulateOptions options;
  options.timeline = true;
  const absl::StatusOr<SimResult> result =
      Execute(b.Build(), machine, UnitCost(), RuntimeParams(), options);
  EXPECT_TRUE(result.ok()) << result.status();
  for (const Slice& slice : result->slices) {
    if (result->classes[slice.device_class].program == 0) return slice.end_ps - slice.start_ps;
  }
  ADD_FAILURE() << "nothing ran";
  return 0;
}

TEST(ContentionTest, TwoGroupsOnOneNicTakeTwiceTheBandwidthPhase) {
  ASSERT_OK_AND_ASSIGN(const Machine machine, Machine::Create(UnitMachine(2, 2, 2)));
  GroupPattern group;
  group.dims = {{2, 2}};
  for (int64_t bytes : {1 << 20, 1 << 26, 1 << 30}) {
    ASSERT_OK_AND_ASSIGN(const RealisedCollective alone,
                         Realise(machine, group, CollectiveKind::kAllReduce, bytes));
    const int64_t one = ReductionTime(machine, bytes, false) - alone.delay_ps;
    const int64_t two = ReductionTime(machine, bytes, true) - alone.delay_ps;
    EXPECT_NEAR(static_cast<double>(one),
                static_cast<double>(AloneTime(machine, alone) - alone.delay_ps), 1e-9 * one);
    EXPECT_GT(two, one);
    EXPECT_LE(two, 2 * one + 2) << bytes << " bytes";
    // Small messages leave room on the interface.
    if (bytes >= 1 << 26) {
      EXPECT_NEAR(static_cast<double>(two), 2.0 * one, 2) << bytes << " bytes";
    }
  }
}

TEST_F(PredictTest, TensorParallelismAcrossHostsIsSlower) {
  TransformerConfig config = SmallTransformer();  // with activations that weigh something
  config.hidden = 4096;
  config.ffn = 16384;
  config.head_dim = 256;
  config.seq = 2048;
  ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
  job_.profile.host.cuda_graphs = true;  // or the host decides
  EXPECT_GT(Known("tp=8,order=dp-tp-pp", "dgx-a100-80g:2").iteration_time_s,
            Known("tp=8,order=tp-dp-pp", "dgx-a100-80g:2").iteration_time_s);
}

TEST_F(PredictTest, CudaGraphsSpeedUpWhatIsBoundByLaunches) {
  job_.global_batch = 8;
  // Small layers wait for their launches, unless a graph holds them.
  const Forecast eager = Known("mb=1", "dgx-a100-80g:1x1");
  EXPECT_GT(eager.result.classes[0].breakdown.launch, eager.result.classes[0].breakdown.compute);
  EXPECT_EQ(eager.chosen.at("cuda_graphs"), "0");
  job_.profile.host.cuda_graphs = true;
  const Forecast graphs = Known("mb=1", "dgx-a100-80g:1x1");
  EXPECT_EQ(graphs.chosen.at("cuda_graphs"), "1");
  EXPECT_EQ(graphs.result.classes[0].breakdown.compute, eager.result.classes[0].breakdown.compute);
  EXPECT_LT(graphs.result.classes[0].breakdown.launch,
            eager.result.classes[0].breakdown.launch / 5);
  EXPECT_LT(graphs.iteration_time_s, eager.iteration_time_s);
}

TEST_F(PredictTest, CudaGraphsHardlyChangeLargeLayers) {
  TransformerConfig config = SmallTransformer();
  config.hidden = 8192;
  config.ffn = 32768;
  config.head_dim = 512;
  config.seq = 4096;
  ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
  job_.global_batch = 8;
  const double eager = Known("mb=1", "dgx-a100-80g:1x1").iteration_time_s;
  job_.profile.host.cuda_graphs = true;
  const double graphs = Known("mb=1", "dgx-a100-80g:1x1").iteration_time_s;
  EXPECT_NEAR(graphs, eager, 0.02 * eager);  // a graph's launch may take longer than a kernel's
}

TEST_F(PredictTest, PricingOnAnotherMachineOfThatSizeCompilesNothing) {
  Session session;
  for (const char* strategy : kStrategies) {
    ASSERT_OK(Predict(strategy, "dgx-a100-80g:1", session).status());
  }
  const int64_t compiled = session.misses();
  for (const char* strategy : kStrategies) {
    ASSERT_OK_AND_ASSIGN(const Forecast other, Predict(strategy, "dgx-h100:1", session));
    EXPECT_EQ(session.misses(), compiled) << strategy;
    EXPECT_EQ(Digits(other), Digits(Known(strategy, "dgx-h100:1")));
  }
}

// ---- sharing, order, threads ----

TEST_F(PredictTest, TheOrderOfPlansChangesNoDigit) {
  std::vector<std::string> order(std::begin(kStrategies), std::end(kStrategies));
  std::vector<std::string> alone;
  for (const std::string& strategy : order) alone.push_back(Digits(Known(strategy)));
  std::sort(alone.begin(), alone.end());
  std::mt19937 random(7);
  for (int round = 0; round < 4; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    Session session;
    std::vector<std::string> shared;
    for (const std::string& strategy : order) {
      ASSERT_OK_AND_ASSIGN(const Forecast f, Predict(strategy, "dgx-a100-80g:1", session));
      shared.push_back(Digits(f));
    }
    std::sort(shared.begin(), shared.end());
    EXPECT_EQ(shared, alone);
  }
}

TEST_F(PredictTest, ThreadsThatShareASessionAgree) {
  Session session;
  std::vector<std::vector<std::string>> digits(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (const char* strategy : kStrategies) {
        absl::StatusOr<Forecast> f = Predict(strategy, "dgx-a100-80g:1", session);
        digits[t].push_back(f.ok() ? Digits(*f) : f.status().ToString());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 1; t < 4; ++t) EXPECT_EQ(digits[t], digits[0]);
  EXPECT_EQ(digits[0][0], Digits(Known(kStrategies[0])));
}

// ---- an op that nobody shipped ----

// A product of three factors with its tensors' dims in any order and a function
// behind it, in a chain with a scale in front.
TEST_F(PredictTest, ARandomOpOfThreeFactorsIsSplitDifferentiatedAndPriced) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto either = [&](const char* a, const char* b) { return random() % 2 ? a : b; };
    const char* x = either("b,k", "k,b");
    const char* w = either("n,k", "k,n");
    const char* y = either("b,n", "n,b");
    const char* f = std::vector<const char*>{"relu", "tanh", "sigmoid"}[random() % 3];
    const auto parse = [](const std::string& text) {
      absl::StatusOr<OpRule> rule = OpRule::Parse(text);
      EXPECT_TRUE(rule.ok()) << text << rule.status();
      return std::make_shared<const OpRule>(*rule);
    };
    const OpRulePtr scale = parse(absl::StrFormat(
        "scale(x, param g) -> (y) {\n  y[%s] = x[%s] * g[k]\n  save x, g\n}", x, x));
    const OpRulePtr product = parse(absl::StrFormat(
        "op(x, param w) -> (y) {\n  a[%s] += x[%s] * w[%s]\n  y[%s] = %s(a[%s])\n  save x, w, a\n}",
        y, x, w, y, f, y));
    ModelBuilder model("random");
    EXPECT_OK(model.AddDim("batch", 0));
    EXPECT_OK(model.AddDim("k", 64));
    EXPECT_OK(model.AddDim("n", 128));
    const auto dims = [](const std::string& letters) {
      std::vector<std::string> names;
      for (char c : letters) {
        if (c != ',') names.push_back(c == 'b' ? "batch" : std::string(1, c));
      }
      return names;
    };
    ModuleBuilder body = model.Module("body");
    EXPECT_OK(body.Input("x", DType::kCompute, dims(x)));
    EXPECT_OK(body.Parameter("g", {"k"}));
    EXPECT_OK(body.Parameter("w", dims(w)));
    EXPECT_OK(body.Call("scale", scale, {"x", "g"}, {"u"}, {}));
    EXPECT_OK(body.Call("op", product, {"u", "w"}, {"y"}, {}));
    EXPECT_OK(body.OutPort("y"));
    EXPECT_OK(model.Append("body", body));
    ASSERT_OK_AND_ASSIGN(ModelGraph graph, model.Build());
    ASSERT_OK_AND_ASSIGN(job_.model, GraphSource(graph));
    const char* factor = std::vector<const char*>{"b", "k", "n"}[random() % 3];
    ASSERT_OK_AND_ASSIGN(
        job_.strategy,
        StrategyTree::FromJson(absl::StrCat(R"({"plan": "dp=2,tp=2,mb=4", "nodes": {"body.op":)",
                                            R"({"split": {"tp": [".)", factor, R"("]}}}})"),
                               "test"));
    job_.global_batch = 16;
    ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("dgx-a100-80g:1x4"));
    Session session;
    const absl::StatusOr<Forecast> forecast = plancast::Predict(job_, machine, *costs_, session);
    ASSERT_TRUE(forecast.ok()) << forecast.status();
    EXPECT_GT(forecast->iteration_time_s, 0);
    // Forward, input gradient, weight gradient, conserved by the split.
    EXPECT_DOUBLE_EQ(forecast->hardware_flops, 3 * 2.0 * 16 * 64 * 128) << factor;
  }
}

// ---- counters ----

void ExpectSameSize(const Counters& a, const Counters& b) {
  EXPECT_EQ(a.blocks, b.blocks);
  EXPECT_EQ(a.instances, b.instances);
  // What runs at once depends a little on what happens to overlap.
  EXPECT_NEAR(static_cast<double>(a.materialised_tasks), static_cast<double>(b.materialised_tasks),
              0.1 * static_cast<double>(a.materialised_tasks));
  EXPECT_EQ(a.device_classes, b.device_classes);
}

TEST_F(PredictTest, MoreDataParallelRanksMakeNoMoreWork) {
  for (const char* strategy : {"tp=8", "tp=8,zero=1", "tp=4,pp=2,sp,overlap=grad"}) {
    job_.global_batch = 64;  // 4 micro-batches a rank
    const Forecast few = Known(strategy, "dgx-a100-80g:2");
    job_.global_batch = 64 * 8;
    const Forecast many = Known(strategy, "dgx-a100-80g:16");
    ExpectSameSize(few.result.counters, many.result.counters);
    EXPECT_EQ(many.result.counters.tasks, 8 * few.result.counters.tasks);
  }
}

TEST_F(PredictTest, MoreLayersMakeNoMoreBlocks) {
  for (const char* strategy : {"tp=8", "tp=2,pp=2", "tp=2,pp=2,vpp=2", "tp=4,sp,recompute=full"}) {
    TransformerConfig config = SmallTransformer();
    ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
    const Forecast few = Known(strategy);
    config.layers *= 2;
    ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
    const Forecast many = Known(strategy);
    EXPECT_EQ(few.result.counters.blocks, many.result.counters.blocks) << strategy;
    EXPECT_EQ(few.result.counters.instances, many.result.counters.instances) << strategy;
  }
}

// ---- what a forecast owes ----

TEST_F(PredictTest, OneDeviceTakesTheSumOfItsKernels) {
  job_.profile.host.launch_s = job_.profile.host.host_sync_s = job_.profile.host.iteration_s = 0;
  ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm("dp=1,tp=1,pp=1"));
  job_.strategy = StrategyTree::FromShortForm(form);
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("dgx-a100-80g:1x1"));
  Session session;
  ASSERT_OK_AND_ASSIGN(const Forecast forecast, plancast::Predict(job_, machine, *costs_, session));
  ASSERT_OK_AND_ASSIGN(const PlanGraph plan, DrawAndCompile(job_, machine, session));
  ASSERT_OK_AND_ASSIGN(const KernelPrices prices, PriceKernels(*plan.execution, machine, *costs_));
  int64_t sum = 0;
  for (const Instance& instance : plan.execution->programs[0].instances) {
    const Block& block = plan.execution->blocks[instance.block];
    for (int32_t t = 0; t < block.size(); ++t) {
      ASSERT_EQ(block.kind[t], TaskKind::kKernel);
      sum += prices.Duration(0, block.spec[t]) * instance.layer_count;
    }
  }
  EXPECT_EQ(forecast.result.makespan_ps, sum);
}

TEST_F(PredictTest, BreakdownsSumToTheIterationTime) {
  for (const char* strategy : kStrategies) {
    const Forecast forecast = Known(strategy);
    int64_t devices = 0;
    for (const DeviceClassResult& row : forecast.result.classes) {
      EXPECT_EQ(row.breakdown.total(), forecast.result.makespan_ps) << strategy << row.name;
      devices += row.devices;
    }
    EXPECT_EQ(devices, 8);
    EXPECT_EQ(forecast.result.critical_path.total(), forecast.result.makespan_ps) << strategy;
  }
}

TEST_F(PredictTest, MemoryHoldsWeightsGradientsAndOptimizerAtLeast) {
  const TransformerConfig c = SmallTransformer();
  const double per_layer = 4.0 * c.hidden * c.hidden + 2.0 * c.hidden * c.ffn;
  for (const auto& [strategy, tp, pp, shards] :
       {std::tuple("tp=8", 8, 1, 1), std::tuple("tp=2,pp=4", 2, 4, 1),
        std::tuple("tp=1,pp=1,zero=1", 1, 1, 8)}) {
    const double weights = c.layers * per_layer / (tp * pp);
    // bf16 weights, fp32 gradients; fp32 master and two moments, sharded by ZeRO.
    EXPECT_GE(Known(strategy).peak_memory_bytes, weights * (2 + 4 + 12.0 / shards)) << strategy;
  }
}

TEST_F(PredictTest, WorkIsConservedByEverySplit) {
  const double one = Known("dp=8").hardware_flops;
  EXPECT_GT(one, 0);
  for (const char* strategy : {"tp=2", "tp=8", "tp=4,sp", "tp=2,pp=2", "pp=4", "pp=2,vpp=2"}) {
    EXPECT_DOUBLE_EQ(Known(strategy).hardware_flops, one) << strategy;
  }
}

TEST_F(PredictTest, FullRecomputeRunsTheLayersForwardTwice) {
  const Forecast none = Known("tp=8"), full = Known("tp=8,recompute=full");
  EXPECT_GT(full.hardware_flops, 1.25 * none.hardware_flops);
  EXPECT_LT(full.hardware_flops, 4.0 / 3 * none.hardware_flops);
  EXPECT_GT(full.iteration_time_s, none.iteration_time_s);
  EXPECT_LT(full.peak_memory_bytes, none.peak_memory_bytes);
}

TEST_F(PredictTest, TheIntervalHoldsTheForecast) {
  const Forecast forecast = Known("tp=8");
  EXPECT_LT(forecast.interval_s[0], forecast.iteration_time_s);
  EXPECT_GT(forecast.interval_s[1], forecast.iteration_time_s);
}

TEST_F(PredictTest, ATypeThatTheDeviceLacksRunsAsTheNextAndSaysSo) {
  const Forecast bf16 = Known("tp=8");
  EXPECT_THAT(bf16.notes, IsEmpty());
  job_.dtype = DType::kFp8;
  const Forecast fp8 = Known("tp=8");
  EXPECT_EQ(fp8.peak_flops_per_gpu, bf16.peak_flops_per_gpu);
  EXPECT_THAT(fp8.notes, Contains(HasSubstr("A100-SXM-80GB has no fp8 units: matrix products "
                                            "run as bf16")));
}

// ---- mistakes ----

TEST_F(PredictTest, ABatchThatDoesNotDivideNamesTheSizesThatWork) {
  job_.global_batch = 12;
  EXPECT_THAT(Predict("tp=1").status().message(),
              AllOf(HasSubstr("the batch of 12 is not divisible by dp*mb = 8*1"),
                    HasSubstr("dp must be a divisor of 12")));
  EXPECT_THAT(Predict("tp=2,mb=2").status().message(), HasSubstr("mb can be 1, 3"));
}

TEST_F(PredictTest, TensorParallelismThatDoesNotDivideTheHeadsSaysSo) {
  TransformerConfig config = SmallTransformer();
  config.heads = config.kv_heads = 12;
  ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
  EXPECT_THAT(Predict("tp=8").status().message(),
              AllOf(HasSubstr("tp=8 does not divide the 12 attention heads"),
                    HasSubstr("Sizes that work: 1, 2, 4")));
}

TEST_F(PredictTest, AHandSplitThatDoesNotDivideNamesTheOp) {
  ASSERT_OK_AND_ASSIGN(
      job_.strategy,
      StrategyTree::FromJson(
          R"({"plan": "tp=8", "nodes": {"layers.*.mlp.fc1": {"split": {"tpp": ["ffn"]}}}})",
          "tree"));
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("dgx-a100-80g:1"));
  Session session;
  EXPECT_THAT(plancast::Predict(job_, machine, *costs_, session).status().message(),
              HasSubstr("Did you mean `tp`?"));
}

TEST_F(PredictTest, OneOfManyIsDescribedIfWanted) {
  ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm("tp=4,pp=2"));
  ASSERT_OK_AND_ASSIGN(const Machine machine, MachineFromPreset("dgx-a100-80g:1"));
  job_.strategy = StrategyTree::FromShortForm(form);
  const Forecast alone = Known("tp=4,pp=2");
  for (const bool wanted : {false, true}) {
    GraphWorkspace workspace;
    const WantsForecast wants = [&](const Forecast& plan) {
      EXPECT_EQ(plan.iteration_time_s, alone.iteration_time_s);
      EXPECT_EQ(plan.usd_per_iteration, alone.usd_per_iteration);
      return wanted;
    };
    Session session;
    ASSERT_OK_AND_ASSIGN(const Forecast plan,
                         PredictOneOfMany(job_, machine, *costs_, session, wants, &workspace));
    EXPECT_TRUE(plan.fits);
    EXPECT_EQ(plan.peak_memory_bytes, alone.peak_memory_bytes);
    EXPECT_EQ(plan.result.makespan_ps, alone.result.makespan_ps);
    EXPECT_EQ(plan.strategy, wanted ? alone.strategy : "");
    EXPECT_EQ(plan.result.classes.size(), wanted ? alone.result.classes.size() : 0);
  }
}

TEST_F(PredictTest, APlanThatDoesNotFitIsTimed) {
  TransformerConfig config = SmallTransformer();
  config.hidden = 8192;
  config.ffn = 32768;
  config.heads = config.kv_heads = 64;
  config.head_dim = 128;
  config.layers = 48;
  ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
  const Forecast forecast = Known("tp=1");
  EXPECT_FALSE(forecast.fits);
  EXPECT_GT(forecast.iteration_time_s, 0);
}

}  // namespace
}  // namespace plancast
