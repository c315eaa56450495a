#include "compiler/body/differentiate.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/model/trained.h"
#include "graph/split/op_split.h"
#include "graph/split/rule_part.h"

namespace plancast {
namespace {

// A profile lists this fusion if the kernel that makes an input gradient also
// reduces the gradients of gamma, beta or bias; else that is another pass.
constexpr char kParameterGradients[] = "parameter_gradients";

absl::StatusOr<OpRulePtr> Derived(const OpRule& rule, const std::vector<std::string>& wrt,
                                  Session& session) {
  return session.Memo<OpRule>(
      absl::StrCat("derived|", absl::StrJoin(wrt, ","), "|", rule.DebugString()),
      [&] { return Differentiate(rule, wrt); });
}

// Element-by-element without fresh randomness: a fused kernel can redo it.
bool IsPointwise(const OpRule& rule) {
  for (const Statement& statement : rule.statements()) {
    if (statement.combine != Combine::kAssign) return false;
    bool random = false;
    VisitExpr(statement.value,
              [&random](const Expr& e) { random |= e.kind() == ExprKind::kRandom; });
    if (random) return false;
  }
  return true;
}

// Walks one body. Members are the state of the walk.
class BodyWalk {
 public:
  BodyWalk(const ModelGraph& graph, const BoundBody& bound, const std::set<std::string>& fusions,
           ReplayPolicy policy, Session& session)
      : body_(graph.bodies[bound.body]),
        replays_(bound.replays),
        policy_(policy),
        fusions_(fusions),
        session_(session),
        producer_(body_.tensors.size(), -1),
        fused_run_(body_.ops.size(), -1) {}

  absl::StatusOr<DifferentiatedBody> Run() {
    FindProducersAndRuns();
    FindWhatNeedsGradients();
    for (size_t o = 0; o < body_.ops.size(); ++o) {
      result_.forward.push_back(ForwardStep(static_cast<int>(o)));
    }
    for (int o = static_cast<int>(body_.ops.size()) - 1; o >= 0; --o) {
      RETURN_IF_ERROR(AddBackward(o)) << body_.name << "." << body_.ops[o].name;
    }
    RETURN_IF_ERROR(PlaceReplays());
    AttachSideOutputs();
    return std::move(result_);
  }

 private:
  void FindProducersAndRuns() {
    int run = -1;
    for (size_t o = 0; o < body_.ops.size(); ++o) {
      for (int t : body_.ops[o].outputs) producer_[t] = static_cast<int>(o);
      const std::string& label = body_.ops[o].fusion;
      if (label.empty() || fusions_.count(label) == 0) continue;
      if (o == 0 || body_.ops[o - 1].fusion != label) ++run;
      fused_run_[o] = run;
    }
  }

  void FindWhatNeedsGradients() {
    trains_in_part_ = TrainsInPart(body_);
    needs_grad_ = HasGradients(body_);
    has_grad_.assign(body_.tensors.size(), false);
    for (size_t p = 0; p < body_.out_ports.size(); ++p) {
      if (!body_.OutDetached(p)) has_grad_[body_.out_ports[p]] = true;
    }
  }

  // Names of the op's inputs that want a gradient. A kernel that fuses several statements
  // makes those of all its activations where it makes one.
  std::vector<std::string> Wrt(const OpNode& op, bool parameters) const {
    std::vector<std::string> names;
    bool any = false;
    const std::vector<std::string> differentiable = DifferentiableInputs(*op.rule);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const std::string& name = op.rule->tensors()[op.rule->inputs()[i]].name;
      const bool is_parameter = body_.tensors[op.inputs[i]].kind == TensorInfo::Kind::kParameter;
      const bool needed = needs_grad_[op.inputs[i]];
      const bool beside = trains_in_part_ && !op.rule->fused().empty() &&
                          body_.tensors[op.inputs[i]].kind == TensorInfo::Kind::kActivation;
      if (is_parameter != parameters || !(needed || beside)) continue;
      if (std::find(differentiable.begin(), differentiable.end(), name) != differentiable.end()) {
        names.push_back(name);
        any = any || needed;
      }
    }
    if (!any) names.clear();
    return names;
  }

