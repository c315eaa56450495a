// Split, reorder, fuse and overlap: programs of CoCoNet (ASPLOS'22) keep what they compute and
// change what they move; what the op rules do not allow is refused with the reason.

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/plan_bodies.h"
#include "executor/executor.h"
#include "gmock/gmock.h"
#include "graph/model/program.h"
#include "gtest/gtest.h"
#include "tests/compiler/body/check_bodies.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Each rank has gradients of its own, of all parameters; their sum is over ranks.
IndexProgram Update(std::vector<std::string> steps, int64_t elements, int64_t ranks) {
  IndexProgram program{"step", {{"r", ranks}, {"i", elements}}, {}, {"g:f32[i] += local[r,i]"}};
  program.given.push_back({"local", {"r", "i"}, DType::kFp32});
  for (const char* state : {"w", "m", "v"}) program.given.push_back({state, {"i"}, DType::kFp32});
  for (std::string& step : steps) program.steps.push_back(std::move(step));
  return program;
}

const char kSgd[] = "update: next:f32[i] = w[i] - lr * g[i]";
const char kAdam[] = "update: next, next_m, next_v, half = adam(w, m, v, g)";
const char kLamb[] = "update: next, next_m, next_v, half = lamb(w, m, v, g)";
const char kWhole[] = "parameters:f32[i] = next[i]";  // what the next iteration reads

PlanUnderTest PlanOf(const IndexProgram& program, int64_t ranks) {
  const auto graph = BuildProgram(program);
  EXPECT_OK(graph.status());
  PlanUnderTest plan = PlanUnderTest::Of(*graph);
  plan.ByHand().Dp(ranks).MicroBatches(1, 1).Type(DType::kFp32);
  return plan;
}

PlanUnderTest Updating(std::vector<std::string> steps, int64_t elements, int64_t ranks,
                       const std::vector<std::string>& rewrites = {}) {
  PlanUnderTest plan = PlanOf(Update(std::move(steps), elements, ranks), ranks);
  for (const char* op : {"step.local", "step.g"}) plan.Split(op, "dp", {"r"});
  std::vector<Rewrite>& said = (*plan.tree().Node("step.g"))->rewrites;
  for (const std::string& text : rewrites) {
    const auto rewrite = ParseRewrite(text);
    EXPECT_OK(rewrite.status());
    said.push_back(*rewrite);
  }
  return plan;
}

const std::vector<std::string> kSplit = {"split(all_reduce)"};
const std::vector<std::string> kReordered = {"split(all_reduce)",
                                             "reorder(all_gather, past: update)"};
const std::vector<std::string> kFused = {"split(all_reduce)", "reorder(all_gather, past: update)",
                                         "fuse(update with reduce_scatter, all_gather)"};

std::string Oracle(PlanUnderTest plan, uint64_t seed = 11) {
  return WrongBodies(plan.Request(), seed);
}

ExecutionGraph Compiled(PlanUnderTest plan) {
  auto graph = plan.Compile();
  EXPECT_OK(graph.status());
  if (!graph.ok()) return ExecutionGraph();
  EXPECT_OK(graph->Verify());
  return *std::move(graph);
}

std::string Error(PlanUnderTest plan) { return std::string(plan.Compile().status().message()); }

// Of the ranks of a ring: what each sends.
double Wire(const ExecutionGraph& graph, absl::string_view name, int64_t ranks) {
  double bytes = 0;
  const Block& block = BlockNamed(graph, name);
  for (int t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kComm) continue;
    const CommSpec& comm = graph.comms[block.spec[t]];
    const double twice = comm.kind == CollectiveKind::kAllReduce ? 2 : 1;
    bytes += twice * static_cast<double>(comm.bytes * (ranks - 1)) / static_cast<double>(ranks);
  }
  return bytes;
}

std::vector<std::string> Kinds(const ExecutionGraph& graph, absl::string_view name) {
  std::vector<std::string> kinds;
  const Block& block = BlockNamed(graph, name);
  for (int t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kComm) continue;
    kinds.emplace_back(kCollectiveKindNames[graph.comms[block.spec[t]].kind]);
  }
  return kinds;
}

KernelSpec Total(const ExecutionGraph& graph, absl::string_view label) {
  KernelSpec total;
  for (const KernelSpec& kernel : KernelsLabelled(graph, "step.F", label)) {
    total.flops += kernel.flops;
    total.read_bytes += kernel.read_bytes;
    total.write_bytes += kernel.write_bytes;
  }
  return total;
}

