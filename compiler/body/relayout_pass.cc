#include "compiler/body/relayout_pass.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compiler/body/relayout_rules.h"

namespace plancast {
namespace {

class LayoutWalk {
 public:
  LayoutWalk(const ModelGraph& graph, const DeviceMesh& mesh, const BoundBody& bound,
             const DifferentiatedBody& steps, const SoftwareProfile& profile, bool delays_experts)
      : graph_(graph),
        body_(graph.bodies[bound.body]),
        mesh_(mesh),
        bound_(bound),
        steps_(steps),
        profile_(profile),
        delays_experts_(delays_experts),
        experts_(mesh.AxesOf("ep")) {}

  absl::StatusOr<BodyPlan> Run(const std::vector<Layout>& in_ports,
                               const std::vector<Layout>& out_ports) {
    plan_.parameter_layouts.assign(body_.tensors.size(), Layout::Replicated(mesh_.num_axes()));
    seen_parameter_.assign(body_.tensors.size(), false);
    RETURN_IF_ERROR(Forward(in_ports, out_ports));
    KeepSaved();
    RETURN_IF_ERROR(Backward(in_ports, out_ports));
    return std::move(plan_);
  }

 private:
  int NewValue(const TensorRef& ref, const Layout& layout) {
    plan_.values.push_back({ref, layout});
    return static_cast<int>(plan_.values.size()) - 1;
  }

  int NewVersion(const TensorRef& ref, const Layout& layout) {
    const int value = NewValue(ref, layout);
    versions_[ref].push_back(value);
    return value;
  }

  TensorInfo::Kind KindOf(const TensorRef& ref) const {
    return ref.op < 0 ? body_.tensors[ref.tensor].kind : TensorInfo::Kind::kActivation;
  }

  // A value of `ref` in `layout`, relaid from another version if need be; -1
  // for model inputs, which every device can make for itself.
  absl::StatusOr<int> Get(const TensorRef& ref, const Layout& layout, Part part) {
    const TensorInfo::Kind kind = KindOf(ref);
    if (kind == TensorInfo::Kind::kInput) return -1;
    if (ref.grad) return GetGradient(ref, layout, part);
    if (kind == TensorInfo::Kind::kParameter && !seen_parameter_[ref.tensor]) {
      seen_parameter_[ref.tensor] = true;
      plan_.parameter_layouts[ref.tensor] = layout;
      return NewVersion(ref, layout);
    }
    const std::vector<int>& known = versions_[ref];
    PLANCAST_CHECK(!known.empty()) << FactsOf(graph_, body_, ref).name << " has no value";
    for (int value : known) {
      if (plan_.values[value].layout == layout && !IsGone(ref, value, part)) return value;
    }
    ASSIGN_OR_RETURN(const int value, Relay(known.front(), layout, part));
    versions_[ref].push_back(value);
    if (part == Part::kRecompute) gathered_again_.insert(value);
    return value;
  }

  absl::StatusOr<int> Relay(int source, const Layout& layout, Part part) {
    if (const Layout* parts = Between(plan_.values[source], layout)) {
      ASSIGN_OR_RETURN(source, RelayAtOnce(source, *parts, part));
    }
    return RelayAtOnce(source, layout, part);
  }

  // The parts that a sum is reduced to before they are gathered (BoundBody::in_two), or nullptr.
  const Layout* Between(const Value& sum, const Layout& whole) const {
    for (const auto& [tensor, parts] : bound_.in_two) {
      if (!(sum.ref == TensorRef{tensor, -1, false, sum.ref.recomputed})) continue;
      bool leads_there = parts != whole;
      for (size_t a = 0; a < parts.placements.size(); ++a) {
        const Placement &from = sum.layout.placements[a], &to = whole.placements[a];
        leads_there &= from == to || (from.is_partial() && to.is_replicate());
        leads_there &= from == parts.placements[a] || from.is_partial();
      }
      if (leads_there) return &parts;
    }
    return nullptr;
  }