  OpStep ForwardStep(int o) const {
    const OpNode& op = body_.ops[o];
    OpStep step;
    step.op = o;
    step.rule = op.rule;
    for (int t : op.inputs) step.inputs.push_back({t, -1, false, false});
    for (int t : op.outputs) step.outputs.push_back({t, -1, false, false});
    return step;
  }

  // The op once more, or what of it makes the results that were given up.
  absl::StatusOr<OpStep> ReplayStep(int o) const {
    const OpNode& op = body_.ops[o];
    OpStep step;
    step.op = o;
    step.part = Part::kRecompute;
    step.rule = op.rule;
    std::vector<int> made;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      if (!replays_[o].Keeps(i)) made.push_back(static_cast<int>(i));
    }
    if (made.size() < op.outputs.size() && !HasSideOutputs(o)) {
      ASSIGN_OR_RETURN(step.rule,
                       session_.Memo<OpRule>(absl::StrCat("part|", absl::StrJoin(made, ","), "|",
                                                          op.rule->DebugString()),
                                             [&] { return PartOf(*op.rule, made); }));
    }
    for (int index : step.rule->inputs()) {
      const int position = PositionOf(op, step.rule->tensors()[index].name);
      step.inputs.push_back(Activation(op.inputs[position], o));
    }
    if (step.rule == op.rule) {
      for (int t : op.outputs) step.outputs.push_back({t, -1, false, true});
    } else {
      for (int i : made) step.outputs.push_back({op.outputs[i], -1, false, true});
    }
    return step;
  }

  bool HasSideOutputs(int o) const {
    return std::any_of(side_outputs_.begin(), side_outputs_.end(),
                       [o](const TensorRef& ref) { return ref.op == o; });
  }

  // Whether the result, given up in the forward phase, is made again.
  bool MadeAgain(int t) const {
    const int p = producer_[t];
    if (p < 0 || !replays_[p]) return false;
    const std::vector<int>& outputs = body_.ops[p].outputs;
    return !replays_[p].Keeps(std::find(outputs.begin(), outputs.end(), t) - outputs.begin());
  }

  // A tensor as the backward phase reads it for op `reader`: inside a group of ops that
  // run again, the result made again, and outside where the group gives up its results.
  TensorRef Activation(int t, int reader) const {
    const int p = producer_[t];
    const bool again = MadeAgain(t) && (replays_[p].discards || Group(p) == Group(reader));
    return {t, -1, false, again};
  }

  int Group(int o) const { return replays_[o].group; }

