#ifndef PLANCAST_TESTS_COMPILER_PLAN_UNDER_TEST_H_
#define PLANCAST_TESTS_COMPILER_PLAN_UNDER_TEST_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/compiler.h"
#include "graph/execution/execution_graph.h"
#include "graph/model/model_graph.h"
#include "graph/transformer/body_writer.h"
#include "graph/transformer/transformer_config.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// What a plan moves: `all_reduce(tp) 4096`, `all_gather(dp*tp) 512`, bytes in
// the unit of CollectiveKind. Body blocks once, however many layers run them.
struct Moves {
  std::vector<std::string> forward, backward;
  std::vector<std::string> gradients;  // and parameters: everything outside of bodies and pipelines
};

// `all_reduce(AXES) BYTES`, as Moves lists it.
std::string AllReduce(absl::string_view axes, int64_t bytes);
std::string AllGather(absl::string_view axes, int64_t bytes);
std::string ReduceScatter(absl::string_view axes, int64_t bytes);
std::string AllToAll(absl::string_view axes, int64_t bytes);

// A software profile that adds nothing: no clipping, no clearing, no fusion,
// one message a reduction, fp32 gradients, transfers that nobody waits for.
SoftwareProfile PlainProfile();

// Eight layers of 1024, 16 heads, 512 positions, with biases.
TransformerConfig SmallGpt();
// The same with RMSNorm, SwiGLU of 3072, rotary positions and no biases.
TransformerConfig SmallLlama();

// A model with a plan, in bf16, under PlainProfile unless changed.
class PlanUnderTest {
 public:
  // Every dim that a shipped rule may run over is there: those not named have
  // size 1. `batch` is what `micro_batch` makes it.
  explicit PlanUnderTest(std::vector<ModelDim> dims);
  // A shipped transformer.
  static PlanUnderTest Of(const TransformerConfig& config, bool flash = true, bool dropout = false);

  static PlanUnderTest Of(ModelGraph graph);

  // Begins a segment; ops are written into it.
  BodyWriter& Segment(absl::string_view path, int64_t repeat = 1);

  // What a node of the tree splits; `` is the root. `dims`: as a strategy lists them, dims or
  // levels.
  PlanUnderTest& Split(absl::string_view path, absl::string_view axis,
                       const std::vector<std::string>& dims);
  // The ranks of an axis that run what is below a node: `1`, `0/2`.
  PlanUnderTest& On(absl::string_view path, absl::string_view axis, absl::string_view ranks);
  // Where tensors below a node live; the plan's own homes are those of the options.
  PlanUnderTest& Home(absl::string_view path, HomeKind kind, absl::string_view home);
  // Of weights, gradients and state, so much is sharded as `zero` counts.
  PlanUnderTest& Shard(absl::string_view path, int zero);
  // Takes back the canonical splits of the root: everything is replicated
  // unless Split says otherwise.
  PlanUnderTest& ByHand();
  PlanUnderTest& Dp(int64_t size);
  PlanUnderTest& Tp(int64_t size);
  PlanUnderTest& Cp(int64_t size);
  // The same in a way that the tree says too, `ring_zigzag`.
  PlanUnderTest& Cp(int64_t size, absl::string_view type);
  PlanUnderTest& Pp(int64_t size, Schedule schedule = Schedule::k1f1b, int64_t vpp = 1);
  PlanUnderTest& Sp();
  // After Tp. The tree says so too.
  PlanUnderTest& Ep(int64_t size);
  PlanUnderTest& Etp(int64_t size);
  PlanUnderTest& Zero1();
  PlanUnderTest& MicroBatches(int64_t size, int64_t count);
  PlanUnderTest& Type(DType dtype);
  // What a node trains, and the adapters that it has; FineTune, after all of them, makes the
  // model so.
  PlanUnderTest& Train(absl::string_view path, bool trains);
  PlanUnderTest& Lora(absl::string_view path, int64_t rank, std::vector<std::string> on,
                      std::string base = "");
  PlanUnderTest& FineTune();
  PlanUnderTest& Recomputing(Recompute recompute, int64_t layers = -1);

  PlanOptions& options() { return options_; }
  SoftwareProfile& profile() { return profile_; }
  StrategyTree& tree() { return tree_; }
  const ModelGraph& graph();

  CompileRequest Request();
  absl::StatusOr<ExecutionGraph> Compile(const PassObserver& observer = nullptr);
  absl::StatusOr<ExecutionGraph> Compile(Session& session, const PassObserver& observer = nullptr);
  // Of the compiled plan; a plan that does not compile fails the test.
  Moves Traffic();

 private:
  std::unique_ptr<std::vector<ModelDim>> dims_;
  std::deque<BodyWriter> writers_;
  std::vector<plancast::Segment> segments_;
  ModelGraph graph_;
  PlanOptions options_;
  SoftwareProfile profile_;
  StrategyTree tree_;
  DType dtype_ = DType::kBf16;
};

Moves MovesOf(const ExecutionGraph& graph);
std::string CommText(const ExecutionGraph& graph, const CommSpec& comm);

// The block called `name`; a test that asks for one that is not there fails.
const Block& BlockNamed(const ExecutionGraph& graph, absl::string_view name);

// The kernels of a block's tasks with this label.
std::vector<KernelSpec> KernelsLabelled(const ExecutionGraph& graph, absl::string_view block,
                                        absl::string_view label);

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_PLAN_UNDER_TEST_H_
