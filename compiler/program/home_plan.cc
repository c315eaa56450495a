#include "compiler/program/home_plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "strategy/byte_size.h"
#include "strategy/nodes/op_path.h"

namespace plancast {
namespace {

bool Offloads(const PlanOptions& options, Offload what) { return options.offload.count(what) > 0; }

// What holds for an op, the plan's word where no node has one.
ParameterHomes HomesOfOp(const OpHomes& op, const PlanOptions& options) {
  const ParameterHomes plan = HomesOfPlan(options);
  TensorHomes homes = op.homes;
  const auto from_plan = [&](HomeKind kind, bool sharded, bool on_host) {
    if (op.FromNode(kind)) return;
    homes[kind] = Home{sharded ? "dp" : "", on_host};
  };
  from_plan(HomeKind::kWeights, plan.zero >= 3, plan.weights_on_host);
  from_plan(HomeKind::kGradients, plan.zero >= 2, false);
  from_plan(HomeKind::kState, plan.zero >= 1, plan.state_on_host);
  ParameterHomes result;
  result.zero = homes.zero();
  result.weights_on_host = homes[HomeKind::kWeights].on_host;
  result.state_on_host = homes[HomeKind::kState].on_host;
  result.bucket_bytes = op.bucket_bytes.value_or(plan.bucket_bytes);
  return result;
}

std::string Words(const ParameterHomes& homes) {
  const auto home = [](bool sharded, bool on_host) {
    return PrintHome(HomeKind::kState, Home{sharded ? "dp" : "", on_host});
  };
  return absl::StrCat("weights ", home(homes.zero >= 3, homes.weights_on_host), ", gradients ",
                      home(homes.zero >= 2, false), ", state ",
                      home(homes.zero >= 1, homes.state_on_host), ", bucket ",
                      PrintByteSize(homes.bucket_bytes));
}

}  // namespace

ParameterHomes HomesOfPlan(const PlanOptions& options) {
  return {options.zero, Offloads(options, Offload::kParameters),
          Offloads(options, Offload::kOptimizer), options.bucket_bytes};
}

int HomePlan::MostSharded() const {
  int most = 0;
  for (const OfSegment& segment : segments_) {
    for (const Part& part : segment.parts) most = std::max(most, part.homes.zero);
  }
  return most;
}

bool HomePlan::OffloadsActivations() const {
  return std::any_of(segments_.begin(), segments_.end(), [](const OfSegment& segment) {
    return segment.activations_on_host.value_or(false);
  });
}

class HomePlanMaker {
 public:
  HomePlanMaker(const BoundModel& bound, const DeviceMesh& mesh, const StrategyTree& tree,
                const PlanOptions& options, const SoftwareProfile& profile,
                const std::vector<std::shared_ptr<const CompiledBody>>& bodies)
      : bound_(bound),
        mesh_(mesh),
        tree_(tree),
        options_(options),
        profile_(profile),
        bodies_(bodies) {}

  absl::StatusOr<std::shared_ptr<const HomePlan>> Make() {
    if (options_.recompute_joined > 1) {
      return absl::UnimplementedError(absl::StrCat(
          "not supported yet: homes of nodes where recompute=uniform:", options_.recompute_joined,
          " runs layers together. Use recompute=full or every:N."));
    }
    HomePlan plan;
    for (size_t s = 0; s < bound_.graph.segments.size(); ++s) {
      ASSIGN_OR_RETURN(plan.segments_.emplace_back(), OfSegment(static_cast<int>(s)));
    }
    RETURN_IF_ERROR(CheckTied(plan));
    RETURN_IF_ERROR(CheckReach());
    return std::make_shared<const HomePlan>(std::move(plan));
  }

 private:
  const Body& BodyOf(int segment) const {
    return bound_.graph.bodies[bound_.graph.segments[segment].body];
  }
  std::string PathOf(int segment, const OpNode& op) const {
    return absl::StrCat(ModelGraph::PathOf(bound_.graph.segments[segment]), ".", op.name);
  }