  // Puts the ops that run again before the first step that is theirs or reads them.
  absl::Status PlaceReplays() {
    const int ops = static_cast<int>(body_.ops.size());
    const absl::flat_hash_set<int> needed =
        policy_.only_needed ? NeededAgain() : absl::flat_hash_set<int>();
    const auto replay_for = [&](const OpStep& step) -> absl::Status {
      for (const std::vector<TensorRef>* refs : {&step.inputs, &step.rebuilt_from}) {
        for (const TensorRef& ref : *refs) RETURN_IF_ERROR(ReplayFor(ref, needed));
      }
      return absl::OkStatus();
    };
    for (size_t s = 0; s < backward_.size(); ++s) {
      OpStep& step = backward_[s];
      if (replays_[step.op]) {
        RETURN_IF_ERROR(Replay(Group(step.op), ops, needed));
      }
      RETURN_IF_ERROR(replay_for(step));
      // One node of a framework's graph: what its gradient of weights reads is there first, too.
      if (s + 1 < backward_.size() && backward_[s + 1].op == step.op) {
        RETURN_IF_ERROR(replay_for(backward_[s + 1]));
      }
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const bool rebuilt = std::find(step.rebuilt.begin(), step.rebuilt.end(),
                                       static_cast<int>(i)) != step.rebuilt.end();
        if (!rebuilt) NoteSaved(step.inputs[i]);
      }
      for (const TensorRef& ref : step.rebuilt_from) NoteSaved(ref);
      result_.backward.push_back(std::move(step));
    }
    for (int o = 0; o < ops && policy_.keeps_unread && !backward_.empty(); ++o) {
      for (size_t i = 0; i < body_.ops[o].outputs.size(); ++i) {
        if (replays_[o].Keeps(i)) NoteSaved({body_.ops[o].outputs[i], -1, false, false});
      }
    }
    return absl::OkStatus();
  }

  int ProducerOf(const TensorRef& ref) const {
    return ref.op >= 0 ? ref.op : producer_[ref.tensor];
  }

  absl::Status ReplayFor(const TensorRef& ref, const absl::flat_hash_set<int>& needed) {
    if (ref.grad || !ref.recomputed) return absl::OkStatus();
    const int p = ProducerOf(ref);
    return replayed_.contains(p) ? absl::OkStatus() : Replay(Group(p), p + 1, needed);
  }

  // Runs the ops of a group before `end` again, each behind what it reads.
  absl::Status Replay(int group, int end, const absl::flat_hash_set<int>& needed) {
    for (int o = 0; o < end; ++o) {
      if (Group(o) != group || replayed_.contains(o)) continue;
      if (policy_.only_needed && !needed.contains(o)) continue;
      ASSIGN_OR_RETURN(OpStep step, ReplayStep(o));
      replayed_.insert(o);
      for (const TensorRef& ref : step.inputs) RETURN_IF_ERROR(ReplayFor(ref, needed));
      for (const TensorRef& ref : step.inputs) NoteSaved(ref);
      result_.backward.push_back(std::move(step));
    }
    return absl::OkStatus();
  }

  // The ops whose results, made again, are read in the end by a gradient.
  absl::flat_hash_set<int> NeededAgain() const {
    absl::flat_hash_set<int> needed;
    const auto want = [&](const TensorRef& ref) {
      if (!ref.grad && ref.recomputed) needed.insert(ProducerOf(ref));
    };
    for (const OpStep& step : backward_) {
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const bool rebuilt = std::find(step.rebuilt.begin(), step.rebuilt.end(),
                                       static_cast<int>(i)) != step.rebuilt.end();
        if (!rebuilt) want(step.inputs[i]);
      }
      for (const TensorRef& ref : step.rebuilt_from) want(ref);
    }
    for (int o = static_cast<int>(body_.ops.size()) - 1; o >= 0; --o) {
      if (!needed.contains(o)) continue;
      for (int t : body_.ops[o].inputs) want(Activation(t, o));
    }
    return needed;
  }

  void NoteSaved(const TensorRef& ref) {
    if (ref.grad || ref.recomputed) return;
    if (ref.op < 0 && body_.tensors[ref.tensor].kind != TensorInfo::Kind::kActivation) return;
    if (saved_.insert(ref).second) result_.saved.push_back(ref);
  }

  absl::Status AddBackward(int o) {
    const OpNode& op = body_.ops[o];
    const std::vector<std::string> activations = Wrt(op, false);
    const std::vector<std::string> parameters = Wrt(op, true);
    // What is one kernel forward is one backward.
    if (!activations.empty() && !parameters.empty() && op.rule->fused().empty()) {
      ASSIGN_OR_RETURN(OpRulePtr weights, Derived(*op.rule, parameters, session_));
      if (HasContraction(*weights) || fusions_.count(kParameterGradients) == 0) {
        RETURN_IF_ERROR(AddDerived(o, activations, Part::kBackward));
        return AddDerived(o, parameters, Part::kWeightGrad);
      }
    }
    std::vector<std::string> all = activations;
    all.insert(all.end(), parameters.begin(), parameters.end());
    if (all.empty()) return absl::OkStatus();
    return AddDerived(o, all, activations.empty() ? Part::kWeightGrad : Part::kBackward);
  }

  absl::Status AddDerived(int o, const std::vector<std::string>& wrt, Part part) {
    const OpNode& op = body_.ops[o];
    OpStep step;
    step.op = o;
    step.part = part;
    ASSIGN_OR_RETURN(step.rule, Derived(*op.rule, wrt, session_));
    for (int index : step.rule->inputs()) {
      RETURN_IF_ERROR(AddBackwardInput(o, step.rule->tensors()[index].name, &step));
    }
    for (const std::string& name : wrt) {
      const int t = op.inputs[PositionOf(op, name)];
      step.outputs.push_back({t, -1, true, false});
      has_grad_[t] = true;
    }
    backward_.push_back(std::move(step));
    return absl::OkStatus();
  }

  static int PositionOf(const OpNode& op, const std::string& input) {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.rule->tensors()[op.rule->inputs()[i]].name == input) return static_cast<int>(i);
    }
    return -1;
  }

  absl::Status AddBackwardInput(int o, const std::string& name, OpStep* step) {
    const OpNode& op = body_.ops[o];
    const int position = static_cast<int>(step->inputs.size());
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      if (name != absl::StrCat("d_", op.rule->tensors()[op.rule->outputs()[i]].name)) continue;
      if (!has_grad_[op.outputs[i]]) step->seeds.push_back(position);
      step->inputs.push_back({op.outputs[i], -1, true, false});
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const int index, op.rule->FindTensor(name));
    const RuleTensor& tensor = op.rule->tensors()[index];
    TensorRef ref;
    if (tensor.role == RuleTensor::Role::kIntermediate) {
      ref = {index, o, false, static_cast<bool>(replays_[o])};
      side_outputs_.insert(ref);
    } else if (tensor.role == RuleTensor::Role::kOutput) {
      const auto& outputs = op.rule->outputs();
      const int i =
          static_cast<int>(std::find(outputs.begin(), outputs.end(), index) - outputs.begin());
      ref = Activation(op.outputs[i], o);
    } else {
      ref = Activation(op.inputs[PositionOf(op, name)], o);
    }
    step->inputs.push_back(ref);
    if (ref.op < 0 && Rebuild(o, ref, step)) step->rebuilt.push_back(position);
    return absl::OkStatus();
  }

  // If the fused kernel of `o` also computes `ref` element by element, notes
  // what it reads to do so again.
  bool Rebuild(int o, const TensorRef& ref, OpStep* step) {
    const int p = producer_[ref.tensor];
    if (p < 0 || p >= o || fused_run_[o] < 0 || fused_run_[p] != fused_run_[o] ||
        !IsPointwise(*body_.ops[p].rule)) {
      return false;
    }
    for (int t : body_.ops[p].inputs) {
      const TensorRef input = Activation(t, p);
      if (!Rebuild(p, input, step)) step->rebuilt_from.push_back(input);
    }
    return true;
  }

  void AttachSideOutputs() {
    auto attach = [this](OpStep& step) {
      const OpNode& op = body_.ops[step.op];
      for (size_t t = 0; t < op.rule->tensors().size(); ++t) {
        const TensorRef ref{static_cast<int>(t), step.op, false, step.part == Part::kRecompute};
        if (side_outputs_.contains(ref)) step.side_outputs.push_back(ref);
      }
    };
    for (OpStep& step : result_.forward) attach(step);
    for (OpStep& step : result_.backward) {
      if (step.part == Part::kRecompute) attach(step);
    }
  }

  const Body& body_;
  const std::vector<OpReplay>& replays_;
  const ReplayPolicy policy_;
  const std::set<std::string>& fusions_;
  Session& session_;
  std::vector<int> producer_;   // op that writes a tensor, or -1
  std::vector<int> fused_run_;  // which run of fused ops an op is in, or -1
  bool trains_in_part_ = false;
  std::vector<bool> needs_grad_, has_grad_;
  std::vector<OpStep> backward_;  // without what runs again
  absl::flat_hash_set<int> replayed_;
  absl::flat_hash_set<TensorRef> saved_, side_outputs_;
  DifferentiatedBody result_;
};

}  // namespace

absl::StatusOr<DifferentiatedBody> DifferentiateBody(const ModelGraph& graph,
                                                     const BoundBody& bound,
                                                     const std::set<std::string>& fusions,
                                                     Session& session, ReplayPolicy policy) {
  return BodyWalk(graph, bound, fusions, policy, session).Run();
}

}  // namespace plancast