  absl::StatusOr<int> RelayAtOnce(int source, const Layout& layout, Part part) {
    const TensorRef ref = plan_.values[source].ref;
    ASSIGN_OR_RETURN(
        Relayout relayout,
        PlanRelayout(mesh_, FactsOf(graph_, body_, ref).shape, plan_.values[source].layout, layout),
        _ << FactsOf(graph_, body_, ref).name);
    const size_t apart = bound_.loops.empty() ? 0 : BorderOfLoop(relayout);
    if (apart > 0) {
      Relayout first = relayout;
      first.steps.resize(apart);
      first.target = relayout.source = first.steps.back().after;
      relayout.steps.erase(relayout.steps.begin(),
                           relayout.steps.begin() + static_cast<std::ptrdiff_t>(apart));
      source = AddRelayout(source, std::move(first), part);
      // A version of its own, which may be kept; of a gradient it may be a part of the sum.
      if (!ref.grad) versions_[ref].push_back(source);
    }
    return AddRelayout(source, std::move(relayout), part);
  }

  int AddRelayout(int source, Relayout relayout, Part part) {
    PlanStep step;
    step.kind = PlanStep::Kind::kRelayout;
    step.part = part;
    step.inputs = {source};
    step.outputs = {NewValue(plan_.values[source].ref, relayout.target)};
    step.relayout = std::move(relayout);
    list_->push_back(std::move(step));
    return list_->back().outputs[0];
  }

  // The sum of all contributions to a gradient, in `layout`.
  absl::StatusOr<int> GetGradient(const TensorRef& ref, const Layout& layout, Part part) {
    std::vector<int>& parts = contributions_[ref.tensor];
    for (int value : versions_[ref]) {
      if (plan_.values[value].layout == layout) return value;
    }
    if (parts.empty()) {
      PLANCAST_CHECK(!versions_[ref].empty())
          << "no gradient of " << body_.tensors[ref.tensor].name;
      ASSIGN_OR_RETURN(const int value, Relay(versions_[ref].front(), layout, part));
      versions_[ref].push_back(value);
      return value;
    }
    // Equal layouts are summed before they are moved.
    std::vector<int> groups;
    for (int value : parts) {
      auto same = std::find_if(groups.begin(), groups.end(), [&](int other) {
        return plan_.values[other].layout == plan_.values[value].layout;
      });
      if (same == groups.end()) {
        groups.push_back(value);
      } else {
        *same = AddValues(*same, value, part);
      }
    }
    parts.clear();
    int total = -1;
    for (int value : groups) {
      int moved = value;
      if (plan_.values[value].layout != layout) {
        ASSIGN_OR_RETURN(moved, Relay(value, layout, part));
      }
      total = total < 0 ? moved : AddValues(total, moved, part);
    }
    versions_[ref].push_back(total);
    return total;
  }

  int AddValues(int a, int b, Part part) {
    PlanStep step;
    step.kind = PlanStep::Kind::kAdd;
    step.part = part;
    step.inputs = {a, b};
    const int sum = NewValue(plan_.values[a].ref, plan_.values[a].layout);
    step.outputs = {sum};
    list_->push_back(std::move(step));
    return sum;
  }

  // A sum of tensors that are partial alike (branches that are joined) is taken
  // first, so that one reduction serves them all.
  void SumBeforeReduction(OpStep* op) {
    if ((op->part != Part::kForward && op->part != Part::kRecompute) || !IsPlainSum(*op->rule)) {
      return;
    }
    const Layout* common = nullptr;
    for (size_t i = 0; i < op->inputs.size(); ++i) {
      const auto known = versions_.find(op->inputs[i]);
      if (known == versions_.end() || known->second.empty()) return;
      const Layout& layout = plan_.values[known->second.front()].layout;
      if (common == nullptr) common = &layout;
      if (layout != *common) return;
      for (int a = 0; a < mesh_.num_axes(); ++a) {
        if (!layout.placements[a].is_partial() &&
            layout.placements[a] != InputLayout(*op, i).placements[a]) {
          return;
        }
      }
    }
    if (common == nullptr || !common->has_partial()) return;
    const Layout layout = *common;
    for (Layout& tensor : op->partition.tensors) tensor = layout;
  }