int64_t MemoryOf(const ExecutionGraph& graph) {
  return ReplayMemory(graph, RuntimeParams())[0].allocated;
}

// COCO-1.
TEST(RewritesTest, ThreeSchedulesOfOptimizersComputeTheSame) {
  for (const char* rule : {kSgd, kAdam, kLamb}) {
    SCOPED_TRACE(rule);
    for (const int64_t ranks : {2, 4}) {
      EXPECT_EQ(Oracle(Updating({rule, kWhole}, 8, ranks)), "");
      EXPECT_EQ(Oracle(Updating({rule, kWhole}, 8, ranks, kSplit)), "");
      EXPECT_EQ(Oracle(Updating({rule, kWhole}, 8, ranks, kReordered)), "");
    }
  }
  for (const char* rule : {kSgd, kAdam}) {
    EXPECT_EQ(Oracle(Updating({rule, kWhole}, 8, 4, kFused)), "");
  }
}

TEST(RewritesTest, WhatIsSplitMovesTheSameBytes) {
  const int64_t ranks = 8, elements = 1 << 20;
  const auto of = [&](const std::vector<std::string>& rewrites) {
    return Compiled(Updating({kAdam, kWhole}, elements, ranks, rewrites));
  };
  const double wire = Wire(of({}), "step.F", ranks);
  EXPECT_EQ(wire, 2.0 * 4 * elements * (ranks - 1) / ranks);
  for (const auto& rewrites : {kSplit, kReordered, kFused}) {
    EXPECT_EQ(Wire(of(rewrites), "step.F", ranks), wire);
  }
  for (const auto& rewrites : {kSplit, kReordered}) {
    EXPECT_THAT(Kinds(of(rewrites), "step.F"), ElementsAre("reduce_scatter", "all_gather"));
  }
  // One kernel is one all-reduce, that computes in its midst.
  EXPECT_THAT(Kinds(of(kFused), "step.F"), ElementsAre("all_reduce"));
  EXPECT_THAT(Kinds(of({}), "step.F"), ElementsAre("all_reduce"));
}

TEST(RewritesTest, AfterTheReorderEachRankUpdatesItsPart) {
  const int64_t ranks = 8, elements = 1 << 20;
  const ExecutionGraph whole = Compiled(Updating({kAdam, kWhole}, elements, ranks));
  const ExecutionGraph parts = Compiled(Updating({kAdam, kWhole}, elements, ranks, kReordered));
  const KernelSpec all = Total(whole, "update"), part = Total(parts, "update");
  EXPECT_EQ(part.flops, all.flops / ranks);
  EXPECT_EQ(part.read_bytes, all.read_bytes / ranks);
  EXPECT_EQ(part.write_bytes, all.write_bytes / ranks);
  EXPECT_GT(all.flops, 0);
  EXPECT_LT(MemoryOf(parts), MemoryOf(whole) / 2);
}

TEST(RewritesTest, MomentsAreKeptInParts) {
  const int64_t ranks = 4;
  PlanUnderTest plan = Updating({kAdam, kWhole}, 16, ranks, kReordered);
  Session session;
  const auto compiled = CompileBodies(plan.Request(), session, nullptr);
  ASSERT_OK(compiled.status());
  const BoundModel& bound = (*compiled)->bound;
  std::map<std::string, int64_t> held;  // the least that a rank has of it
  for (const Value& value : (*compiled)->bodies[0]->plan.values) {
    const TensorFacts facts = FactsOf(bound.graph, bound.graph.bodies[0], value.ref);
    const auto elements = static_cast<int64_t>(value.layout.LocalElements(bound.mesh, facts.shape));
    int64_t& most = held[facts.name];
    most = std::max(most, elements);
  }
  for (const char* state : {"m", "v", "w", "next_m", "next_v"}) EXPECT_EQ(held[state], 4) << state;
  EXPECT_EQ(held["next"], 16);
}

