#include "planner/plan_gradients.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "executor/jobs/execute_jobs.h"
#include "graph/dtype.h"
#include "planner/forecast/plan_graph.h"
#include "planner/predict_jobs.h"

namespace plancast {
namespace {

// An op of a layer: its body, the layer's number, and which of the segments with that body.
using Place = std::tuple<std::string, int32_t, int64_t, std::string>;

// Elements of the parameters that each op of a body is the first to read.
std::map<std::string, std::map<std::string, int64_t>> ParametersByOp(const ModelGraph& graph) {
  std::map<std::string, std::map<std::string, int64_t>> ops;
  for (size_t b = 0; b < graph.bodies.size(); ++b) {
    const Body& body = graph.bodies[b];
    std::vector<bool> counted(body.tensors.size(), false);
    for (const OpNode& op : body.ops) {
      for (const int input : op.inputs) {
        const TensorInfo& tensor = body.tensors[input];
        if (tensor.kind != TensorInfo::Kind::kParameter || tensor.frozen || tensor.sparse ||
            counted[input]) {
          continue;
        }
        counted[input] = true;
        ops[body.name][op.name] += graph.Elements(tensor);
      }
    }
  }
  return ops;
}

// Of what is tied, the second user's, which the first one's holds.
int64_t TiedElements(const ModelGraph& graph, const std::string& body, const std::string& op) {
  int64_t elements = 0;
  for (const TiedParameter& tied : graph.tied) {
    const Body& second = graph.bodies[graph.segments[tied.second_segment].body];
    if (second.name != body) continue;
    for (const OpNode& node : second.ops) {
      const bool reads = std::find(node.inputs.begin(), node.inputs.end(), tied.second_tensor) !=
                         node.inputs.end();
      if (reads && node.name == op) elements += graph.Elements(second.tensors[tied.second_tensor]);
    }
  }
  return elements;
}

// What makes the gradients of an op's parameters: the last of these tasks in a block.
bool MakesGradientOf(const std::string& label, const std::string& op) {
  return label == absl::StrCat(op, ".bwd") || label == absl::StrCat(op, ".wgrad") ||
         label == absl::StrCat(op, ".accumulate");
}

// Goes over the slices of one device in turn and gives the time since the last border to the
// unit that ends there.
class Reader {
 public:
  Reader(const ExecutionGraph& graph, const ModelGraph& model)
      : graph_(graph), model_(model), ops_(ParametersByOp(model)) {}

  absl::StatusOr<PlanGradients> Read(const SimResult& result, double wire_bytes) {
    PlanGradients plan;
    std::vector<const Slice*> slices;
    for (const Slice& slice : result.slices) {
      if (graph_.blocks[slice.block].kind[slice.task] == TaskKind::kComm) {
        return absl::InvalidArgumentError(
            "a worker communicates in its own passes, so its gradients are not all that it sends. "
            "Queues of gradients are those of plans of dp alone.");
      }
      if (slice.stream == StreamKind::kCompute) slices.push_back(&slice);
    }
    for (const Slice* slice : slices) {
      const bool passes = slice->purpose == Purpose::kForward ||
                          slice->purpose == Purpose::kBackward ||
                          slice->purpose == Purpose::kRecompute;
      if (!passes) continue;
      if (at_ < 0) plan.fixed_ps = at_ = slice->start_ps;
      if ((slice->purpose == Purpose::kForward) != forward_) Turn();
      plan.passes = std::max<int64_t>(plan.passes, slice->micro_batch + 1);
      Take(*slice);
    }
    if (at_ < 0) return absl::InvalidArgumentError("the plan computes nothing");
    if (!forward_) Turn();
    Finish(&plan, wire_bytes, result.makespan_ps - at_);
    const int64_t missing = model_.TrainedParameterCount() - elements_;
    if (units_.empty() || missing != 0) {
      return absl::UnimplementedError(absl::StrCat(
          "not supported yet: queues of gradients of a plan in which ops are rewritten (of ",
          model_.TrainedParameterCount(), " parameters ", elements_, " were found)."));
    }
    return plan;
  }

 private:
  struct Unit {
    Place place;
    int64_t forward_ps = 0, backward_ps = 0, elements = 0, order = 0;
  };

  // From a forward to a backward pass, or back: what is left of it is the last unit's.
  void Turn() {
    if (last_ >= 0) {
      (forward_ ? units_[last_].forward_ps : units_[last_].backward_ps) += until_ - at_;
    }
    at_ = std::max(at_, until_);
    last_ = -1;
    forward_ = !forward_;
    seen_.clear();
  }

  void Take(const Slice& slice) {
    until_ = slice.end_ps;
    const Block& block = graph_.blocks[slice.block];
    const std::string body(absl::StripSuffix(absl::StripSuffix(block.name, ".F"), ".B"));
    const auto ops = ops_.find(body);
    if (ops == ops_.end() || slice.purpose == Purpose::kRecompute) return;
    for (const auto& [op, elements] : ops->second) {
      const bool ends = slice.task == LastOf(slice.block, body, op);
      if (!ends) continue;
      int64_t& times = seen_[{body, slice.layer, op}];
      End({body, slice.layer, forward_ ? times : -1 - times, op}, elements);
      ++times;
    }
  }

