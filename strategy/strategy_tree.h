#ifndef PLANCAST_STRATEGY_STRATEGY_TREE_H_
#define PLANCAST_STRATEGY_STRATEGY_TREE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "strategy/choose_plan.h"
#include "strategy/finetune/lora_directive.h"
#include "strategy/node_path.h"
#include "strategy/nodes/choose_stages.h"
#include "strategy/nodes/homes.h"
#include "strategy/nodes/loop_directive.h"
#include "strategy/nodes/on.h"
#include "strategy/nodes/pieces.h"
#include "strategy/nodes/rewrite_directive.h"
#include "strategy/nodes/split_directive.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"

namespace plancast {

// What one node says; what it does not say it inherits.
struct Directives {
  // place
  std::vector<SplitDirective> split;  // at most one per axis
  std::vector<OnDirective> on;        // likewise, by axis
  HomeDirective home;
  // time
  std::optional<Recompute> recompute;
  std::vector<std::string> recompute_ops;  // of `selective`: sets of ops; empty: the plan's
  PiecesDirective pieces;
  LoopDirective loop;
  // rewrite
  std::vector<Rewrite> rewrites;  // in this order
  std::string compute_at;         // the op with which those below are one (rewrite/join_ops.h)
  std::optional<int64_t> bucket_bytes;
  std::optional<int64_t> unit_layers;  // neighbouring layers that are one unit of sharding
  std::optional<bool> train;           // of parameters
  std::optional<LoraDirective> lora;   // adapters beside the products below

  bool empty() const;
  // The directive for `axis`, or nullptr.
  const SplitDirective* FindSplit(absl::string_view axis) const;
  // Says it, in place of what the node said about this axis before.
  void SetSplit(SplitDirective directive);
  const OnDirective* FindOn(absl::string_view axis) const;
  void SetOn(OnDirective directive);
  // `none`, `selective`, `selective:WORD+WORD` or `full`. Errors: other modes, unknown
  // words.
  absl::Status SetRecompute(absl::string_view mode);
};

// A directive as it holds for one op, and the node that said it.
struct ResolvedSplit {
  SplitDirective directive;
  std::string source;  // path of the deciding node, `` for the root
};
struct ResolvedOn {
  OnDirective directive;
  std::string source;

  friend bool operator==(const ResolvedOn& a, const ResolvedOn& b) {
    return a.directive == b.directive;
  }
};
// Pieces that an op runs in, by the node that says so.
struct ResolvedPieces {
  PiecesDirective directive;
  int depth = 0;  // parts of the node's path
  std::string source;

  friend bool operator==(const ResolvedPieces& a, const ResolvedPieces& b) {
    return a.directive == b.directive && a.depth == b.depth;
  }
};
struct Resolved {
  std::vector<ResolvedSplit> splits;  // in the order of first mention, root first
  std::vector<ResolvedOn> on;         // by axis; of an axis that is not here all ranks
  Recompute recompute = Recompute::kNone;
  std::vector<std::string> recompute_ops;
  std::string recompute_source;
  std::vector<ResolvedPieces> pieces;  // one a depth, below the root; the deepest first
  LoopDirective loop;
  std::string loop_source;
  std::vector<Rewrite> rewrites;
  std::string rewrite_source;
  std::string compute_at, compute_at_source;
  TensorHomes homes;
  std::array<std::string, kNumHomeKinds> home_sources;
  std::optional<int64_t> bucket_bytes;  // absent: the software profile's
  std::string bucket_source;
  std::optional<int64_t> unit_layers;  // absent: nothing is said
  std::string unit_source;
  bool train = true;
  std::string train_source;
  std::optional<LoraDirective> lora;
  std::string lora_source;

  // Whether ops are told the same, whoever says it.
  bool SaysAs(const Resolved& other) const;
};

// What a virtual stage holds: nodes by their paths, as `NodePath` writes them; and where it
// is, if not where the plan's mesh puts it.
struct StageNodes {
  std::vector<std::string> nodes;
  StageMeshSpec place;

