#ifndef PLANCAST_COMPILER_BODY_BODY_PLAN_H_
#define PLANCAST_COMPILER_BODY_BODY_PLAN_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/body/place.h"
#include "graph/layout/layout.h"
#include "graph/layout/relayout.h"
#include "graph/model/model_graph.h"
#include "graph/rule/op_rule.h"
#include "graph/split/op_split.h"
#include "strategy/nodes/homes.h"
#include "strategy/nodes/loop_directive.h"
#include "strategy/nodes/part_transport.h"
#include "strategy/nodes/rewrite_directive.h"
#include "strategy/plan_options.h"

namespace plancast {

// Whether the backward phase runs an op again, and who reads what it makes then.
struct OpReplay {
  int group = -1;           // ops of one group run again together; -1: not again
  bool whole = false;       // the group is all that the layer as a whole runs again
  bool discards = false;    // ops outside the group read it too; else what is kept for them
  std::vector<bool> keeps;  // per output: on a list of what is kept; empty: none

  explicit operator bool() const { return group >= 0; }
  bool Keeps(size_t output) const { return !keeps.empty() && keeps[output]; }
  std::string DebugString() const;  // `-`, `2`, `2!` (discards), `2!101` (keeps)
};

// What nodes of the tree say of the homes of an op's tensors.
struct OpHomes {
  TensorHomes homes;
  std::array<std::string, kNumHomeKinds> sources;  // paths of nodes; empty: the plan decides
  std::optional<int64_t> bucket_bytes;             // absent: the plan's
  std::string bucket_source;

  const std::string& SourceOf(HomeKind kind) const { return sources[static_cast<int>(kind)]; }
  bool FromNode(HomeKind kind) const { return !SourceOf(kind).empty(); }
};

// Ops [begin, end) of a body that run in smaller pieces than what is around them, and the node
// that says so.
struct PieceRun {
  int begin = 0, end = 0;
  int64_t pieces = 1;       // for each piece of what is around
  int64_t max_ongoing = 0;  // that have gone forward and not yet back; 0: all
  int depth = 0;            // parts of the node's path
  std::string source;       // the node
  // All of a layer, at a node that also says how many layers are a unit: of these, each piece runs
  // through all before the next.
  bool through_unit = false;

  // Pieces go back before others go forward.
  bool turns() const { return max_ongoing > 0 && max_ongoing < pieces; }
  std::string DebugString() const;  // `layers.*.mlp [4,9) in 4, 1 at once`
};

// A rewrite as it holds for an op of a body (bind/rewrites.h).
struct BoundRewrite {
  int op = 0;  // whose result is communicated
  Rewrite said;
  std::vector<int> ops;  // that it names, of the body
  std::string source;    // the node
};

// One body bound to a plan: how each op is cut and what of it runs again.
struct BoundBody {
  int body = 0;                     // into ModelGraph::bodies
  std::vector<FactorSplit> splits;  // per op
  std::vector<OpReplay> replays;    // per op
  std::vector<OpHomes> homes;       // per op; empty: no node says any
  // Per op the ranks that run it, none: all of them; empty: all run all.
  std::vector<OnRanksOf> on;
  int layers = 1;                // of lists that one repeat runs (joined_layers.h)
  int last_segment = -1;         // of joined layers: that of the last, as which they leave
  int64_t unit = 1;              // layers that are to be one unit of sharding (shard_units.h)
  std::vector<PieceRun> pieces;  // those around others first

  // Per op what is said of tensors that come in parts, and by which node; empty: nothing is.
  std::vector<std::pair<LoopDirective, std::string>> loops;

  std::vector<BoundRewrite> rewrites;
  // Tensors of the body that are reduced in two steps: the layout between, of a part for each rank.
  std::vector<std::pair<int, Layout>> in_two;

  const OnRanksOf& OnOf(int op) const;
};

// A tensor of the body, the gradient of one, or a value inside an op that its
// backward op reads (a saved intermediate of the rule: `rstd`, `mask`).
struct TensorRef {
  int tensor = -1;  // of the body, or of the op's rule if op >= 0
  int op = -1;      // >= 0: an intermediate of this op of the body
  bool grad = false;
  bool recomputed = false;  // the copy made again in the backward phase

  friend bool operator==(const TensorRef& a, const TensorRef& b) {
    return a.tensor == b.tensor && a.op == b.op && a.grad == b.grad && a.recomputed == b.recomputed;
  }
  template <typename H>
  friend H AbslHashValue(H h, const TensorRef& r) {
    return H::combine(std::move(h), r.tensor, r.op, r.grad, r.recomputed);
  }
};

// Name, element type and model dims of what a ref stands for.
struct TensorFacts {
  std::string name;  // `attn.q`, `d attn.q`, `attn.norm/rstd`
  DType dtype = DType::kCompute;
  std::vector<int64_t> shape;
  TensorInfo::Kind kind = TensorInfo::Kind::kActivation;
};
TensorFacts FactsOf(const ModelGraph& graph, const Body& body, const TensorRef& ref);

// Which derivative of an op a step computes.
enum class Part : uint8_t { kForward, kRecompute, kBackward, kWeightGrad };

// One op to run: the forward rule, or a derived backward rule. `inputs` and
// `outputs` follow the rule's argument order; a forward step also yields the
// intermediates that backward steps read (`side_outputs`).
struct OpStep {
  int op = 0;  // into Body::ops
  Part part = Part::kForward;
  OpRulePtr rule;
  std::vector<TensorRef> inputs, outputs, side_outputs;
  // A fused kernel rebuilds these inputs (indices) in registers; it reads
  // `rebuilt_from` instead.
  std::vector<int> rebuilt;
  std::vector<TensorRef> rebuilt_from;
  std::vector<int> seeds;  // inputs (indices) that are given gradients of the loss
  OpPartition partition;   // filled by the partition pass
};

// Result of differentiate (and partition): op steps without communication.
struct DifferentiatedBody {
  std::vector<OpStep> forward;
  std::vector<OpStep> backward;  // recomputed forward steps included, in order
  std::vector<TensorRef> saved;  // forward values that backward steps read, in order of use