  int32_t LastOf(int32_t block, const std::string& body, const std::string& op) {
    const auto [known, added] = last_task_.try_emplace({block, op}, -1);
    if (!added) return known->second;
    const int32_t last = TaskOf(block, op);
    // A bias that the product before it adds has no task of its own forward.
    return known->second = forward_ && last < 0 ? TaskBefore(block, body, op) : last;
  }

  int32_t TaskOf(int32_t block, const std::string& op) const {
    const std::vector<std::string>& labels = graph_.blocks[block].label;
    int32_t last = -1;
    for (size_t t = 0; t < labels.size(); ++t) {
      const bool ends = forward_ ? labels[t] == op : MakesGradientOf(labels[t], op);
      if (ends) last = static_cast<int32_t>(t);
    }
    return last;
  }

  // That of the nearest op before it which has one.
  int32_t TaskBefore(int32_t block, const std::string& body, const std::string& op) const {
    int32_t last = -1;
    for (const Body& known : model_.bodies) {
      if (known.name != body) continue;
      for (const OpNode& node : known.ops) {
        if (node.name == op) return last;
        const int32_t task = TaskOf(block, node.name);
        if (task >= 0) last = task;
      }
    }
    return -1;
  }

  // Segments with one body come the other way round in backward passes.
  void End(Place place, int64_t elements) {
    if (forward_) {
      const auto [known, added] = unit_of_.try_emplace(place, static_cast<int32_t>(units_.size()));
      if (added) {
        units_.push_back({place, 0, 0, elements});
        ++repeats_[{std::get<0>(place), std::get<1>(place), std::get<3>(place)}];
      }
      last_ = known->second;
      units_[last_].forward_ps += until_ - at_;
    } else {
      int64_t& nth = std::get<2>(place);
      nth += repeats_[{std::get<0>(place), std::get<1>(place), std::get<3>(place)}];
      const auto known = unit_of_.find(place);
      if (known == unit_of_.end()) return;
      last_ = known->second;
      units_[last_].backward_ps += until_ - at_;
      units_[last_].order = --order_;
    }
    at_ = until_;
  }

  // Units in the order in which their gradients are made, the other way round.
  void Finish(PlanGradients* plan, double wire_bytes, int64_t update_ps) {
    std::stable_sort(units_.begin(), units_.end(),
                     [](const Unit& a, const Unit& b) { return a.order < b.order; });
    for (const Unit& unit : units_) {
      const auto& [body, layer, nth, op] = unit.place;
      const int64_t elements = unit.elements - TiedElements(model_, body, op);
      elements_ += elements;
      GradientUnit& made = plan->units.emplace_back();
      made.name = repeats_of_body_[body]++ > 0 || layer > 0
                      ? absl::StrCat(body, ".", layer, ".", op)
                      : absl::StrCat(body, ".", op);
      made.forward_ps = unit.forward_ps / plan->passes;
      made.backward_ps = unit.backward_ps / plan->passes;
      made.bytes = static_cast<int64_t>(static_cast<double>(elements) * wire_bytes);
    }
    int64_t before = 0, given = 0;
    for (GradientUnit& unit : plan->units) {
      before += unit.bytes;
      const double share = static_cast<double>(before) /
                           (static_cast<double>(std::max<int64_t>(elements_, 1)) * wire_bytes);
      const auto until = static_cast<int64_t>(static_cast<double>(update_ps) * share);
      unit.update_ps = std::clamp<int64_t>(until, given, update_ps) - given;
      given += unit.update_ps;
    }
  }

  const ExecutionGraph& graph_;
  const ModelGraph& model_;
  const std::map<std::string, std::map<std::string, int64_t>> ops_;
  std::map<std::pair<int32_t, std::string>, int32_t> last_task_;
  std::vector<Unit> units_;
  std::map<Place, int32_t> unit_of_;
  std::map<std::tuple<std::string, int32_t, std::string>, int64_t> seen_, repeats_;
  std::map<std::string, int64_t> repeats_of_body_;
  int64_t at_ = -1, until_ = 0, elements_ = 0, order_ = 0;
  int32_t last_ = -1;
  bool forward_ = true;
};

}  // namespace

absl::StatusOr<PlanGradients> GradientsOf(const Job& job, const Machine& machine,
                                          const Pricing& pricing, Session& session) {
  ASSIGN_OR_RETURN(const PlacedRequest one,
                   PlaceRequest({"worker", job, "devices 0"}, machine, pricing, session));
  ASSIGN_OR_RETURN(const PlanGraph plan, DrawAndCompile(job, one.size, session, &pricing));
  SimulateOptions options;
  options.timeline = true;
  ASSIGN_OR_RETURN(SimResult result,
                   ExecutePlaced(one.placed, machine, pricing.kernels(), options));
  DType wire = job.profile.For(job.dtype, Schedule::k1f1b).types.reduce_dtype;
  if (wire == DType::kCompute) wire = StorageType(job.dtype);
  ASSIGN_OR_RETURN(PlanGradients gradients,
                   Reader(*plan.execution, *plan.graph).Read(result, WireBytes(wire)));
  gradients.level = one.level;
  if (pricing.learned() != nullptr) {
    Uncertainty::Shipped().AddTo(job.profile, &result);
    gradients.level.log += pricing.learned()->Log(result);
  }
  return gradients;
}

}  // namespace plancast
