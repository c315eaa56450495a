#include "compiler/program/home_plan.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/bind/op_places.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/program/home_ranks.h"
#include "compiler/program/home_reach.h"
#include "graph/execution/kept_tensors.h"
#include "strategy/byte_size.h"

namespace plancast {
namespace {

bool Offloads(const PlanOptions& options, Offload what) { return options.offload.count(what) > 0; }

// What holds for an op, the plan's word where no node has one.
struct OpWord {
  TensorHomes homes;
  int64_t bucket_bytes = 0;
};
OpWord WordOn(const OpHomes& op, const PlanOptions& options) {
  const ParameterHomes plan = HomesOfPlan(options);
  OpWord word{op.homes, op.bucket_bytes.value_or(plan.bucket_bytes)};
  const auto from_plan = [&](HomeKind kind, bool sharded, bool on_host) {
    if (op.FromNode(kind)) return;
    word.homes[kind] = Home{sharded ? "dp" : "", on_host};
  };
  from_plan(HomeKind::kWeights, plan.zero >= 3, plan.weights_on_host);
  from_plan(HomeKind::kGradients, plan.zero >= 2, plan.zero >= 2 && plan.state_on_host);
  from_plan(HomeKind::kState, plan.zero >= 1, plan.state_on_host);
  SettlePlaces(&word.homes);
  return word;
}

constexpr HomeKind kStored[] = {HomeKind::kWeights, HomeKind::kGradients, HomeKind::kState};

bool SameHomes(const OpWord& a, const OpWord& b) {
  return a.bucket_bytes == b.bucket_bytes &&
         std::all_of(std::begin(kStored), std::end(kStored),
                     [&](HomeKind kind) { return a.homes[kind] == b.homes[kind]; });
}

std::string Words(const OpWord& word) {
  std::string words;
  for (const HomeKind kind : kStored) {
    absl::StrAppend(&words, kHomeKindNames[kind], " ", PrintHome(kind, word.homes[kind]), ", ");
  }
  return absl::StrCat(words, "bucket ", PrintByteSize(word.bucket_bytes));
}

// The same of homes over dp or on a rank, as they are settled.
std::string Words(const DeviceMesh& mesh, const ParameterHomes& homes) {
  const auto home = [&](HomeKind kind, bool sharded, bool on_host) {
    Home said{sharded ? "dp" : "", on_host};
    if (sharded && homes.over.has_value() && homes.over->rooted()) {
      const auto& [axis, rank] = homes.over->root.back();
      said = {mesh.axis(axis).name, false, rank};
    }
    return absl::StrCat(kHomeKindNames[kind], " ", PrintHome(kind, said), ", ");
  };
  return absl::StrCat(home(HomeKind::kWeights, homes.zero >= 3, homes.weights_on_host),
                      home(HomeKind::kGradients, homes.zero >= 2, false),
                      home(HomeKind::kState, homes.zero >= 1, homes.state_on_host), "bucket ",
                      PrintByteSize(homes.bucket_bytes));
}

bool IsWholeOnHost(const Home& home) { return home.on_host && !home.sharded(); }

// Nodes that each say some of an op's homes may not agree: who keeps a shard updates that shard,
// where it is.
absl::Status CheckAgree(const std::string& op, const OpHomes& said, const OpWord& word) {
  const auto from = [&](HomeKind kind) {
    return said.FromNode(kind) ? absl::StrCat("from `", said.SourceOf(kind), "`") : "from the plan";
  };
  for (const HomeKind above : kStored) {
    for (const HomeKind below : kStored) {
      const Home &a = word.homes[above], &b = word.homes[below];
      if (above >= below) continue;
      const bool apart = a.sharded() && !a.SharedAs(b);
      if (!apart && (!IsWholeOnHost(a) || IsWholeOnHost(b))) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "`", op, "`: `", kHomeKindNames[above], ": ", PrintHome(above, a), "` (", from(above),
          ") and `", kHomeKindNames[below], ": ", PrintHome(below, b), "` (", from(below),
          ") contradict each other: what is kept is updated where it is kept. Say both in one ",
          "node, or `", kHomeKindNames[above], "` alone, and the others follow."));
    }
  }
  return absl::OkStatus();
}

