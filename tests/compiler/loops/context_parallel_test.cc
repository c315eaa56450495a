// cp over every type: closed forms of what ranks send, of their work and of what they keep; results
// on symbols.

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/body/check_bodies.h"
#include "tests/compiler/compiled_graph.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSeq = 512, kHidden = 1024, kSamples = 2, kHeads = 16, kKvHeads = 8;

TransformerConfig Grouped() {
  TransformerConfig config = SmallLlama();
  config.kv_heads = kKvHeads;
  return config;
}

PlanUnderTest Cut(int64_t cp, absl::string_view type, int64_t tp = 1) {
  PlanUnderTest plan = PlanUnderTest::Of(Grouped());
  plan.Tp(tp).MicroBatches(kSamples, 1);
  if (tp > 1) plan.Sp();
  if (cp > 1) plan.Cp(cp, type);
  return plan;
}

// Bytes that a rank receives in a block for a purpose, by the kind of what brings them.
std::map<CollectiveKind, double> Received(const ExecutionGraph& graph, absl::string_view name,
                                          Purpose purpose = Purpose::kCp) {
  std::map<CollectiveKind, double> received;
  const Block& block = BlockNamed(graph, name);
  for (int t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kComm || block.purpose[t] != purpose) continue;
    const CommSpec& comm = graph.comms[block.spec[t]];
    const double n = static_cast<double>(graph.mesh.SizeOf(comm.axes));
    const bool all = comm.kind == CollectiveKind::kPermute;
    received[comm.kind] += static_cast<double>(comm.bytes) * (all ? 1 : (n - 1) / n);
  }
  return received;
}

double Flops(const ExecutionGraph& graph, absl::string_view name) {
  double flops = 0;
  for (const KernelSpec& kernel :
       KernelsLabelled(graph, name, name.back() == 'F' ? "attn.core" : "attn.core.bwd"))
    flops += kernel.flops;
  return flops;
}

constexpr const char* kTypes[] = {"ring", "ring_zigzag", "allgather", "ulysses", "hybrid:2"};

TEST(ContextParallelTest, ReceivesWhatClosedFormsSay) {
  for (const int64_t cp : {2, 4, 8}) {
    const double n = static_cast<double>(cp);
    const double positions = kSamples * kSeq / n, head = 64 * 2;
    // Of a rank's own positions, bytes of queries (and results), and of keys with values.
    const double q = positions * kHeads * head, kv = 2 * positions * kKvHeads * head;
    for (const char* type : {"ring", "ring_zigzag"}) {
      const ExecutionGraph graph = Compiled(Cut(cp, type));
      EXPECT_EQ(Received(graph, "layer.F")[CollectiveKind::kPermute], (n - 1) * kv) << type;
      EXPECT_EQ(Received(graph, "layer.F").size(), 1) << type;
      // Keys and values again, and their gradients.
      EXPECT_EQ(Received(graph, "layer.B")[CollectiveKind::kPermute], 2 * (n - 1) * kv) << type;
      EXPECT_EQ(Received(graph, "layer.B").size(), 1) << type;
    }
    {
      const ExecutionGraph graph = Compiled(Cut(cp, "allgather"));
      EXPECT_EQ(Received(graph, "layer.F")[CollectiveKind::kAllGather], (n - 1) * kv);
      EXPECT_EQ(Received(graph, "layer.B")[CollectiveKind::kAllGather], (n - 1) * kv);
      EXPECT_EQ(Received(graph, "layer.B")[CollectiveKind::kReduceScatter], (n - 1) * kv);
    }
    {  // queries, keys, values and results, once each way
      const ExecutionGraph graph = Compiled(Cut(cp, "ulysses"));
      const double moved = (n - 1) / n * (2 * q + kv);
      EXPECT_EQ(Received(graph, "layer.F")[CollectiveKind::kAllToAll], moved);
      EXPECT_EQ(Received(graph, "layer.B")[CollectiveKind::kAllToAll], moved);
      EXPECT_EQ(Received(graph, "layer.F").size(), 1);
    }
    if (cp == 2) continue;
    {  // all-to-alls over pairs; half the heads of two ranks' positions go round
      const ExecutionGraph graph = Compiled(Cut(cp, "hybrid:2"));
      EXPECT_EQ(Received(graph, "layer.F")[CollectiveKind::kAllToAll], (2 * q + kv) / 2);
      EXPECT_EQ(Received(graph, "layer.F")[CollectiveKind::kPermute], (n / 2 - 1) * kv);
      EXPECT_EQ(Received(graph, "layer.B")[CollectiveKind::kPermute], 2 * (n / 2 - 1) * kv);
    }
  }
}