// A kernel that computes on what comes and goes is over when the slower of both is.
TEST(RewritesTest, WhatIsFusedBeginsTogether) {
  const ExecutionGraph graph = Compiled(Updating({kAdam, kWhole}, 1 << 20, 8, kFused));
  const Block& block = BlockNamed(graph, "step.F");
  std::map<std::string, int> task;
  for (int t = 0; t < block.size(); ++t) {
    const bool comm = block.kind[t] == TaskKind::kComm;
    task[comm ? std::string(kCollectiveKindNames[graph.comms[block.spec[t]].kind])
              : block.label[t]] = t;
  }
  const auto waits = [&](const std::string& name, const std::string& on) {
    const auto begin = block.deps.begin() + block.dep_begin[task.at(name)];
    const auto end = block.deps.begin() + block.dep_begin[task.at(name) + 1];
    return std::count(begin, end, task.at(on)) > 0;
  };
  EXPECT_FALSE(waits("update", "all_reduce"));
  EXPECT_FALSE(waits("all_reduce", "update"));
  // Gradients come in registers.
  const ExecutionGraph apart = Compiled(Updating({kAdam, kWhole}, 1 << 20, 8, kReordered));
  EXPECT_EQ(Total(graph, "update").read_bytes, Total(apart, "update").read_bytes * 3 / 4);
}

// Who has the sum depends on the algorithm, which is chosen later.
TEST(RewritesTest, ACollectiveKnowsWhatIsComputedInItsKernel) {
  const int64_t ranks = 8, elements = 1 << 20;
  const auto work = [&](const std::vector<std::string>& rewrites) {
    const ExecutionGraph graph = Compiled(Updating({kAdam, kWhole}, elements, ranks, rewrites));
    std::vector<FusedWork> found;
    for (const CommSpec& comm : graph.comms) {
      if (!comm.fused.empty()) found.push_back(comm.fused);
    }
    return found;
  };
  EXPECT_THAT(work({}), IsEmpty());
  EXPECT_THAT(work(kReordered), IsEmpty());
  // A rank's part: w, m and v are read, and written with w in the compute type.
  const int64_t part = elements / ranks;
  EXPECT_THAT(work(kFused), ElementsAre(FusedWork{4 * part, (3 + 4) * 4 * part, true}));
  // Each rank computes on all of what is reduced, or on what it sends.
  EXPECT_THAT(work({"fuse(update with all_reduce)"}),
              ElementsAre(FusedWork{4 * elements, (3 + 4) * 4 * elements, false}));
  EXPECT_THAT(work({"split(all_reduce)", "reorder(all_gather, past: update)",
                    "fuse(update with all_gather)"}),
              ElementsAre(FusedWork{4 * part, (4 + 4) * 4 * part, false}));
}

TEST(RewritesTest, AnAllGatherDoesNotGoPastASumOverItsParts) {
  const std::string error =
      Error(Updating({"norm:f32[] += g[i] * g[i]"}, 16, 4,
                     {"split(all_reduce)", "reorder(all_gather, past: norm)"}));
  EXPECT_THAT(error, HasSubstr("`norm` reduces over `i`"));
  EXPECT_THAT(error, HasSubstr("share of the result on every rank of dp"));
}

TEST(RewritesTest, AnAllGatherDoesNotGoPastStencilsAndOpaqueOps) {
  IndexProgram program = Update({"smooth:f32[i] += g[i + k - 1] * t[k]"}, 16, 4);
  program.dims.emplace_back("k", 3);
  program.given.push_back({"t", {"k"}});
  PlanUnderTest plan = PlanOf(program, 4);
  for (const char* op : {"step.local", "step.g"}) plan.Split(op, "dp", {"r"});
  (*plan.tree().Node("step.g"))->rewrites = {*ParseRewrite("split(all_reduce)"),
                                             *ParseRewrite("reorder(all_gather, past: smooth)")};
  EXPECT_THAT(Error(std::move(plan)), HasSubstr("beyond its part of"));
  EXPECT_THAT(Error(Updating({"sorted:f32[i] opaque()= g[i]"}, 16, 4,
                             {"split(all_reduce)", "reorder(all_gather, past: sorted)"})),
              HasSubstr("as a whole (it is opaque)"));
}

TEST(RewritesTest, OthersThatReadTheWholeAreNamed) {
  EXPECT_THAT(Error(Updating({kAdam, kWhole, "norm:f32[] += g[i] * g[i]"}, 16, 4, kReordered)),
              HasSubstr("`norm` reads all of `g`"));
  EXPECT_THAT(Error(Updating({kAdam, kWhole}, 16, 4, {"reorder(all_gather, past: update)"})),
              HasSubstr("Say `split(all_reduce)` before it"));
  EXPECT_THAT(Error(Updating({kAdam, kWhole}, 16, 4,
                             {"split(all_reduce)", "reorder(all_gather, past: parameters)"})),
              HasSubstr("`past` goes from op to op"));
  EXPECT_THAT(Error(Updating({kAdam, kWhole}, 16, 4,
                             {"split(all_reduce)", "reorder(all_gather, past: updat)"})),
              HasSubstr("Did you mean `update`?"));
  EXPECT_THAT(Error(Updating({kAdam, kWhole}, 18, 4, kSplit)), HasSubstr("`i` (18)"));
}

