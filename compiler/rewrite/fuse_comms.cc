#include "compiler/rewrite/fuse_comms.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "graph/rule/op_rule.h"

namespace plancast {
namespace {

class Fuser {
 public:
  Fuser(const ModelGraph& graph, const BoundBody& bound, BodyPlan* plan)
      : graph_(graph), body_(graph.bodies[bound.body]), plan_(*plan) {}

  absl::Status Join(const BoundRewrite& rewrite, int number) {
    std::vector<size_t> before, ops, behind;
    RETURN_IF_ERROR(FindOps(rewrite, &ops));
    RETURN_IF_ERROR(FindComms(rewrite, ops, &before, &behind));
    std::vector<size_t> joined = before;
    joined.insert(joined.end(), ops.begin(), ops.end());
    joined.insert(joined.end(), behind.begin(), behind.end());
    ASSIGN_OR_RETURN(const std::vector<bool> later, Later(joined));
    Reorder(joined, later, number);
    return absl::OkStatus();
  }

 private:
  const std::string& NameOf(const PlanStep& step) const { return body_.ops[step.op.op].name; }

  absl::Status FindOps(const BoundRewrite& rewrite, std::vector<size_t>* ops) const {
    for (size_t s = 0; s < plan_.forward.size(); ++s) {
      const PlanStep& step = plan_.forward[s];
      const std::vector<int>& named = rewrite.ops;
      if (step.kind != PlanStep::Kind::kOp) continue;
      if (std::find(named.begin(), named.end(), step.op.op) == named.end()) continue;
      if (step.fused >= 0 || step.loop >= 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("`", NameOf(step), "` is fused with others, or runs in pieces, already."));
      }
      if (!step.op.partition.reductions.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("`", NameOf(step),
                         "` exchanges results in its midst, for which all of it has to be there. "
                         "Leave it out."));
      }
      for (const Statement& statement : step.op.rule->statements()) {
        if (statement.reduced.empty() && statement.where.empty()) continue;
        const std::string over =
            statement.reduced.empty() ? "" : step.op.rule->factors()[statement.reduced[0]];
        return absl::InvalidArgumentError(absl::StrCat(
            "`", NameOf(step),
            over.empty() ? "` reads other elements than those that come"
                         : absl::StrCat("` sums over `", over, "`"),
            ", so that it cannot go on chunk by chunk. Overlap it in pieces instead, or leave it "
            "out."));
      }
      ops->push_back(s);
    }
    return absl::OkStatus();
  }

  bool MadeBy(int value, const std::vector<size_t>& steps) const {
    return std::any_of(steps.begin(), steps.end(), [&](size_t s) {
      const std::vector<int>& made = plan_.forward[s].outputs;
      return std::find(made.begin(), made.end(), value) != made.end();
    });
  }
  bool ReadBy(int value, const std::vector<size_t>& steps) const {
    return std::any_of(steps.begin(), steps.end(), [&](size_t s) {
      const std::vector<int>& read = plan_.forward[s].inputs;
      return std::find(read.begin(), read.end(), value) != read.end();
    });
  }

  absl::Status FindComms(const BoundRewrite& rewrite, const std::vector<size_t>& ops,
                         std::vector<size_t>* before, std::vector<size_t>* behind) const {
    std::set<CollectiveKind> found;
    for (size_t s = 0; s < plan_.forward.size(); ++s) {
      const PlanStep& step = plan_.forward[s];
      if (step.kind != PlanStep::Kind::kRelayout || step.relayout.steps.size() != 1) continue;
      const RelayoutStep& comm = step.relayout.steps[0];
      const std::vector<CollectiveKind>& said = rewrite.said.comms;
      if (!comm.is_collective || std::count(said.begin(), said.end(), comm.kind) == 0) continue;
      const bool comes = ReadBy(step.outputs[0], ops), goes = MadeBy(step.inputs[0], ops);
      if (!comes && !goes) continue;
      if (step.loop >= 0 || step.fused >= 0) {
        return absl::InvalidArgumentError(
            "a collective there runs in pieces, or in another kernel, "
            "already.");
      }
      found.insert(comm.kind);
      (goes ? behind : before)->push_back(s);
    }
    for (const CollectiveKind kind : rewrite.said.comms) {
      if (found.count(kind) > 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("no ", kCollectiveKindNames[kind],
                       " brings what these ops read, or takes what they make. `compile "
                       "--dump-after relayout` shows what is communicated."));
    }
    return absl::OkStatus();
  }

  // Steps that wait for the kernel. Errors: the kernel waits for one of them.
  absl::StatusOr<std::vector<bool>> Later(const std::vector<size_t>& joined) const {
    std::set<int> made;          // values that are there once the kernel is over, or later
    std::set<int> later_values;  // of these, those of steps behind it
    std::vector<bool> later(plan_.forward.size(), false);
    std::string between;
    for (size_t s = 0; s < plan_.forward.size(); ++s) {
      const PlanStep& step = plan_.forward[s];
      const bool is_joined = std::count(joined.begin(), joined.end(), s) > 0;
      if (is_joined) {
        for (const int value : step.outputs) made.insert(value);
        bool waits = false;
        for (const int value : step.inputs) waits |= later_values.count(value) > 0;
        if (waits) {
          return absl::InvalidArgumentError(
              absl::StrCat("`", between,
                           "` reads what the kernel makes, and the kernel needs what "
                           "comes of it: neither could begin. Name it too, or leave "
                           "out what waits for it."));
        }
        continue;
      }
      ForEachRead(step, [&](int value) { later[s] = later[s] || made.count(value) > 0; });
      if (!later[s]) continue;
      between = step.kind == PlanStep::Kind::kOp
                    ? NameOf(step)
                    : absl::StrCat("relayout ",
                                   FactsOf(graph_, body_, plan_.values[step.inputs[0]].ref).name);
      for (const int value : step.outputs) {
        made.insert(value);
        later_values.insert(value);
      }
    }
    return later;
  }

  void Reorder(const std::vector<size_t>& joined, const std::vector<bool>& later, int number) {
    std::vector<PlanStep> steps;
    for (size_t s = 0; s < later.size(); ++s) {
      const bool is_joined = std::count(joined.begin(), joined.end(), s) > 0;
      if (!later[s] && !is_joined) steps.push_back(plan_.forward[s]);
    }
    for (const size_t s : joined) {
      steps.push_back(plan_.forward[s]);
      steps.back().fused = number;
    }
    for (size_t s = 0; s < later.size(); ++s) {
      if (later[s]) steps.push_back(plan_.forward[s]);
    }
    plan_.forward = std::move(steps);
  }

  const ModelGraph& graph_;
  const Body& body_;
  BodyPlan& plan_;
};

}  // namespace

absl::Status FuseComms(const ModelGraph& graph, const BoundBody& bound, BodyPlan* plan) {
  int number = 0;
  for (const BoundRewrite& rewrite : bound.rewrites) {
    if (rewrite.said.kind != Rewrite::Kind::kFuse) continue;
    const absl::Status joined = Fuser(graph, bound, plan).Join(rewrite, number++);
    if (joined.ok()) continue;
    return absl::Status(joined.code(),
                        absl::StrCat("`", rewrite.source, "`: `", rewrite.said.DebugString(),
                                     "`: ", joined.message()));
  }
  return absl::OkStatus();
}

}  // namespace plancast