TEST(ContextParallelTest, WhatRunsAgainReceivesAsBefore) {
  for (const int64_t tp : {1, 2}) {
    for (const int64_t cp : {2, 4}) {
      for (const char* type : {"ring", "ring_zigzag", "allgather", "ulysses"}) {
        const auto graph_with = [&](Recompute recompute) {
          PlanUnderTest plan = Cut(cp, type, tp);
          plan.Recomputing(recompute);
          return Compiled(std::move(plan));
        };
        const ExecutionGraph none = graph_with(Recompute::kNone),
                             attention = graph_with(Recompute::kSelective),
                             all = graph_with(Recompute::kFull);
        for (const Purpose purpose : {Purpose::kCp, Purpose::kTp}) {
          EXPECT_EQ(Received(all, "layer.F", purpose), Received(none, "layer.F", purpose));
          const std::map<CollectiveKind, double> backward = Received(none, "layer.B", purpose);
          std::map<CollectiveKind, double> both = Received(none, "layer.F", purpose);
          for (const auto& [kind, bytes] : backward) both[kind] += bytes;
          EXPECT_EQ(Received(all, "layer.B", purpose), both) << type << " " << cp << " " << tp;
          // Of attention alone what goes round or is gathered for it does so again.
          const bool again = purpose == Purpose::kCp && type != absl::string_view("ulysses");
          EXPECT_EQ(Received(attention, "layer.B", purpose), again ? both : backward)
              << type << " " << cp << " " << tp;
        }
        // In as many parts as before.
        const auto kernels = [](const ExecutionGraph& graph, const char* pass, const char* op) {
          return KernelsLabelled(graph, pass, op).size();
        };
        for (const ExecutionGraph* graph : {&attention, &all}) {
          EXPECT_EQ(kernels(*graph, "layer.B", "attn.core.again"),
                    kernels(none, "layer.F", "attn.core"));
          EXPECT_EQ(kernels(*graph, "layer.B", "attn.core.bwd"),
                    kernels(none, "layer.B", "attn.core.bwd"));
        }
      }
    }
  }
}

TEST(ContextParallelTest, RanksShareTheWorkOfCausalAttention) {
  for (const int64_t tp : {1, 2}) {
    for (const char* pass : {"layer.F", "layer.B"}) {
      const double whole = Flops(Compiled(Cut(1, "", tp)), pass);
      ASSERT_GT(whole, 0);
      for (const int64_t cp : {2, 4, 8}) {
        const double n = static_cast<double>(cp), tolerance = whole / n / kSeq * 2;
        for (const char* type : {"ring_zigzag", "allgather", "ulysses", "hybrid:2"}) {
          EXPECT_NEAR(Flops(Compiled(Cut(cp, type, tp)), pass), whole / n, tolerance)
              << type << " " << cp;
        }
        // In every step but the first some rank has a whole square.
        const double ring = whole / (n * n) * (2 * n - 1);
        EXPECT_NEAR(Flops(Compiled(Cut(cp, "ring", tp)), pass), ring, ring / kSeq * n) << cp;
      }
    }
  }
}

TEST(ContextParallelTest, OneRankIsThePlanWithout) {
  const std::string without = Compiled(Cut(1, "")).DebugString();
  for (const char* type : kTypes) {
    PlanUnderTest plan = Cut(1, "");
    plan.Cp(1, type);
    EXPECT_EQ(Compiled(std::move(plan)).DebugString(), without) << type;
  }
}