TEST(RewritesTest, FusingAcrossADependencyIsRefused) {
  const std::vector<std::string> steps = {"first:f32[i] = g[i] * w[i]",
                                          "second:f32[i] = first[i] + m[i]",
                                          "third:f32[i] = second[i] * first[i]"};
  const std::string past = "reorder(all_gather, past: first, second, third)";
  const auto with = [&](const std::string& fuse) {
    return Updating(steps, 16, 4, {"split(all_reduce)", past, fuse});
  };
  EXPECT_THAT(Error(with("fuse(first, third with reduce_scatter)")),
              HasSubstr("`second` reads what the kernel makes, and the kernel needs"));
  EXPECT_EQ(Oracle(with("fuse(first, second with reduce_scatter)")), "");
  EXPECT_EQ(Oracle(with("fuse(first, second, third with reduce_scatter)")), "");
  EXPECT_THAT(Error(with("fuse(first with all_gather)")), HasSubstr("no all_gather brings"));
}

TEST(RewritesTest, WhatNeedsAllAtOnceIsNotFused) {
  EXPECT_THAT(Error(Updating({kLamb, kWhole}, 16, 4, kFused)), HasSubstr("in its midst"));
  EXPECT_THAT(Error(Updating({"norm:f32[] += g[i] * g[i]"}, 16, 4, {"fuse(norm with all_reduce)"})),
              HasSubstr("`norm` sums over `i`"));
}

// Products with what follows their all-reduce.
PlanUnderTest Product(const std::vector<std::string>& rewrites, int64_t rows = 16) {
  IndexProgram program{"step",
                       {{"s", rows}, {"k", 8}, {"h", 8}},
                       {{"x", {"s", "k"}}, {"a", {"k", "h"}}, {"b", {"h"}}, {"r", {"s", "h"}}},
                       {"y[s,h] += x[s,k] * a[k,h]", "d[s,h] = relu(y[s,h] + b[h]) * keep",
                        "sum[s,h] = d[s,h] + r[s,h]", "out[s,h] = sum[s,h]"}};
  PlanUnderTest plan = PlanOf(program, 1);
  plan.Tp(4);
  for (const char* op : {"step.x", "step.a", "step.y"}) plan.Split(op, "tp", {"k"});
  for (const std::string& text : rewrites) {
    (*plan.tree().Node("step.y"))->rewrites.push_back(*ParseRewrite(text));
  }
  return plan;
}

TEST(RewritesTest, ProductsLeaveInPieces) {
  for (const std::vector<std::string>& rewrites : std::vector<std::vector<std::string>>{
           {},
           {"overlap(y, all_reduce, pieces: 4)"},
           {"split(all_reduce)", "reorder(all_gather, past: d, sum)"},
           {"split(all_reduce)", "reorder(all_gather, past: d, sum)",
            "fuse(d, sum with reduce_scatter, all_gather)"},
           {"split(all_reduce, along: h)", "reorder(all_gather, past: d, sum)",
            "overlap(y, reduce_scatter, pieces: 4)"}}) {
    EXPECT_EQ(Oracle(Product(rewrites)), "") << (rewrites.empty() ? "" : rewrites.back());
  }
  const ExecutionGraph graph = Compiled(Product({"overlap(y, all_reduce, pieces: 4)"}));
  EXPECT_THAT(Kinds(graph, "step.F"),
              ElementsAre("all_reduce", "all_reduce", "all_reduce", "all_reduce"));
  EXPECT_EQ(KernelsLabelled(graph, "step.F", "y").size(), 4);
  EXPECT_THAT(Error(Product({"overlap(y, all_reduce, pieces: 5)"})),
              HasSubstr("no dim of `y` divides into 5"));
  EXPECT_THAT(Error(Product({"overlap(d, all_reduce, pieces: 2)"})), HasSubstr("reads what is"));
}