  absl::StatusOr<PlanStep> Prepare(const OpStep& given) {
    PlanStep step;
    step.kind = PlanStep::Kind::kOp;
    step.part = given.part;
    step.op = given;
    SumBeforeReduction(&step.op);
    const OpStep& op = step.op;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const int index = static_cast<int>(i);
      const bool absent =
          std::find(op.seeds.begin(), op.seeds.end(), index) != op.seeds.end() ||
          std::find(op.rebuilt.begin(), op.rebuilt.end(), index) != op.rebuilt.end();
      int value = -1;
      if (!absent) {
        ASSIGN_OR_RETURN(value, Get(op.inputs[i], InputLayout(op, i), op.part));
      }
      step.inputs.push_back(value);
    }
    for (const TensorRef& ref : op.rebuilt_from) {
      const auto it = versions_.find(ref);
      if (it != versions_.end() && !it->second.empty()) {
        step.extra_reads.push_back(it->second.front());
      }
    }
    return step;
  }

  void Emit(PlanStep step) {
    const OpStep& op = step.op;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const Layout& layout = op.partition.tensors[op.rule->outputs()[i]];
      const TensorRef& ref = op.outputs[i];
      int value;
      if (!ref.grad) {
        value = NewVersion(ref, layout);
      } else {
        value = NewValue(ref, layout);
        if (KindOf(ref) == TensorInfo::Kind::kParameter) {
          plan_.parameter_grads.push_back({ref.tensor, layout});
        } else {
          contributions_[ref.tensor].push_back(value);
        }
      }
      step.outputs.push_back(value);
    }
    for (const TensorRef& ref : op.side_outputs) {
      step.outputs.push_back(NewVersion(ref, op.partition.tensors[ref.tensor]));
    }
    list_->push_back(std::move(step));
  }

  absl::Status Forward(const std::vector<Layout>& in_ports, const std::vector<Layout>& out_ports) {
    PLANCAST_CHECK(in_ports.size() == body_.in_ports.size() &&
                   out_ports.size() == body_.out_ports.size())
        << body_.name << " has other ports than layouts of them";
    list_ = &plan_.forward;
    for (size_t i = 0; i < body_.in_ports.size(); ++i) {
      plan_.in_ports.push_back(NewVersion({body_.in_ports[i], -1, false, false}, in_ports[i]));
    }
    for (const OpStep& op : steps_.forward) {
      ASSIGN_OR_RETURN(PlanStep step, Prepare(op));
      Emit(std::move(step));
    }
    for (size_t i = 0; i < body_.out_ports.size(); ++i) {
      ASSIGN_OR_RETURN(const int value,
                       Get({body_.out_ports[i], -1, false, false}, out_ports[i], Part::kForward));
      plan_.out_ports.push_back(value);
    }
    return absl::OkStatus();
  }

  // Chooses the version of each saved tensor that lives on, and forgets the
  // others.
  void KeepSaved() {
    absl::flat_hash_map<TensorRef, std::vector<int>> kept;
    for (auto& [ref, values] : versions_) {
      if (KindOf(ref) == TensorInfo::Kind::kParameter) kept[ref] = values;
    }
    for (const TensorRef& ref : steps_.saved) {
      const std::vector<int>& known = versions_[ref];
      PLANCAST_CHECK(!known.empty()) << FactsOf(graph_, body_, ref).name << " is not made";
      const int value = ChooseSaved(ref, known);
      kept[ref] = {value};
      plan_.saved.push_back(value);
      const int other = ReadAcrossContext(ref, known, value);
      if (other < 0) continue;
      kept[ref].push_back(other);
      plan_.saved.push_back(other);
    }
    versions_ = std::move(kept);
  }

