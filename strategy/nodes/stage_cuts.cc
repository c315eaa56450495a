#include "strategy/nodes/stage_cuts.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/wrong.h"
#include "graph/split/op_split.h"
#include "strategy/node_path.h"
#include "strategy/nodes/op_path.h"
#include "strategy/tree_check.h"

namespace plancast {
namespace {

std::string Place(int stage) { return absl::StrCat("`stages[", stage, "]`"); }

// Calls `use(cut, segment, op, layer, layers)` for every op in the order of the model, until that
// is an error.
template <typename Use>
absl::Status ForEachOp(const ModelGraph& graph, const Use& use) {
  const ModelPaths paths = PathsOf(graph);
  int64_t before = 0;  // layers of the list in earlier segments
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Segment& segment = graph.segments[s];
    const bool goes_on = s > 0 && segment.in_list() && graph.segments[s - 1].in_list() &&
                         graph.segments[s - 1].path == segment.path;
    before = goes_on ? before + graph.segments[s - 1].repeat : 0;
    int64_t layers = 0;
    for (const ListOfLayers& list : paths.lists) {
      if (segment.in_list() && list.path == segment.path) layers = list.layers;
    }
    const std::vector<OpNode>& ops = graph.bodies[segment.body].ops;
    for (int64_t repeat = 0; repeat < segment.repeat; ++repeat) {
      for (size_t o = 0; o < ops.size(); ++o) {
        const ModelCut cut{static_cast<int>(s), repeat, static_cast<int>(o)};
        RETURN_IF_ERROR(use(cut, segment, ops[o], before + repeat, layers));
      }
    }
  }
  return absl::OkStatus();
}

// `layers.3.attn.qkv`
std::string NameOf(const Segment& segment, const OpNode& op, int64_t layer) {
  if (!segment.in_list()) return absl::StrCat(segment.path, ".", op.name);
  return absl::StrCat(segment.path, ".", layer, ".", op.name);
}

bool OnlyRenames(const OpRule& rule) {
  return std::all_of(rule.statements().begin(), rule.statements().end(),
                     [&](const Statement& s) { return IsRenaming(rule, s); });
}

class Dealer {
 public:
  Dealer(const ModelGraph& graph, absl::Span<const StageNodes> stages)
      : graph_(graph), stages_(stages) {}

  absl::StatusOr<std::vector<ModelCut>> Run() && {
    for (const StageNodes& stage : stages_) {
      nodes_.emplace_back();
      for (const std::string& text : stage.nodes) {
        ASSIGN_OR_RETURN(NodePath path, NodePath::Parse(text));
        nodes_.back().push_back({std::move(path), false});
      }
    }
    RETURN_IF_ERROR(ForEachOp(
        graph_, [&](const ModelCut& cut, const Segment& segment, const OpNode& op, int64_t layer,
                    int64_t layers) { return Deal(cut, segment, op, layer, layers); }));
    RETURN_IF_ERROR(CheckNodes());
    if (!missing_.empty()) return Missing();
    RETURN_IF_ERROR(wrong_order_);
    RETURN_IF_ERROR(CheckWork());
    return std::move(cuts_);
  }

 private:
  struct Node {
    NodePath path;
    bool used = false;
  };
  // Which stage and which of its nodes hold an op; stage -1: none.
  struct Holder {
    int stage = -1;
    size_t node = 0;
  };

  absl::Status Deal(const ModelCut& cut, const Segment& segment, const OpNode& op, int64_t layer,
                    int64_t layers) {
    std::string text;
    const ModulePath path = PathOf(segment, op, layer, layers, &text);
    Holder holder;
    for (size_t s = 0; s < nodes_.size(); ++s) {
      for (size_t n = 0; n < nodes_[s].size(); ++n) {
        if (!nodes_[s][n].path.Covers(path)) continue;
        nodes_[s][n].used = true;
        const Holder other{static_cast<int>(s), n};
        if (holder.stage >= 0) return Doubled(NameOf(segment, op, layer), holder, other);
        holder = other;
      }
    }
    const std::string name = NameOf(segment, op, layer);
    if (holder.stage < 0) {
      if (missing_.empty()) missing_after_ = stage_;
      if (missing_.empty() || !gap_over_) missing_.push_back(name);
      return absl::OkStatus();
    }
    gap_over_ = !missing_.empty();
    if (holder.stage == stage_ + 1) {
      stage_ = holder.stage;
      works_.push_back(false);
      if (stage_ > 0) cuts_.push_back(cut);
    } else if (holder.stage != stage_ && wrong_order_.ok()) {
      wrong_order_ = WrongOrder(name, holder);
    }
    if (!OnlyRenames(*op.rule) && !works_.empty()) works_[std::max(stage_, 0)] = true;
    last_ = name;
    return absl::OkStatus();
  }