// Over these axes a home called `name` shards what has copies on them: of dp the ranks of a shard
// group, which are those of cp too.
std::vector<int> AxesCalled(const DeviceMesh& mesh, const PlanOptions& options,
                            const std::string& name) {
  std::vector<int> axes;
  int64_t ranks = 1;
  const int64_t group = options.hsdp == 0 ? options.dp : options.hsdp;
  if (name != "dp") {
    for (const int a : mesh.AxesOf(name)) {
      if (mesh.size(a) > 1) axes.push_back(a);
    }
    return axes;
  }
  for (int a = mesh.num_axes() - 1; a >= 0; --a) {
    if (mesh.size(a) == 1 || !IsDataAxis(mesh, a)) continue;
    if (mesh.root(a) == "dp" && (ranks *= mesh.size(a)) > group) continue;
    axes.insert(axes.begin(), a);
  }
  return axes;
}

std::vector<int> Both(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace

ParameterHomes HomesOfPlan(const PlanOptions& options) {
  return {options.zero, Offloads(options, Offload::kParameters),
          Offloads(options, Offload::kOptimizer), options.bucket_bytes};
}

bool HomePlan::ShardsOverData(const DeviceMesh& mesh) const {
  const auto over_data = [&](const ParameterHomes& homes) {
    if (homes.zero == 0 || !homes.over.has_value()) return homes.zero > 0;
    return std::any_of(homes.over->axes.begin(), homes.over->axes.end(),
                       [&](int axis) { return IsDataAxis(mesh, axis); });
  };
  return std::any_of(segments_.begin(), segments_.end(), [&](const OfBody& segment) {
    return std::any_of(segment.parts.begin(), segment.parts.end(),
                       [&](const Part& part) { return over_data(part.homes); });
  });
}

template <typename Is>
bool HomePlan::AnyActivations(Is is) const {
  return std::any_of(segments_.begin(), segments_.end(), [&](const OfBody& segment) {
    return segment.activations.has_value() && is(*segment.activations);
  });
}

bool HomePlan::OffloadsActivations() const {
  return AnyActivations([](const Home& home) { return home.on_host; });
}

bool HomePlan::ParksActivations() const {
  return AnyActivations([](const Home& home) { return home.rank.has_value(); });
}

bool HomePlan::MovesActivations() const {
  return AnyActivations([](const Home& home) { return !(home == Home()); });
}

class HomePlanMaker {
 public:
  HomePlanMaker(const BoundModel& bound, const DeviceMesh& mesh, const StrategyTree& tree,
                const PlanOptions& options, const SoftwareProfile& profile,
                const std::vector<std::shared_ptr<const CompiledBody>>& bodies, const Place& place)
      : bound_(bound),
        mesh_(mesh),
        options_(options),
        profile_(profile),
        bodies_(bodies),
        place_(place),
        reach_(bound, tree) {}

  absl::StatusOr<std::shared_ptr<const HomePlan>> Make() {
    HomePlan plan;
    for (size_t s = 0; s < bound_.graph.segments.size(); ++s) {
      const auto segment = static_cast<int>(s);
      ASSIGN_OR_RETURN(plan.segments_.emplace_back(), OfBody(segment, bound_.places[s].alike));
    }
    RETURN_IF_ERROR(JoinedBodies(&plan));
    RETURN_IF_ERROR(CheckTied(plan));
    RETURN_IF_ERROR(CheckMatrices(plan));
    RETURN_IF_ERROR(CheckFreed(plan));
    RETURN_IF_ERROR(reach_.Check());
    return std::make_shared<const HomePlan>(std::move(plan));
  }

 private:
  std::string PathOf(int segment, const OpNode& op) const {
    return absl::StrCat(ModelGraph::PathOf(bound_.graph.segments[segment]), ".", op.name);
  }

  const Body& BodyOf(int bound_body) const {
    return bound_.graph.bodies[bound_.bodies[bound_body].body];
  }

  absl::Status JoinedBodies(HomePlan* plan) {
    for (const std::vector<StageRun>& runs : bound_.stages) {
      for (const StageRun& run : runs) {
        if (run.joined < 0 || plan->joined_.count(run.joined) > 0) continue;
        ASSIGN_OR_RETURN(HomePlan::OfBody homes, OfBody(run.segment, run.joined));
        if (homes.activations.has_value() && homes.activations->on_host) {
          return absl::UnimplementedError(absl::StrCat(
              "not supported yet: `activations: host` of `",
              ModelGraph::PathOf(bound_.graph.segments[run.segment]), "` where ",
              bound_.bodies[run.joined].layers, " layers run together. Leave one of the two out."));
        }
        plan->joined_.emplace(run.joined, std::move(homes));
      }
    }
    return absl::OkStatus();
  }

  // Of the segment's body, or of one that joins layers from there on.
  absl::StatusOr<HomePlan::OfBody> OfBody(int segment, int bound_body) {
    const Body& body = BodyOf(bound_body);
    const std::vector<OpHomes>& said = bound_.bodies[bound_body].homes;
    HomePlan::OfBody result;
    ASSIGN_OR_RETURN(result.activations, Activations(segment, bound_body, said));
    if (result.activations.has_value()) {
      result.activations_over = AxesOf(*result.activations);
    }
    if (!bound_.Holds(bound_body)) {  // of another stage, whose layouts are not known here
      result.whole_gradients.assign(body.tensors.size(), false);
      result.parts.emplace_back();
      return result;
    }
    std::vector<int> reader(body.tensors.size(), -1);  // the first op that reads a parameter
    const std::vector<Layout>& layouts = bodies_[bound_body]->plan.parameter_layouts;
    for (size_t o = 0; o < body.ops.size(); ++o) {
      for (const int t : body.ops[o].inputs) {
        if (body.tensors[t].kind != TensorInfo::Kind::kParameter) continue;
        const OpWord own = WordOn(said[o], options_);
        RETURN_IF_ERROR(CheckAgree(PathOf(segment, body.ops[o]), said[o], own));
        RETURN_IF_ERROR(CheckHomeRank({mesh_, options_, place_}, PathOf(segment, body.ops[o]),
                                      said[o], own.homes, body.tensors[t], layouts[t]));
        if (body.tensors[t].sparse) {
          reach_.NoteTable(segment, body.ops[o]);
        } else {
          NoteReach(segment, body.ops[o], own, body.tensors[t].frozen, layouts[t],
                    HasCopies(*bodies_[bound_body], body, t));
        }
        if (reader[t] < 0) reader[t] = static_cast<int>(o);
        const OpWord first = WordOn(said[reader[t]], options_);
        if (SameHomes(first, own)) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "`", PathOf(segment, body.ops[reader[t]]), "` and `", PathOf(segment, body.ops[o]),
            "` read one parameter, `", body.tensors[t].name, "`, and give it two homes: ",
            Words(first), "; ", Words(own), ". Say one home for both."));
      }
    }
    result.whole_gradients.assign(reader.size(), false);
    for (size_t t = 0; t < reader.size(); ++t) {
      if (reader[t] < 0) continue;
      const ParameterHomes homes = Settled(WordOn(said[reader[t]], options_), layouts[t]);
      auto part = std::find_if(result.parts.begin(), result.parts.end(),
                               [&](const HomePlan::Part& known) { return known.homes == homes; });
      if (part == result.parts.end()) {
        result.parts.push_back({homes, {}, std::vector<bool>(reader.size(), false)});
        part = result.parts.end() - 1;
      }
      part->tensors[t] = true;
      // One rank shards nothing over dp, whatever nodes say.
      const bool shards = homes.over.has_value() || options_.dp * options_.cp > 1;
      if ((homes.zero >= 2 && shards) || body.tensors[t].frozen || body.tensors[t].sparse) continue;
      result.whole_gradients[t] = result.any_whole = true;
    }
    if (result.parts.empty()) result.parts.emplace_back();  // nothing has a home
    for (HomePlan::Part& part : result.parts) {
      if (result.parts.size() == 1 && !part.homes.over.has_value()) break;  // the body's own
      part.state =
          SummariseState(bound_.graph, mesh_, body, bodies_[bound_body]->plan, profile_,
                         &part.tensors, part.homes.over ? &part.homes.over->axes : nullptr);
    }
    return result;
  }

  // The mesh axes that a home shares something out over, all to one rank left out.
  std::vector<int> AxesOf(const Home& home) const {
    std::vector<int> over;
    if (home.rank.has_value()) return over;
    for (const std::string& name : home.axes()) {
      const std::vector<int> axes = AxesCalled(mesh_, options_, name);
      over.insert(over.end(), axes.begin(), axes.end());
    }
    std::sort(over.begin(), over.end());
    over.erase(std::unique(over.begin(), over.end()), over.end());
    return over;
  }

  // Of a parameter that is laid out as `weight`.
  ParameterHomes Settled(const OpWord& word, const Layout& weight) const {
    const Home &weights = word.homes[HomeKind::kWeights], &state = word.homes[HomeKind::kState];
    ParameterHomes homes{word.homes.zero(), weights.on_host, state.on_host, word.bucket_bytes};
    const auto goes_whole = [&](int zero) {
      homes.zero = zero;
      homes.over.emplace();
    };
    if (IsWholeOnHost(weights)) {
      goes_whole(3);
    } else if (IsWholeOnHost(word.homes[HomeKind::kGradients])) {
      goes_whole(2);
    }
    const OnRanksOf root = RanksOfHome(state, mesh_);
    if (!root.empty()) {
      homes.over.emplace();
      for (const auto& [axis, rank] : root) homes.over->axes.push_back(axis);
      homes.over->root = root;
      homes.over->here = place_.Runs(root);
      return homes;
    }
    if (state.rank.has_value()) {  // of one
      homes.zero = 0;
      return homes;
    }
    if (!state.sharded() || state.axis == "dp") return homes;
    const std::vector<int> copies = CopiesOf(mesh_, weight);
    std::vector<int> over = Both(AxesOf(state), copies);
    if (over.empty()) {  // cut by all of them
      goes_whole(weights.on_host ? 3 : 0);
      if (homes.zero == 0) homes.over.reset();
    } else if (over != Both(AxesCalled(mesh_, options_, "dp"), copies)) {
      homes.over = HomeAxes{std::move(over), {}, true};
    }
    return homes;
  }

  // Of a layer all or none.
  absl::StatusOr<std::optional<Home>> Activations(int segment, int bound_body,
                                                  const std::vector<OpHomes>& said) {
    const Body& body = BodyOf(bound_body);
    std::optional<Home> result;
    for (size_t o = 0; o < said.size(); ++o) {
      std::optional<Home> own;
      if (said[o].FromNode(HomeKind::kActivations)) own = said[o].homes[HomeKind::kActivations];
      if (o == 0) result = own;
      if (own == result) continue;
      return absl::UnimplementedError(absl::StrCat(
          "not supported yet: `", PathOf(segment, body.ops[0]), "` and `",
          PathOf(segment, body.ops[o]),
          "` with activations in two places. What a layer keeps goes ", "together: say it at `",
          ModelGraph::PathOf(bound_.graph.segments[segment]), "`."));
    }
    if (!result.has_value() || *result == Home()) return result;
    if (Keeps(segment, bound_body, *result)) {
      reach_.NoteActivations(segment, body.ops[0], *result);
    }
    return result;
  }

  // Whether the segment's forward pass leaves anything to its backward pass that the home moves.
  bool Keeps(int segment, int bound_body, const Home& home) const {
    if (!bound_.Holds(bound_body)) return true;  // as its own stage sees
    const BodyBlocks& blocks = bodies_[bound_body]->blocks;
    if (!home.sharded() || home.rank.has_value()) {
      return bound_.graph.segments[segment].in_list() ||
             !KeptTensors(blocks.forward.block, 0).empty();
    }
    const std::vector<int> over = AxesOf(home);
    return std::any_of(blocks.kept.begin(), blocks.kept.end(),
                       [&](const KeptCopies& kept) { return !Both(kept.axes, over).empty(); });
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
  void NoteReach(int segment, const OpNode& op, const OpWord& word, bool frozen,
                 const Layout& weight, bool has_copies) {
    const std::vector<int> copies = CopiesOf(mesh_, weight);
    const auto shares_out = [&](const std::string& axis) {
      const std::vector<int> axes = AxesCalled(mesh_, options_, axis);
      return axis == "dp" ? has_copies : axes.empty() || !Both(axes, copies).empty();
    };
    // Sharded gradients are reduced module by module.
    const bool in_buckets = !frozen && Settled(word, weight).zero < 2;
    reach_.NoteParameter(segment, op, !frozen, in_buckets, shares_out);
  }

  // Muon multiplies matrices, which takes the device.
  absl::Status CheckMatrices(const HomePlan& plan) const {
    if (profile_.update.type != OptimizerType::kMuon) return absl::OkStatus();
    bool on_host = false;
    for (const HomePlan::OfBody& segment : plan.segments_) {
      for (const auto& part : segment.parts) on_host = on_host || part.homes.state_on_host;
    }
    if (!on_host) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "a home puts the optimizer's state on the host, which updates it there; muon multiplies "
        "matrices, which takes the device. Use another `optimizer_type`, or leave `host` out.");
  }

  // Gradients are given up behind the update, or behind weights that come after it: a rank that
  // updates nothing, and gets its weights in the next iteration, knows no such time.
  absl::Status CheckFreed(const HomePlan& plan) const {
    const bool sums_norm = profile_.update.finds_norm() || options_.pp > 1;
    const bool in_next = options_.overlap.count(Overlap::kParam) > 0;
    bool elsewhere = false, here = false;
    for (size_t s = 0; s < plan.segments_.size(); ++s) {
      const int body = bound_.places[s].alike;
      if (!bound_.Holds(body)) continue;
      plan.ForEachPart({static_cast<int>(s), body}, bodies_[body]->state,
                       [&](const HomePart& part) {
                         if (part.state->parameters > 0)
                           (part.homes.elsewhere() ? elsewhere : here) = true;
                       });
    }
    if (here || !elsewhere || !profile_.update.fresh_gradients || sums_norm || !in_next) {
      return absl::OkStatus();
    }
    return absl::UnimplementedError(
        "not supported yet: overlap=param where a rank has nothing to update, for all homes are on "
        "others. Leave `overlap=param` out, or give each rank the state of some nodes.");
  }

  // Both users of a tied weight keep it in one place.
  absl::Status CheckTied(const HomePlan& plan) const {
    for (const TiedParameter& tie : bound_.graph.tied) {
      const auto& first = plan.segments_[tie.first_segment].parts;
      const auto& second = plan.segments_[tie.second_segment].parts;
      if (first.size() == 1 && second.size() == 1 && first[0].homes == second[0].homes) {
        if (!first[0].homes.over.has_value()) continue;
        return absl::UnimplementedError(absl::StrCat(
            "not supported yet: `", bound_.graph.segments[tie.first_segment].path, "` and `",
            bound_.graph.segments[tie.second_segment].path,
            "` share a weight whose home is over other axes than `dp`, on one rank, or whole on ",
            "the host. "
            "Write `shard(dp)` or `shard(dp)+host` for both."));
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "`", bound_.graph.segments[tie.first_segment].path, "` and `",
          bound_.graph.segments[tie.second_segment].path,
          "` share a weight, and nodes give it two homes (", Words(mesh_, first[0].homes), "; ",
          Words(mesh_, second[0].homes), "). Say one home for all of both modules."));
    }
    return absl::OkStatus();
  }

  const BoundModel& bound_;
  const DeviceMesh& mesh_;
  const PlanOptions& options_;
  const SoftwareProfile& profile_;
  const std::vector<std::shared_ptr<const CompiledBody>>& bodies_;
  const Place& place_;
  HomeReach reach_;
};

absl::StatusOr<std::shared_ptr<const HomePlan>> HomePlan::Create(
    const BoundModel& bound, const DeviceMesh& mesh, const StrategyTree& tree,
    const PlanOptions& options, const SoftwareProfile& profile,
    const std::vector<std::shared_ptr<const CompiledBody>>& bodies, const Place& place) {
  const bool said = std::any_of(bound.bodies.begin(), bound.bodies.end(),
                                [](const BoundBody& body) { return !body.homes.empty(); });
  if (!said) return std::shared_ptr<const HomePlan>();
  return HomePlanMaker(bound, mesh, tree, options, profile, bodies, place).Make();
}

}  // namespace plancast