  int ChooseSaved(const TensorRef& ref, const std::vector<int>& known) const {
    bool in_parts = false;
    const Layout* wanted = FirstReader(ref, &in_parts);
    in_parts =
        in_parts || (wanted != nullptr &&
                     GathersOver(mesh_.AxesOf("cp"), plan_.values[known.front()].layout, *wanted));
    if (!profile_.tensors.sp_saves_sharded && !in_parts) {
      for (int value : known) {
        if (wanted != nullptr && plan_.values[value].layout == *wanted) return value;
      }
    }
    const std::vector<int64_t> shape = FactsOf(graph_, body_, ref).shape;
    int best = known.front();
    // Of equally large versions the one that the backward phase reads; a halo is
    // kept rather than exchanged again, and so is a part that is cut along another
    // dim: only what a gather brings back is worth dropping.
    auto cost = [&](int value) {
      const Layout& layout = plan_.values[value].layout;
      return std::make_tuple(layout.has_partial(), wanted != nullptr && Crosses(layout, *wanted),
                             layout.WithoutHalos().LocalElements(mesh_, shape),
                             wanted == nullptr || layout != *wanted);
    };
    for (int value : known) {
      if (cost(value) < cost(best)) best = value;
    }
    return best;
  }

  // What was gathered to run a forward op again is gathered anew for its backward one: between
  // them lives what would live on from the forward pass.
  bool IsGone(const TensorRef& ref, int value, Part part) const {
    if (part == Part::kRecompute || !gathered_again_.contains(value)) return false;
    const Layout &kept = plan_.values[versions_.at(ref).front()].layout,
                 &whole = plan_.values[value].layout;
    return profile_.tensors.sp_saves_sharded ? Gathers(kept, whole)
                                             : GathersOver(mesh_.AxesOf("cp"), kept, whole);
  }