// CoCoNet's pipeline: a product whose sum goes from the ranks of one stage to those of the next,
// which go on with it.
PlanUnderTest Pipeline(const std::vector<std::string>& rewrites, int64_t pieces = 1,
                       int64_t rows = 16) {
  IndexProgram program{
      "step",
      {{"b", 2}, {"seq", rows}, {"k", 8}, {"h", 8}},
      {{"x", {"b", "seq", "k"}}, {"a", {"k", "h"}}, {"r", {"b", "seq", "h"}}},
      {"y[b,seq,h] += x[b,seq,k] * a[k,h]", "sum[b,seq,h] = y[b,seq,h]",
       "z[b,seq,h] = relu(sum[b,seq,h]) * keep + r[b,seq,h]", "out[b,seq,h] = z[b,seq,h]"}};
  PlanUnderTest plan = PlanOf(program, 2);
  plan.Tp(4);
  for (const char* op : {"step.x", "step.a", "step.y"}) plan.Split(op, "tp", {"k"});
  for (const char* op : {"step.x", "step.a", "step.y", "step.sum"}) plan.On(op, "dp", "0");
  for (const char* op : {"step.r", "step.z", "step.out"}) plan.On(op, "dp", "1");
  for (const std::string& text : rewrites) {
    (*plan.tree().Node("step.y"))->rewrites.push_back(*ParseRewrite(text));
  }
  if (pieces > 1) (*plan.tree().Node("step"))->pieces = {pieces, {}};
  return plan;
}

const std::vector<std::string> kInParts = {"split(all_reduce)",
                                           "reorder(all_gather, past: sum, z)"};
const std::vector<std::string> kInOneKernel = {
    "split(all_reduce)", "reorder(all_gather, past: sum, z)", "fuse(z with all_gather)"};

// `KIND BYTES` of all that the programs of a plan exchange, place by place.
std::vector<std::string> Exchanged(const ExecutionGraph& graph) {
  std::vector<std::string> found;
  for (const Block& block : graph.blocks) {
    for (int t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kComm) continue;
      const CommSpec& comm = graph.comms[block.spec[t]];
      found.push_back(absl::StrCat(kCollectiveKindNames[comm.kind], " ", comm.bytes));
    }
  }
  return found;
}

TEST(RewritesTest, ASumGoesToTheNextStageInParts) {
  const std::string all = absl::StrCat(2 * 16 * 8 * 4), part = absl::StrCat(2 * 16 * 8);
  EXPECT_THAT(Exchanged(Compiled(Pipeline({}))),
              ElementsAre("all_reduce " + all, "permute " + all, "permute " + all));
  // A stage sends what each rank has, and the next puts it together when it has computed.
  for (const auto& rewrites : {kInParts, kInOneKernel}) {
    EXPECT_THAT(Exchanged(Compiled(Pipeline(rewrites))),
                ElementsAre("reduce_scatter " + all, "permute " + part, "permute " + part,
                            "all_gather " + all));
  }
  for (const auto& rewrites : {std::vector<std::string>{}, kInParts, kInOneKernel}) {
    EXPECT_EQ(Oracle(Pipeline(rewrites)), "");
  }
}

// Overlapped from the product to the all-gather: each piece goes on while others are made.
TEST(RewritesTest, StagesOnOtherRanksTakeWhatIsSentPieceByPiece) {
  for (const auto& rewrites : {std::vector<std::string>{}, kInParts, kInOneKernel}) {
    const std::vector<std::string> whole = Exchanged(Compiled(Pipeline(rewrites)));
    const ExecutionGraph graph = Compiled(Pipeline(rewrites, 4));
    std::map<std::string, int> times, of_pieces;
    for (const std::string& text : whole) ++times[text];
    for (const std::string& text : Exchanged(graph)) ++of_pieces[text];
    EXPECT_EQ(of_pieces.size(), times.size());
    for (const auto& [text, count] : times) {
      const std::vector<std::string> words = absl::StrSplit(text, ' ');
      const std::string piece = absl::StrCat(words[0], " ", std::stoll(words[1]) / 4);
      EXPECT_EQ(of_pieces[piece], 4 * count) << piece;
    }
    // Each works on what came for it, and waits for no other.
    for (const Block& block : graph.blocks) {
      if (block.name != "step.F") continue;
      std::map<std::string, std::vector<int>> tasks;
      for (int t = 0; t < block.size(); ++t) tasks[block.label[t]].push_back(t);
      for (const auto& [label, list] : tasks) EXPECT_EQ(list.size(), 4) << label;
      const std::vector<int>&z = tasks["z"], &comes = tasks["permute sum"];
      for (size_t i = 0; i < z.size(); ++i) {
        const auto begin = block.deps.begin() + block.dep_begin[z[i]];
        const std::vector<int> deps(begin, block.deps.begin() + block.dep_begin[z[i] + 1]);
        EXPECT_THAT(deps, ElementsAre(comes[i]));
      }
    }
  }
  EXPECT_THAT(Error(Pipeline({}, 5)), HasSubstr("does not divide"));
  // Two kernels on two ranks are none.
  EXPECT_THAT(Error(Pipeline({"split(all_reduce)", "reorder(all_gather, past: sum, z)",
                              "fuse(sum, z with reduce_scatter, all_gather)"})),
              HasSubstr("`relayout sum` reads what the kernel makes"));
}

