#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "strategy/context_parallel.h"
#include "strategy/plan_names.h"
#include "strategy/schedule/schedule_word.h"
#include "strategy/strategy_tree.h"

// What holds for the whole model: the plan as directives of the root.

namespace plancast {
namespace {

// What the plan's zero and offload say.
HomeDirective HomesOfPlan(const ShortForm& plan) {
  HomeDirective home;
  const int64_t zero = plan.zero.value_or(0);
  const auto offloads = [&](Offload what) {
    const auto& words = plan.offload;
    return std::find(words.begin(), words.end(), kOffloadNames[what]) != words.end();
  };
  const auto say = [&](HomeKind kind, bool sharded, bool on_host) {
    if (sharded || on_host) home[kind] = Home{sharded ? "dp" : "", on_host};
  };
  const bool update_on_host = offloads(Offload::kOptimizer);
  say(HomeKind::kState, zero >= 1, update_on_host);
  say(HomeKind::kGradients, zero >= 2, zero >= 2 && update_on_host);
  say(HomeKind::kWeights, zero >= 3, offloads(Offload::kParameters));
  say(HomeKind::kActivations, false, offloads(Offload::kActivations));
  return home;
}

// The sequence is cut everywhere, and attention takes keys and values in as they go round.
void SayContextParallel(const ShortForm& plan, Directives* root) {
  ContextParallel cp;  // of a plan that has not been chosen yet, where it does not say
  if (plan.cp_type.has_value()) {
    const auto said = ContextParallel::Parse(*plan.cp_type);
    PLANCAST_CHECK_OK(said.status());  // texts have been read
    cp = *said;
  }
  const auto split = SplitDirective::Parse("cp", cp.Cuts());
  PLANCAST_CHECK_OK(split.status());
  root->SetSplit(*split);
  if (!cp.turns()) return;
  root->loop.communicate[LoopDirective::kAll] = "t";
  root->loop.rotate["t"] = {"cp"};
}

}  // namespace

Directives StrategyTree::Root() const {
  Directives root;
  root.SetSplit({"dp", {"batch"}});
  // Column- and row-parallel linears, attention heads, the vocabulary; what has
  // none of them (norms, dropouts, residuals) is cut along the sequence or not.
  const int64_t tp = plan_.tp.value_or(1), etp = plan_.etp.value_or(tp);
  root.SetSplit({"tp", {"heads", "ffn", "shared_ffn", "expert_ffn", "vocab"}});
  std::vector<std::string>& over_tp = root.split.back().levels[0].dims;
  if (plan_.sp) over_tp.push_back("seq");
  if (etp != tp) over_tp.erase(std::find(over_tp.begin(), over_tp.end(), "expert_ffn"));
  // The slots of experts are what is left of the sequence.
  if (plan_.sp || etp != tp) over_tp.push_back("slots");
  if (plan_.cp.value_or(1) > 1) SayContextParallel(plan_, &root);
  if (plan_.ep.value_or(1) > 1) root.SetSplit({"ep", {"!seq", "experts"}});
  if (etp != tp && etp > 1) root.SetSplit({"etp", {"expert_ffn"}});
  root.home = HomesOfPlan(plan_);
  if (plan_.recompute.has_value()) {
    const bool layers = plan_.recompute == "every" || plan_.recompute == "uniform";
    root.recompute = layers ? Recompute::kFull : kRecomputeNames.Find(*plan_.recompute);
    root.recompute_ops = plan_.recompute_ops;
  }
  root.bucket_bytes = plan_.bucket_bytes;
  root.unit_layers = plan_.unit;

  const auto said = nodes_.find("");
  if (said == nodes_.end()) return root;
  for (const SplitDirective& split : said->second.split) root.SetSplit(split);
  if (!said->second.home.empty()) root.home = Merged(root.home, said->second.home);
  if (said->second.recompute.has_value()) {
    root.recompute = said->second.recompute;
    root.recompute_ops = said->second.recompute_ops;
  }
  if (said->second.bucket_bytes.has_value()) root.bucket_bytes = said->second.bucket_bytes;
  if (said->second.unit_layers.has_value()) root.unit_layers = said->second.unit_layers;
  root.pieces = said->second.pieces;
  if (!said->second.loop.empty()) root.loop = said->second.loop;
  root.rewrites = said->second.rewrites;
  root.compute_at = said->second.compute_at;
  root.train = said->second.train;
  root.lora = said->second.lora;
  return root;
}

ShortForm StrategyTree::PlanOfRoot() const {
  const auto said = nodes_.find("");
  if (said == nodes_.end()) return plan_;
  ShortForm plan = plan_;
  if (said->second.bucket_bytes.has_value()) plan.bucket_bytes = said->second.bucket_bytes;
  if (said->second.unit_layers.has_value()) plan.unit = said->second.unit_layers;
  if (const int64_t count = said->second.pieces.micro_batches; count > 0) plan.accum = count;
  if (const auto& most = said->second.pieces.max_ongoing; !most.empty()) {
    plan.schedule = PrintScheduleWord({Schedule::kOngoing, 0, most});
  }
  if (said->second.home.empty()) return plan;
  const HomeDirective home = Root().home;
  TensorHomes homes;
  for (const HomeKind kind : kHomeKindNames.Values()) homes[kind] = home[kind].value_or(Home());
  plan.zero = homes.zero();
  plan.offload.clear();
  const auto offload = [&](HomeKind kind, Offload what) {
    if (homes[kind].on_host) plan.offload.emplace_back(kOffloadNames[what]);
  };
  offload(HomeKind::kState, Offload::kOptimizer);
  offload(HomeKind::kWeights, Offload::kParameters);
  offload(HomeKind::kActivations, Offload::kActivations);
  if (!homes[HomeKind::kActivations].on_host) plan.offload_layers.reset();
  return plan;
}

}  // namespace plancast
