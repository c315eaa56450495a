#ifndef PLANCAST_COMPILER_PROGRAM_HOME_PLAN_H_
#define PLANCAST_COMPILER_PROGRAM_HOME_PLAN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/bind/bind.h"
#include "compiler/body/place.h"
#include "compiler/lower/body_state.h"
#include "compiler/program/compiled_body.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// Where the tensors of a parameter live, and in which buckets its gradients are reduced while
// they are not sharded. `zero` as in the plan: 1 the state is sharded, 2 and the gradients,
// 3 and the weights.
//
// Sharded over the data-parallel axes, as the plan has it (ShardAxesOf), or `over` mesh axes of
// its own, where one rank may keep all. Over none means whole on the host, and then `zero` is what
// goes between device and host unit by unit: 2 gradients, 3 and weights.
struct ParameterHomes {
  int zero = 0;
  bool weights_on_host = false, state_on_host = false;
  int64_t bucket_bytes = 0;
  std::optional<HomeAxes> over = std::nullopt;

  // The same where the bucket does not matter.
  ParameterHomes OfAnyBucket() const {
    ParameterHomes homes = *this;
    homes.bucket_bytes = 0;
    return homes;
  }
  // Whether other devices than those of the program keep what is shared out.
  bool elsewhere() const { return over.has_value() && !over->here; }
  friend bool operator==(const ParameterHomes& a, const ParameterHomes& b) {
    return a.zero == b.zero && a.weights_on_host == b.weights_on_host &&
           a.state_on_host == b.state_on_host && a.bucket_bytes == b.bucket_bytes &&
           a.over == b.over;
  }
};
// Where no node says otherwise.
ParameterHomes HomesOfPlan(const PlanOptions& options);

// The parameters of a body with equal homes.
struct HomePart {
  ParameterHomes homes;
  const BodyState* state = nullptr;            // of these alone
  const std::vector<bool>* tensors = nullptr;  // of the body, which they are; null: all are

  bool Has(int tensor) const { return tensors == nullptr || (*tensors)[tensor]; }
};

// The homes of a plan whose nodes say some of them, by segment; of layers that are joined, by the
// body that joins them.
class HomePlan {
 public:
  // Null where no node says any. `bodies`: per bound body. `place`: of the program.
  // An axis that cuts a parameter already does not shard it; a parameter that none is left for
  // is whole.
  // Errors: a node that no parameter's home comes from; axes that shard nothing below a node;
  // parameters of one tensor, of tied modules, or activations of one layer that are told to live
  // in two places.
  static absl::StatusOr<std::shared_ptr<const HomePlan>> Create(
      const BoundModel& bound, const DeviceMesh& mesh, const StrategyTree& tree,
      const PlanOptions& options, const SoftwareProfile& profile,
      const std::vector<std::shared_ptr<const CompiledBody>>& bodies, const Place& place);

  // Calls `use(part)` for all parameters of a run's body, whose state is `state`.
  template <typename Use>
  void ForEachPart(const StageRun& run, const BodyState& state, Use use) const {
    const std::vector<Part>& parts = Of(run).parts;
    for (const Part& part : parts) {
      const bool all = parts.size() == 1;
      const bool own = !all || part.homes.over.has_value();
      use(HomePart{part.homes, own ? &part.state : &state, all ? nullptr : &part.tensors});
    }
  }
  // Whether any parameter has anything sharded over data-parallel axes.
  bool ShardsOverData(const DeviceMesh& mesh) const;
  // Where kept tensors of a run's layers wait; absent: as the plan says.
  const std::optional<Home>& ActivationsOf(const StageRun& run) const {
    return Of(run).activations;
  }
  // The mesh axes over which a run's layers share out what they keep.
  const std::vector<int>& ActivationsOver(const StageRun& run) const {
    return Of(run).activations_over;
  }
  // Whether those of any segment leave their devices: to the host, or to another stage; or all
  // but a part of them.
  bool OffloadsActivations() const;
  bool ParksActivations() const;
  bool MovesActivations() const;
  // Of a segment whose parameters have one home (ParameterHomes).
  const ParameterHomes& HomesOf(int segment) const { return segments_[segment].parts[0].homes; }
  int ZeroOf(int segment) const { return HomesOf(segment).zero; }
  // Per tensor of a run's body: its gradients are not sharded; null: all are.
  const std::vector<bool>* WholeGradients(const StageRun& run) const {
    const OfBody& homes = Of(run);
    return homes.any_whole ? &homes.whole_gradients : nullptr;
  }

 private:
  friend class HomePlanMaker;
  struct Part {
    ParameterHomes homes;
    BodyState state;
    std::vector<bool> tensors;
  };
  struct OfBody {
    std::vector<Part> parts;
    std::vector<bool> whole_gradients;  // per tensor
    bool any_whole = false;
    std::optional<Home> activations;
    std::vector<int> activations_over;
  };
  // Whether `is(home)` of the activations of any segment whose nodes say one.
  template <typename Is>
  bool AnyActivations(Is is) const;
  const OfBody& Of(const StageRun& run) const {
    return run.joined < 0 ? segments_[run.segment] : joined_.at(run.joined);
  }

  std::vector<OfBody> segments_;
  std::map<int, OfBody> joined_;  // by StageRun::joined
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_HOME_PLAN_H_