  const std::string& TextOf(const Holder& holder) const {
    return stages_[holder.stage].nodes[holder.node];
  }

  absl::Status Doubled(const std::string& op, const Holder& first, const Holder& second) const {
    return Wrong(Place(second.stage), ": `", TextOf(second), "` has `", op, "`, which `",
                 TextOf(first), "` of ", Place(first.stage),
                 " has already. Every op is on one stage: leave it out of one.");
  }

  absl::Status WrongOrder(const std::string& op, const Holder& holder) const {
    if (last_.empty()) {
      return Wrong(Place(holder.stage), ": `", TextOf(holder), "` has `", op,
                   "`, with which the model begins. List the stages in the order of the model.");
    }
    return Wrong(Place(holder.stage), ": `", TextOf(holder), "` has `", op, "`, which follows `",
                 last_, "` of ", Place(std::max(stage_, 0)),
                 ". Stages are pieces of the model, one behind the other: list them in its order.");
  }

  absl::Status CheckNodes() const {
    for (size_t s = 0; s < nodes_.size(); ++s) {
      for (size_t n = 0; n < nodes_[s].size(); ++n) {
        const Node& node = nodes_[s][n];
        const std::string& text = stages_[s].nodes[n];
        RETURN_IF_ERROR(CheckNodePath(node.path, text, PathsOf(graph_)))
            << Place(static_cast<int>(s));
        if (!node.used) return Wrong(Place(static_cast<int>(s)), ": `", text, "` has no ops.");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Missing() const {
    const std::string ops = missing_.size() == 1
                                ? absl::StrCat("`", missing_[0], "`")
                                : absl::StrCat("`", missing_.front(), "` to `", missing_.back(),
                                               "`, ", missing_.size(), " ops");
    return Wrong("`stages`: no stage holds ", ops, ". Stages are all of the model: add them to ",
                 Place(std::max(missing_after_, 0)),
                 missing_after_ >= 0 && missing_after_ + 1 < static_cast<int>(stages_.size())
                     ? " or the next"
                     : "",
                 ".");
  }

  absl::Status CheckWork() const {
    for (size_t s = 0; s < works_.size(); ++s) {
      if (works_[s]) continue;
      return Wrong(Place(static_cast<int>(s)), " has no work: `",
                   absl::StrJoin(stages_[s].nodes, "`, `"),
                   "` only give tensors another shape. Add what comes before or after.");
    }
    return absl::OkStatus();
  }

  const ModelGraph& graph_;
  absl::Span<const StageNodes> stages_;
  std::vector<std::vector<Node>> nodes_;
  std::vector<ModelCut> cuts_;
  std::vector<bool> works_;           // per stage
  int stage_ = -1;                    // of the op before
  std::string last_;                  // the op before
  std::vector<std::string> missing_;  // the first gap
  int missing_after_ = -1;
  bool gap_over_ = false;
  absl::Status wrong_order_;
};

}  // namespace

absl::StatusOr<std::vector<ModelCut>> StageCuts(const ModelGraph& graph,
                                                absl::Span<const StageNodes> stages) {
  return Dealer(graph, stages).Run();
}

std::string StagesText(const ModelGraph& graph, absl::Span<const ModelCut> cuts) {
  std::vector<std::string> parts;
  std::string first, last;
  const auto end_part = [&] {
    parts.push_back(first == last ? first : absl::StrCat(first, "..", last));
  };
  const absl::Status done =
      ForEachOp(graph,
                [&](const ModelCut& cut, const Segment& segment, const OpNode& op, int64_t layer,
                    int64_t) -> absl::Status {
                  const std::string name = NameOf(segment, op, layer);
                  if (parts.size() < cuts.size() && cut == cuts[parts.size()]) {
                    end_part();
                    first.clear();
                  }
                  if (first.empty()) first = name;
                  last = name;
                  return absl::OkStatus();
                });
  end_part();
  return absl::StrJoin(parts, " | ");
}

}  // namespace plancast