// The steps of a ring as Transformer Engine runs them: first the rank's own keys, of which half
// count, then all queries with half the keys that come.
TEST(ContextParallelTest, StepsOfABalancedRingAreHalves) {
  const ExecutionGraph graph = Compiled(Cut(4, "ring_zigzag"));
  std::vector<KernelSpec> steps;
  for (const KernelSpec& kernel : KernelsLabelled(graph, "layer.F", "attn.core")) {
    if (kernel.family == KernelFamily::kAttention) steps.push_back(kernel);
  }
  ASSERT_EQ(steps.size(), 4);
  EXPECT_TRUE(steps[0].causal);
  EXPECT_EQ(steps[0].kv_len, kSeq / 4);
  for (int i = 1; i < 4; ++i) {
    EXPECT_FALSE(steps[i].causal);
    EXPECT_EQ(steps[i].q_len, kSeq / 4);
    EXPECT_EQ(steps[i].kv_len, kSeq / 8);
  }
}

// As torch runs it: one gather of copies for every query head, sums in fp32 that come home.
PlanUnderTest AsTorch(int64_t cp, bool waits) {
  PlanUnderTest plan = Cut(cp, "ring_zigzag");
  ContextSteps& steps = plan.profile().kernels.context_steps;
  plan.profile().kernels.repeats_kv = true;
  steps.gathers = steps.repeats_kv = steps.fp32_sums = steps.returns_sums = true;
  steps.waits = waits;
  steps.packs = 1;
  return plan;
}

TEST(ContextParallelTest, SoftwareSaysWhatStepsSend) {
  for (const int64_t cp : {2, 4}) {
    const double n = static_cast<double>(cp);
    const double kv = 2 * kSamples * kSeq / n * kHeads * 64 * 2;  // for every query head
    const ExecutionGraph graph = Compiled(AsTorch(cp, true));
    EXPECT_EQ(Received(graph, "layer.F")[CollectiveKind::kAllGather], (n - 1) * kv);
    EXPECT_EQ(Received(graph, "layer.F").size(), 1);
    EXPECT_EQ(Received(graph, "layer.B")[CollectiveKind::kAllGather], (n - 1) * kv);
    EXPECT_EQ(Received(graph, "layer.B")[CollectiveKind::kPermute], n * 2 * kv);
  }
}

// Transformer Engine's attention in fp8: queries, keys, values and the gradient of the output go in
// 8 bits, what attention makes only where scales are known before; blocks of mxfp8 are made behind.
TEST(ContextParallelTest, ExchangesOfAttentionInEightBits) {
  const auto received = [](DType attention, int launches, const char* type, const char* block) {
    PlanUnderTest plan = Cut(4, type);
    plan.profile().types.attention_dtype = attention;
    plan.profile().calls.quantize[DType::kFp8] = {launches, OrderedScales::kBoth};
    const absl::StatusOr<ExecutionGraph> graph = plan.Compile();
    EXPECT_OK(graph.status());
    double bytes = 0;
    if (graph.ok()) {
      for (const auto& [kind, own] : Received(*graph, block)) bytes += own;
    }
    return bytes;
  };
  constexpr int kDelayed = 1, kCurrent = 4;
  // Elements that a rank of four gets of queries, as many of the output, and of keys and values.
  const double q = 2.0 * kSamples * kSeq * kHidden / 4 * 3 / 4;
  const double kv = 2 * q * kKvHeads / kHeads;
  EXPECT_EQ(received(DType::kMxfp8, kCurrent, "ulysses", "layer.F"), q + kv + q);
  EXPECT_EQ(received(DType::kFp8, kCurrent, "ulysses", "layer.F"), (q + kv) / 2 + q);
  EXPECT_EQ(received(DType::kFp8, kDelayed, "ulysses", "layer.F"), (q + kv + q) / 2);
  EXPECT_EQ(received(DType::kFp8, kCurrent, "ulysses", "layer.B"), q / 2 + q + kv);
  EXPECT_EQ(received(DType::kFp8, kDelayed, "ulysses", "layer.B"), (q + q + kv) / 2);
  // Gathered keys and values, and sums of their gradients, which have no fewer bits.
  EXPECT_EQ(received(DType::kFp8, kDelayed, "allgather", "layer.F"),
            received(DType::kMxfp8, kDelayed, "allgather", "layer.F") / 2);
  EXPECT_EQ(received(DType::kFp8, kDelayed, "allgather", "layer.B"),
            received(DType::kMxfp8, kDelayed, "allgather", "layer.B") * 3 / 4);
}