// Chains of ops behind a sum: whatever is legal computes the same.
TEST(RewritesTest, RandomProgramsComputeTheSame) {
  const uint64_t seed = TestSeed(5);
  std::mt19937_64 random(seed);
  int legal = 0, refused = 0;
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    IndexProgram program{"step", {{"r", 4}, {"i", 8}, {"j", 4}, {"k", 4}}, {}, {}};
    program.given = {{"local", {"r", "i", "j"}}, {"u", {"i", "j"}}, {"t", {"j", "k"}}};
    program.steps = {"g[i,j] += local[r,i,j]"};
    std::vector<std::string> names = {"g"};
    std::vector<bool> second_is_k = {false};
    const int ops = 1 + static_cast<int>(random() % 5);
    for (int o = 0; o < ops; ++o) {
      const size_t from = random() % names.size();
      const std::string in = names[from], name = absl::StrCat("x", o);
      const std::string dims = second_is_k[from] ? "i,k" : "i,j";
      std::string step;
      bool k = second_is_k[from];
      switch (random() % 5) {
        case 0:
          step = absl::StrCat(name, "[", dims, "] = relu(", in, "[", dims, "])");
          break;
        case 1:
          step = absl::StrCat(name, "[", dims, "] = ", in, "[", dims, "] * g[i,j]");
          if (k) step = absl::StrCat(name, "[", dims, "] = ", in, "[", dims, "] * 2");
          break;
        case 2:
          step = absl::StrCat(name, "[", dims, "] = ", in, "[", dims, "] + u[i,j]");
          if (k) step = absl::StrCat(name, "[", dims, "] = ", in, "[", dims, "] + 3");
          break;
        case 3:
          step = k ? absl::StrCat(name, "[i,j] += ", in, "[i,k] * t[j,k]")
                   : absl::StrCat(name, "[i,k] += ", in, "[i,j] * t[j,k]");
          k = !k;
          break;
        default:
          step = absl::StrCat(name, "[", dims, "] = exp(", in, "[", dims, "])");
          break;
      }
      program.steps.push_back(step);
      names.push_back(name);
      second_is_k.push_back(k);
    }
    program.steps.push_back(
        absl::StrCat("out[i] += ", names.back(), second_is_k.back() ? "[i,k]" : "[i,j]"));
    std::string past = names[1], fused = names[1];
    for (size_t n = 2; n < names.size(); ++n) {
      if (random() % 3) absl::StrAppend(&past, ", ", names[n]);
      if (random() % 2) absl::StrAppend(&fused, ", ", names[n]);
    }
    if (random() % 4 == 0) absl::StrAppend(&past, ", out");
    PlanUnderTest plan = PlanOf(program, 2);
    plan.Tp(2);
    for (const char* op : {"step.local", "step.g"}) plan.Split(op, "dp", {"r"});
    if (random() % 2) {
      for (const char* op : {"step.local", "step.g", "step.u"}) plan.Split(op, "tp", {"i"});
    }
    std::vector<Rewrite>& said = (*plan.tree().Node("step.g"))->rewrites;
    const std::string along = random() % 2 ? "i" : "j";
    said.push_back(*ParseRewrite(absl::StrCat("split(all_reduce, along: ", along, ")")));
    said.push_back(*ParseRewrite(absl::StrCat("reorder(all_gather, past: ", past, ")")));
    if (random() % 2) {
      said.push_back(*ParseRewrite(absl::StrCat("fuse(", fused, " with reduce_scatter)")));
    }
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", plan ", i, ": ", plan.tree().ToJson(), "\n",
                              plan.graph().DebugString()));
    const auto checked = CheckBodies(plan.Request(), seed + i);
    if (!checked.ok()) {
      EXPECT_THAT(std::string(checked.status().message()), HasSubstr("`step.g`: `"));
      ++refused;
      continue;
    }
    ++legal;
    EXPECT_EQ(checked->wrong, "");
  }
  EXPECT_GT(legal, 40);
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace plancast