  std::string DebugString(const ModelGraph& graph, const Body& body) const;
};

// One materialised version of a tensor (or gradient) in one layout.
struct Value {
  TensorRef ref;
  Layout layout;
  int part_of = -1;  // the value that this is a piece of, in its memory; -1: it is whole
};

// A step with its values: an op, a relayout, or the sum of two gradients.
struct PlanStep {
  enum class Kind : uint8_t { kOp, kRelayout, kAdd };
  Kind kind = Kind::kOp;
  OpStep op;                     // kOp
  std::vector<int> inputs;       // values; -1: needs none (model inputs, rebuilt, seeds)
  std::vector<int> extra_reads;  // values a fused kernel reads to rebuild others
  std::vector<int> outputs;      // of an op: its outputs, then its side outputs
  // kRelayout: inputs[0] -> outputs[0]; of several values that go together the first's, with one
  // step for all.
  Relayout relayout;
  Part part = Part::kForward;
  int after = -1;  // step that must be over too (no overlap of wgrad and tp), or -1
  // Of a backward pass whose steps do not run on all ranks: on some a gradient of an in-port
  // depends on it (MarkAwaited), so that all that meet in it do so in B.
  bool awaited = false;
  // Of ops in pieces (body_pieces.h): which piece, a number of its own; -1: none. `further`: pieces
  // before it made gradients of the same weights. `turns`: its gradients wait for nothing.
  int piece = -1;
  bool further = false, turns = false;
  // Into BodyPlan::loops: the op that is the loop, or a relayout in parts beside it, before the op
  // (`into_loop`) or behind it.
  int loop = -1;
  bool into_loop = false;
  // Steps of one number, which follow one another, are one kernel that computes on what comes and
  // goes (rewrite/fuse_comms.h): collectives before it, ops, collectives behind it. -1: none.
  int fused = -1;
};

// An op that takes in tensors part by part while it runs (comm_loops.h), in place of gathers before
// it: a loop over a factor of its rule, of as many pieces as ranks hold a part each. In step i the
// device works on part i; or, if the loop turns, on the part of the rank that is i before its own,
// which its neighbour hands on.
struct CommLoop {
  int factor = 0;  // of the rule of the step
  int64_t pieces = 1;
  bool turns = false;
  // If it turns, the axes over which: parts over others are sent to all by who holds them.
  std::vector<int> turns_over;
  // Parts of several tensors turn, each over axes of its own, so that a device does not hold the
  // same part of both: it begins with the part of the sum of its coordinates, which comes from
  // wherever it is (Cannon's skew). Some step finds its part at hand, none has to come for it.
  bool skewed = false;
  // Parts are of what each device has, in any number: collectives cut in as many, those of results
  // too.
  bool in_parts = false;
  // Of a product beside collectives of tensor parallelism (product_loops.h), how its software moves
  // what comes and what leaves; whole: as the fields above say. What comes is put together as well,
  // for others read it.
  PartTransport comes, leaves;
  std::vector<int> axes;                        // of the mesh, over which the parts are
  ShardPattern pattern = ShardPattern::kBlock;  // of the parts
};

// Calls `use(value)` for all that a step reads.
template <typename Use>
void ForEachRead(const PlanStep& step, Use use) {
  for (const int value : step.inputs) {
    if (value >= 0) use(value);
  }
  for (const int value : step.extra_reads) use(value);
}

// Result of relayout: everything that a device does for one body.
struct BodyPlan {
  std::vector<Value> values;
  std::vector<PlanStep> forward, backward;
  std::vector<CommLoop> loops;
  std::vector<int> in_ports, out_ports;  // values
  // d(out_ports), d(in_ports); -1: detached, has no gradient.
  std::vector<int> grad_in_ports, grad_out_ports;
  std::vector<int> saved;  // values that live from forward to backward
  struct ParameterGrad {
    int tensor = 0;
    Layout layout;  // of the gradient as accumulated, maybe Partial
  };
  std::vector<ParameterGrad> parameter_grads;
  std::vector<Layout> parameter_layouts;  // per tensor of the body (parameters only)
  Place place;                            // that it is the plan of; empty: of all devices
  bool puts_off = false;                  // ops of the forward pass run in the backward pass

  // Nothing of the body is trained, and no gradient goes through: its layers have no
  // backward pass.
  bool ends_backward() const;

  std::string DebugString(const ModelGraph& graph, const Body& body, const DeviceMesh& mesh) const;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BODY_BODY_PLAN_H_