// What is done beside attention in forward: bytes read and written of kernels by label.
TEST(ContextParallelTest, SoftwareSaysWhatStepsMoveInMemory) {
  const ExecutionGraph graph = Compiled(AsTorch(4, false));
  const double own = kSamples * kSeq / 4 * kHeads * 64;  // elements of a rank's results
  std::map<std::string, double> moved;
  for (const KernelSpec& kernel : KernelsLabelled(graph, "layer.F", "attn.core"))
    moved[kernel.label] += kernel.read_bytes + kernel.write_bytes;
  const double statistics = 2.0 * kSamples * kSeq / 4 * kHeads * 4;
  EXPECT_EQ(moved["part_copy"], 2 * 2 * own * 2);
  EXPECT_EQ(moved["attention.cast"], 2 * ((2 + 4) * own + 2 * statistics));
  EXPECT_EQ(moved["attention.merge"], 3 * ((2 + 4 + 4) * own + 3 * statistics));
  EXPECT_EQ(moved["attention.repeat_kv"], 2 * own / 2 * (1 + 2) * 2);
}

// Bytes of all tensors that a block allocates.
int64_t Allocated(const ExecutionGraph& graph, absl::string_view name) {
  int64_t bytes = 0;
  for (const MemoryEvent& event : BlockNamed(graph, name).memory) {
    bytes += std::max<int64_t>(event.delta, 0);
  }
  return bytes;
}

TEST(ContextParallelTest, WhatIsGatheredAtOnceIsThereAtOnce) {
  const double kv = 2.0 * kSamples * kSeq / 8 * kKvHeads * 64 * 2;
  PlanUnderTest turning = AsTorch(8, false);
  turning.profile().kernels.context_steps.gathers = false;
  const ExecutionGraph parts = Compiled(std::move(turning)), whole = Compiled(AsTorch(8, false));
  for (const char* pass : {"layer.F", "layer.B"}) {
    // Parts of all eight ranks, not of two.
    EXPECT_EQ(Allocated(whole, pass) - Allocated(parts, pass), 6 * kv) << pass;
  }
}

// Tasks that attention's kernels of a pass wait for, over cp.
int AwaitedBy(const ExecutionGraph& graph, absl::string_view name) {
  const Block& block = BlockNamed(graph, name);
  int awaited = 0;
  for (int t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kKernel) continue;
    if (graph.kernels[block.spec[t]].family != KernelFamily::kAttention) continue;
    for (int d = block.dep_begin[t]; d < block.dep_begin[t + 1]; ++d) {
      const int dep = block.deps[d];
      awaited += dep >= 0 && block.kind[dep] == TaskKind::kComm;
    }
  }
  return awaited;
}

TEST(ContextParallelTest, OverlapHidesWhatSoftwareWaitsFor) {
  const ExecutionGraph waiting = Compiled(AsTorch(4, true)), beside = Compiled(AsTorch(4, false));
  EXPECT_GT(AwaitedBy(waiting, "layer.F"), AwaitedBy(beside, "layer.F"));
  EXPECT_GT(AwaitedBy(waiting, "layer.B"), AwaitedBy(beside, "layer.B"));
  PlanUnderTest plan = AsTorch(4, true);
  plan.options().overlap.insert(Overlap::kCp);
  const ExecutionGraph hidden = Compiled(std::move(plan));
  for (const char* pass : {"layer.F", "layer.B"}) {
    EXPECT_EQ(AwaitedBy(hidden, pass), AwaitedBy(beside, pass));
    EXPECT_EQ(Received(hidden, pass), Received(waiting, pass));
  }
}