  friend bool operator==(const StageNodes& a, const StageNodes& b) {
    return a.nodes == b.nodes && a.place == b.place;
  }
};

// The strategy: a tree that mirrors the module tree. Nodes are addressed by
// dotted paths (NodePath): `layers.*.attn`, `layers[0:8].mlp.fc1`, `layers.3`. A node holds
// for itself and everything below. Two nodes that match one op and decide the same thing: the
// longer path (more components) wins, then the one with fewer stars, then the one with fewer
// slices; two equally specific nodes that differ are a conflict, an error that names both.
class StrategyTree {
 public:
  StrategyTree() = default;
  // The canonical (Megatron-like) tree of a short form: see Root().
  static StrategyTree FromShortForm(const ShortForm& form);
  // Tree in JSON (YAML is converted by the Python face), on top of the
  // canonical tree of `plan`; `what` names the input in errors:
  // {"plan": "dp=2,tp=4", "nodes": {"layers.*.attn": {"split": {"tp": ["heads"]},
  //  "recompute": "selective:core_attn+moe_act", "home": {"weights": "shard(dp)"}, "on": {"dp": 0},
  //  "bucket": "25MB"}, "layers[0:8]": {"unit": 2},
  //  "head": {"micro_batches": 8, "max_ongoing": 1}},
  //  "load": {"experts": [1.5, 0.5]},
  //  "stages": [{"nodes": ["embedding", "layers[0:8]"]}, {"nodes": "layers[8:16]"}, ...],
  //  "idle": "gpus 2-7"}
  static absl::StatusOr<StrategyTree> FromJson(absl::string_view json, absl::string_view what);
  // Canonical and complete: FromJson(t.ToJson()) is t.
  std::string ToJson() const;

  // The tree with another plan and the same nodes.
  StrategyTree WithPlan(const ShortForm& plan) const {
    StrategyTree tree = *this;
    tree.plan_ = plan;
    return tree;
  }

  ShortForm& plan() { return plan_; }
  const ShortForm& plan() const { return plan_; }
  // The node at `path` (`` is the root), made if absent. Errors: malformed path.
  absl::StatusOr<Directives*> Node(absl::string_view path);
  // What was said node by node, beyond the plan.
  const std::map<std::string, Directives>& nodes() const { return nodes_; }
  // Where the node of `nodes()` is.
  const NodePath& PathOf(const std::string& node) const { return paths_.at(node); }
  // Nodes that tell apart layers of the list at `path`, whose last part is their index.
  std::vector<const NodePath*> NodesOfLayers(const ModulePath& path) const;
  // Expected loads of routed dims: `experts`, the share of the tokens that each gets,
  // against any common unit. All alike where nothing is said.
  const std::map<std::string, std::vector<double>>& loads() const { return loads_; }
  void SetLoad(absl::string_view dim, std::vector<double> loads) {
    loads_[std::string(dim)] = std::move(loads);
  }
  // What each virtual stage holds, in the order of the model; empty: by the plan's layout.
  const std::vector<StageNodes>& stages() const { return stages_; }
  // Whether some node, or a home that one says, is on some ranks of an axis only.
  bool NamesRanks() const;
  // Whether stages have meshes or devices of their own.
  bool HasStagePlaces() const;
  // Errors: malformed paths, stages without nodes, a plan with a layout.
  absl::Status SetStages(std::vector<StageNodes> stages);
  // Devices that have no stage, which a tree says where not all of the machine's have one. Errors:
  // stages that have no devices of their own.
  const std::vector<DeviceRange>& idle() const { return idle_; }
  absl::Status SetIdle(std::vector<DeviceRange> idle);
  // The root with all that holds for the whole model: batch split over dp;
  // heads, ffn, vocab (and seq where nothing else, if sp) over tp; experts over ep and
  // their width over etp, in ops that work on slots and not on tokens; recompute,
  // bucket and homes (zero, offload) of the plan; each unless the node `` says otherwise.
  Directives Root() const;
  // The plan with what the node `` says of homes, buckets, units and micro-batches as its own.
  ShortForm PlanOfRoot() const;
  // The most that a node below the root shards, as `zero` counts.
  int MostShardedBelow() const;
  // Whether a node below the root says how many layers are one unit of sharding.
  bool SaysUnits() const;

  // Whether some node has adapters: what no node says of is not trained then.
  bool has_lora() const;
  // Whether some node says which ops are one.
  bool JoinsOps() const;
  // Whether not all parameters of the model are trained, or adapters are added.
  bool fine_tunes() const;
  // What holds for the op at `path`: what nodes say of some layers holds where it has an index.
  absl::StatusOr<Resolved> Resolve(const ModulePath& path) const;
  absl::StatusOr<Resolved> Resolve(absl::string_view path) const {
    return Resolve(ModulePath::Of(path));
  }
  // One line a directive: `split tp: heads | ffn | vocab   from root (tp=8)`, or one a level of a
  // hierarchy, outermost first: `split tp /4: heads | ffn`. `layers`: of the
  // list that the path goes through, needed where nodes count from its end; 0: not known.
  absl::StatusOr<std::string> Explain(absl::string_view path, int64_t layers = 0) const;

  // One line a node, stable.
  std::string DebugString() const;

  friend bool operator==(const StrategyTree& a, const StrategyTree& b);

 private:
  ShortForm plan_;
  std::map<std::string, Directives> nodes_;  // by canonical path
  std::map<std::string, NodePath> paths_;
  std::map<std::string, std::vector<double>> loads_;
  std::vector<StageNodes> stages_;
  std::vector<DeviceRange> idle_;
};

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_STRATEGY_TREE_H_