  // Attention keeps its results as heads are cut, beside those that the next op keeps as the
  // sequence is. -1: `kept` serves all who read it.
  int ReadAcrossContext(const TensorRef& ref, const std::vector<int>& known, int kept) const {
    const std::vector<int> axes = mesh_.AxesOf("cp");
    for (const OpStep& step : steps_.backward) {
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const Layout& wanted = InputLayout(step, i);
        if (!(step.inputs[i] == ref) || wanted == plan_.values[kept].layout) continue;
        for (const int value : known) {
          const bool crosses = std::any_of(axes.begin(), axes.end(), [&](int a) {
            const Placement& from = plan_.values[kept].layout.placements[a];
            const Placement& to = wanted.placements[a];
            return from.is_shard() && to.is_shard() && from.dim != to.dim;
          });
          if (crosses && plan_.values[value].layout == wanted) return value;
        }
      }
    }
    return -1;
  }

  // `in_parts`: it may take in what others have part by part.
  const Layout* FirstReader(const TensorRef& ref, bool* in_parts) const {
    for (const OpStep& step : steps_.backward) {
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        if (!(step.inputs[i] == ref)) continue;
        *in_parts = !bound_.loops.empty() && !bound_.loops[step.op].first.empty();
        return &InputLayout(step, i);
      }
    }
    return nullptr;
  }

  // Weight-gradient steps wait until the relayouts of the input gradient are
  // issued, so that these run alongside them.
  absl::Status Backward(const std::vector<Layout>& in_ports, const std::vector<Layout>& out_ports) {
    list_ = &plan_.backward;
    for (size_t i = 0; i < body_.out_ports.size(); ++i) {
      const TensorRef ref{body_.out_ports[i], -1, true, false};
      if (body_.OutDetached(i)) {
        plan_.grad_in_ports.push_back(-1);
        continue;
      }
      const int value = NewValue(ref, out_ports[i]);
      plan_.grad_in_ports.push_back(value);
      contributions_[ref.tensor].push_back(value);
    }
    std::vector<PlanStep> waiting;
    size_t relays_from = 0;
    auto flush = [&] {
      for (PlanStep& step : waiting) {
        if (!profile_.kernels.wgrad_overlaps_tp) step.after = LastRelayout(relays_from);
        Emit(std::move(step));
      }
      waiting.clear();
    };
    for (size_t i = 0; i < steps_.backward.size(); ++i) {
      const OpStep& op = steps_.backward[i];
      const int experts = LastOfExperts(waiting);
      if (experts >= 0) flush();
      const size_t relays = list_->size();
      ASSIGN_OR_RETURN(PlanStep step, Prepare(op));
      if (experts >= 0) {
        for (size_t s = relays; s < list_->size(); ++s) {
          if ((*list_)[s].kind == PlanStep::Kind::kRelayout) {
            (*list_)[s].after = static_cast<int>(relays) - 1 - experts;
          }
        }
      }
      flush();
      const bool has_weight_step = i + 1 < steps_.backward.size() && op.part == Part::kBackward &&
                                   steps_.backward[i + 1].part == Part::kWeightGrad &&
                                   steps_.backward[i + 1].op == op.op;
      if (has_weight_step) {
        ASSIGN_OR_RETURN(PlanStep weight, Prepare(steps_.backward[++i]));
        waiting.push_back(std::move(weight));
      }
      Emit(std::move(step));
      relays_from = list_->size();
    }
    for (size_t i = 0; i < body_.in_ports.size(); ++i) {
      const TensorRef ref{body_.in_ports[i], -1, true, false};
      if (body_.InDetached(i)) {
        plan_.grad_out_ports.push_back(-1);
        continue;
      }
      const bool made = !contributions_[ref.tensor].empty() || versions_.contains(ref);
      if (made) {
        ASSIGN_OR_RETURN(const int value, Get(ref, in_ports[i], Part::kBackward));
        plan_.grad_out_ports.push_back(value);
      } else {
        // Nothing here uses it; the neighbour, which adds to it, gets memory all the same.
        plan_.grad_out_ports.push_back(NewValue(ref, in_ports[i]));
      }
    }
    flush();
    return absl::OkStatus();
  }

  // Of steps that wait to be issued, how many come behind the last that makes gradients of weights
  // of which each rank has some experts; -1: none does, or they need not come first.
  int LastOfExperts(const std::vector<PlanStep>& waiting) const {
    if (delays_experts_ || experts_.empty()) return -1;
    for (size_t behind = 0; behind < waiting.size(); ++behind) {
      const PlanStep& step = waiting[waiting.size() - 1 - behind];
      if (MakesCutGradients(step, body_, experts_)) return static_cast<int>(behind);
    }
    return -1;
  }

  int LastRelayout(size_t from) const {
    for (size_t s = list_->size(); s > from; --s) {
      if ((*list_)[s - 1].kind == PlanStep::Kind::kRelayout) return static_cast<int>(s - 1);
    }
    return -1;
  }

  const ModelGraph& graph_;
  const Body& body_;
  const DeviceMesh& mesh_;
  const BoundBody& bound_;
  const DifferentiatedBody& steps_;
  const SoftwareProfile& profile_;
  const bool delays_experts_;
  const std::vector<int> experts_;  // axes over which ranks have experts of their own
  BodyPlan plan_;
  std::vector<PlanStep>* list_ = nullptr;
  std::vector<bool> seen_parameter_;
  absl::flat_hash_map<TensorRef, std::vector<int>> versions_;
  absl::flat_hash_map<int, std::vector<int>> contributions_;
  absl::flat_hash_set<int> gathered_again_;  // values made for ops that run again
};

}  // namespace

absl::StatusOr<BodyPlan> InsertRelayouts(const ModelGraph& graph, const DeviceMesh& mesh,
                                         const BoundBody& bound, const DifferentiatedBody& steps,
                                         const std::vector<Layout>& in_ports,
                                         const std::vector<Layout>& out_ports,
                                         const SoftwareProfile& profile, bool delays_experts) {
  return LayoutWalk(graph, mesh, bound, steps, profile, delays_experts).Run(in_ports, out_ports);
}

}  // namespace plancast
