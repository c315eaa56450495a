#ifndef PLANCAST_STRATEGY_CHOOSE_PLAN_H_
#define PLANCAST_STRATEGY_CHOOSE_PLAN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/model/model_cut.h"
#include "strategy/plan_options.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace plancast {

// Facts about the model and machine that defaults and checks need. A fact of
// the model that is 0 is unknown or decided elsewhere, and not checked (heads
// where the tree splits attention by hand).
struct PlanContext {
  int64_t devices = 0;
  int64_t layers = 0;
  int64_t heads = 0, kv_heads = 0, ffn = 0, hidden = 0, vocab = 0, seq = 0;
  int64_t experts = 0;     // 0: there are none
  int64_t expert_ffn = 0;  // width of one
  std::optional<int64_t> global_batch;
  int node_zero = 0;                // StrategyTree::MostShardedBelow
  std::set<std::string> home_axes;  // over which nodes shard
  // Whether there is work before the first layer and after the last, for stages without layers.
  bool work_before = true, work_after = true;
  bool lists = true;  // layers are those of lists; else modules of any kind count as layers
  // Where virtual stages begin that a tree lists by the nodes they hold; absent: it lists none.
  std::optional<std::vector<ModelCut>> stages;
  // Per virtual stage, the dims that ops there have; empty: all of the model's.
  std::vector<std::set<std::string>> stage_dims;
  // Layers of each of so many virtual stages that have work as equal as can be, the embedding and
  // the head included (BalancedLayers); none: more stages than that have work.
  std::function<std::vector<int64_t>(int64_t stages)> deal;
  // Cuts a model in more virtual stages than it has layers; empty: that cannot be done.
  std::function<absl::StatusOr<std::vector<ModelCut>>(int64_t stages)> cut;
};

// A settled plan. `chosen` has the value of everything that decides the
// forecast, said or not; `notes` are sentences for people: what has no effect,
// what is uneven.
struct ChosenPlan {
  PlanOptions options;
  std::map<std::string, std::string> chosen;
  std::vector<std::string> notes;
};

// Fills in what the short form leaves open (dp, schedule, micro-batches,
// layout, overlap and bucket from the profile) and checks it all. Errors:
// CheckSupported's; devices that are not dp*tp*cp*pp; heads, ffn or sequence
// not divisible by tp; ep or etp that experts or the mesh do not divide by; batch not divisible by
// dp*mb, each with the sizes that work; fewer layers than stages; schedules that contradict vpp.
absl::StatusOr<ChosenPlan> ChoosePlan(const ShortForm& form, const PlanContext& context,
                                      const SoftwareProfile& profile);

// The same without a text for people.
absl::StatusOr<PlanOptions> ChooseOptions(const ShortForm& form, const PlanContext& context,
                                          const SoftwareProfile& profile);

// Settles what virtual stages hold, `options->layout` or `cuts`, after pp and vpp. Gives a sentence
// for people, or nothing. Errors: ChoosePlan's.
absl::StatusOr<std::string> ChooseLayout(const ShortForm& form, const PlanContext& context,
                                         PlanOptions* options);

// Layers of each of `stages` virtual stages where the plan does not say: equal;
// else, if layers + 2 divides, the first and last stage get one less; else the
// surplus goes to the middle. Empty if there are fewer layers than stages (the
// first and the last may go without: 126 layers on 128 stages).
std::vector<int64_t> DefaultLayout(int64_t layers, int64_t stages);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_CHOOSE_PLAN_H_