  absl::StatusOr<HomePlan::OfSegment> OfSegment(int segment) {
    const Body& body = BodyOf(segment);
    const int bound_body = bound_.places[segment].alike;
    const std::vector<OpHomes>& said = bound_.bodies[bound_body].homes;
    HomePlan::OfSegment result;
    ASSIGN_OR_RETURN(result.activations_on_host, Activations(segment, said));
    std::vector<int> reader(body.tensors.size(), -1);  // the first op that reads a parameter
    for (size_t o = 0; o < body.ops.size(); ++o) {
      for (const int t : body.ops[o].inputs) {
        if (body.tensors[t].kind != TensorInfo::Kind::kParameter) continue;
        NoteReach(segment, body.ops[o], said[o], HasCopies(*bodies_[bound_body], body, t));
        if (reader[t] < 0) reader[t] = static_cast<int>(o);
        const ParameterHomes first = HomesOfOp(said[reader[t]], options_);
        const ParameterHomes own = HomesOfOp(said[o], options_);
        if (first == own) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "`", PathOf(segment, body.ops[reader[t]]), "` and `", PathOf(segment, body.ops[o]),
            "` read one parameter, `", body.tensors[t].name, "`, and give it two homes: ",
            Words(first), "; ", Words(own), ". Say one home for both."));
      }
    }
    result.whole_gradients.assign(reader.size(), false);
    for (size_t t = 0; t < reader.size(); ++t) {
      if (reader[t] < 0) continue;
      const ParameterHomes homes = HomesOfOp(said[reader[t]], options_);
      auto part = std::find_if(result.parts.begin(), result.parts.end(),
                               [&](const HomePlan::Part& known) { return known.homes == homes; });
      if (part == result.parts.end()) {
        result.parts.push_back({homes, {}, std::vector<bool>(reader.size(), false)});
        part = result.parts.end() - 1;
      }
      part->tensors[t] = true;
      if (homes.zero < 2) result.whole_gradients[t] = result.any_whole = true;
    }
    if (result.parts.empty()) result.parts.emplace_back();  // nothing has a home
    if (result.parts.size() > 1) {
      for (HomePlan::Part& part : result.parts) {
        part.state = SummariseState(bound_.graph, mesh_, body, bodies_[bound_body]->plan, profile_,
                                    &part.tensors);
      }
    }
    return result;
  }

  // Of a layer all or none.
  absl::StatusOr<std::optional<bool>> Activations(int segment, const std::vector<OpHomes>& said) {
    const Body& body = BodyOf(segment);
    std::optional<bool> result;
    for (size_t o = 0; o < said.size(); ++o) {
      std::optional<bool> own;
      if (said[o].FromNode(HomeKind::kActivations)) {
        own = said[o].homes[HomeKind::kActivations].on_host;
      }
      if (o == 0) result = own;
      if (own == result) continue;
      return absl::UnimplementedError(
          absl::StrCat("not supported yet: `", PathOf(segment, body.ops[0]), "` and `",
                       PathOf(segment, body.ops[o]),
                       "` with activations in two places. What a layer keeps goes ",
                       "to the host together: say it at `",
                       ModelGraph::PathOf(bound_.graph.segments[segment]), "`."));
    }
    if (result.value_or(false) && !bound_.graph.segments[segment].in_list()) {
      return absl::UnimplementedError(absl::StrCat(
          "not supported yet: `activations: host` at `", bound_.graph.segments[segment].path,
          "`, which is no layer: what modules outside of lists keep stays on the device. Say it ",
          "at layers alone."));
    }
    return result;
  }

  // Whether data-parallel ranks have copies of a parameter: not where they cut it.
  static bool HasCopies(const CompiledBody& compiled, const Body& body, int tensor) {
    const auto number = std::count_if(
        body.tensors.begin(), body.tensors.begin() + tensor,
        [](const TensorInfo& other) { return other.kind == TensorInfo::Kind::kParameter; });
    if (number >= static_cast<int64_t>(compiled.state.each.size())) return true;
    const BodyState::Parameter& parameter = compiled.state.each[number];
    return !parameter.cut || !parameter.copies.empty();
  }

  // Which nodes say something of a parameter that `op` reads.
  void NoteReach(int segment, const OpNode& op, const OpHomes& homes, bool has_copies) {
    const ZonedModel::Place& place = bound_.places[segment];
    std::string text;
    const ModulePath path = plancast::PathOf(bound_.graph.segments[segment], op, place.first_layer,
                                             place.layers, &text);
    for (const auto& [node, said] : tree_.nodes()) {
      if (!tree_.PathOf(node).CoversSomeLayers(path) && !tree_.PathOf(node).Covers(path)) continue;
      with_parameters_.insert(node);
      if (has_copies) with_copies_.insert(node);
      // Sharded gradients are reduced module by module.
      if (HomesOfOp(homes, options_).zero < 2) with_buckets_.insert(node);
    }
  }

  // Both users of a tied weight keep it in one place.
  absl::Status CheckTied(const HomePlan& plan) const {
    for (const TiedParameter& tie : bound_.graph.tied) {
      const auto& first = plan.segments_[tie.first_segment].parts;
      const auto& second = plan.segments_[tie.second_segment].parts;
      if (first.size() == 1 && second.size() == 1 && first[0].homes == second[0].homes) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("`", bound_.graph.segments[tie.first_segment].path, "` and `",
                       bound_.graph.segments[tie.second_segment].path,
                       "` share a weight, and nodes give it two homes (", Words(first[0].homes),
                       "; ", Words(second[0].homes), "). Say one home for all of both modules."));
    }
    return absl::OkStatus();
  }

  absl::Status CheckReach() const {
    for (const auto& [path, node] : tree_.nodes()) {
      if (path.empty()) continue;  // as the plan's own
      for (const HomeKind kind : {HomeKind::kWeights, HomeKind::kGradients, HomeKind::kState}) {
        if (!node.home[kind].has_value()) continue;
        const std::string said = absl::StrCat("`", path, "`: `", kHomeKindNames[kind], ": ",
                                              PrintHome(kind, *node.home[kind]), "` ");
        if (with_parameters_.count(path) == 0) {
          return absl::InvalidArgumentError(absl::StrCat(
              said, "is the home of nothing: there are no parameters below. Leave it out."));
        }
        if (!node.home[kind]->sharded() || with_copies_.count(path) > 0) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            said, "shares out nothing: `split` cuts all weights below over the ranks of `dp` ",
            "already, and leaves no copies. Leave it out."));
      }
      if (!node.bucket_bytes.has_value() || with_buckets_.count(path) > 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "`", path, "`: `bucket` has no effect: below are no gradients that are reduced in ",
          "buckets. Sharded ones are reduced module by module; leave it out."));
    }
    return absl::OkStatus();
  }

  const BoundModel& bound_;
  const DeviceMesh& mesh_;
  const StrategyTree& tree_;
  const PlanOptions& options_;
  const SoftwareProfile& profile_;
  const std::vector<std::shared_ptr<const CompiledBody>>& bodies_;
  std::set<std::string> with_parameters_, with_copies_, with_buckets_;  // nodes
};

absl::StatusOr<std::shared_ptr<const HomePlan>> HomePlan::Create(
    const BoundModel& bound, const DeviceMesh& mesh, const StrategyTree& tree,
    const PlanOptions& options, const SoftwareProfile& profile,
    const std::vector<std::shared_ptr<const CompiledBody>>& bodies) {
  const bool said = std::any_of(bound.bodies.begin(), bound.bodies.end(),
                                [](const BoundBody& body) { return !body.homes.empty(); });
  if (!said) return std::shared_ptr<const HomePlan>();
  return HomePlanMaker(bound, mesh, tree, options, profile, bodies).Make();
}

}  // namespace plancast