TEST(ContextParallelTest, DocumentsLeaveTheirOwnWork) {
  for (const int64_t cp : {1, 2, 4}) {
    for (const char* type : {"ring_zigzag", "allgather", "ulysses"}) {
      const auto documents = [&](const std::vector<int64_t>& lengths) {
        TransformerConfig config = Grouped();
        config.documents = lengths;
        PlanUnderTest plan = PlanUnderTest::Of(config);
        plan.MicroBatches(kSamples, 1);
        if (cp > 1) plan.Cp(cp, type);
        return Compiled(std::move(plan));
      };
      for (const char* pass : {"layer.F", "layer.B"}) {
        const double whole = Flops(Compiled(Cut(cp, type)), pass);
        EXPECT_EQ(Flops(documents({kSeq}), pass), whole) << type << cp;
        EXPECT_EQ(documents({kSeq}).DebugString(), Compiled(Cut(cp, type)).DebugString());
        // Equal ones: in proportion to the keys of a query.
        EXPECT_NEAR(Flops(documents({64}), pass), whole * 65 / (kSeq + 1), 1e-9 * whole);
        for (const KernelSpec& kernel : KernelsLabelled(
                 documents({64}), pass, pass[6] == 'F' ? "attn.core" : "attn.core.bwd")) {
          if (kernel.family != KernelFamily::kAttention) continue;
          EXPECT_LE(kernel.q_len, 66) << type << cp;
          EXPECT_LE(kernel.kv_len, 66) << type << cp;
        }
      }
    }
  }
}

TEST(ContextParallelTest, GradientsAreReducedOverContextRanksToo) {
  PlanUnderTest plan = Cut(2, "ring_zigzag");
  plan.Dp(2);
  const Moves moves = plan.Traffic();
  ASSERT_FALSE(moves.gradients.empty());
  for (const std::string& move : moves.gradients) EXPECT_THAT(move, HasSubstr("dp*cp"));
}

TransformerConfig Tiny(std::mt19937_64& random) {
  TransformerConfig config;
  config.name = "tiny";
  config.layers = 1;
  config.hidden = 8;
  config.heads = 4;
  config.kv_heads = random() % 2 ? 4 : 2;
  config.head_dim = 2;
  config.ffn = 8;
  config.vocab = 8;
  config.seq = 16;
  config.max_positions = 16;
  config.mlp = random() % 2 ? Mlp::kGelu : Mlp::kSwiglu;
  config.norm = random() % 2 ? Norm::kLayerNorm : Norm::kRmsNorm;
  config.position = random() % 2 ? Position::kLearned : Position::kRope;
  if (random() % 4 == 0) config.window = 3;
  return config;
}

TEST(ContextParallelTest, BodiesEqualOneDevice) {
  const uint64_t seed = TestSeed(7);
  std::mt19937_64 random(seed);
  std::map<std::string, size_t> loops;
  for (int i = 0; i < 30 && !HasFailure(); ++i) {
    const std::string type = kTypes[i % 5];
    const int64_t cp = type == "hybrid:2" ? 4 : random() % 2 ? 2 : 4;
    PlanUnderTest plan = PlanUnderTest::Of(Tiny(random), random() % 4 > 0, random() % 2 == 0);
    const bool heads = type == "ulysses" || type == "hybrid:2";
    plan.Dp(cp == 2 ? random() % 2 + 1 : 1).Tp(heads && cp == 4 ? 1 : random() % 2 + 1);
    plan.Cp(cp, type).MicroBatches(1, 1);
    if (plan.options().tp > 1 && random() % 2) plan.Sp();
    if (random() % 3 == 0) plan.Recomputing(Recompute::kFull);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", plan ", i, ": ", plan.tree().ToJson()));
    ASSERT_OK_AND_ASSIGN(const CheckedBodies checked, CheckBodies(plan.Request(), seed + i));
    EXPECT_EQ(checked.wrong, "");
    loops[type] += checked.loops;
  }
  EXPECT_GT(loops["ring"], 0);
  EXPECT_GT(loops["ring_zigzag"], 0);
  EXPECT_GT(loops["hybrid:2"], 0);
}

}  // namespace
}  // namespace plancast
