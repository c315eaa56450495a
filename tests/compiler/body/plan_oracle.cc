#include "tests/compiler/body/plan_oracle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/body/partition.h"
#include "graph/layout/redistribution.h"
#include "graph/layout/relayout.h"
#include "tests/graph/evaluator.h"
#include "tests/graph/relayout_simulator.h"
#include "tests/graph/split_simulator.h"

namespace plancast {
namespace {

bool TakesExponentials(const OpRule& rule) {
  bool found = false;
  for (const Statement& statement : rule.statements()) {
    VisitExpr(statement.value, [&found](const Expr& e) {
      found |= e.kind() == ExprKind::kFunction && e.function() == Function::kExp;
    });
  }
  return found;
}

void Add(const Array<Field>& from, Array<Field>* to) {
  for (size_t e = 0; e < to->values.size(); ++e) to->values[e] = to->values[e] + from.values[e];
}

// Calls `visit(flat)` for the elements that a device holds.
template <typename Visit>
void ForEachHeld(const DeviceMesh& mesh, const std::vector<int64_t>& shape, const Layout& layout,
                 int device, Visit visit) {
  if (!layout.IsOn(mesh, device)) return;
  ForEachIndex(shape, LocalIndices(mesh, shape, layout, device),
               [&](const std::vector<int64_t>&, int64_t flat) { visit(flat); });
}

}  // namespace

UndividedBody::UndividedBody(const ModelGraph& graph, const BoundBody& bound, const BodyPlan& plan,
                             uint64_t seed)
    : graph_(graph), body_(graph.bodies[bound.body]), seed_(seed) {
  for (const int value : plan.grad_in_ports) {
    if (value >= 0) Of(plan.values[value].ref);
  }
  for (const std::vector<PlanStep>* steps : {&plan.forward, &plan.backward}) {
    for (const PlanStep& step : *steps) {
      if (step.kind == PlanStep::Kind::kOp) Run(step.op);
    }
  }
}

const Array<Field>& UndividedBody::Of(const TensorRef& ref) {
  const auto known = tensors_.find(ref);
  return known != tensors_.end() ? known->second : tensors_.emplace(ref, Draw(ref)).first->second;
}

Array<Field> UndividedBody::Draw(const TensorRef& ref) const {
  const TensorFacts facts = FactsOf(graph_, body_, ref);
  Array<Field> array = Array<Field>::Empty(facts.shape);
  for (size_t e = 0; e < array.values.size(); ++e) {
    const uint64_t hash = Mix(Mix(seed_ ^ MixName(facts.name)) + e);
    // Data are indices of dims that have four elements at least.
    array.values[e] = facts.dtype == DType::kInt64 ? Field(static_cast<int64_t>(hash % 4))
                                                   : Field(static_cast<int64_t>(hash % 997));
    array.present[e] = true;
  }
  return array;
}

Field UndividedBody::AsRead(const OpStep& step, size_t input, Field value) {
  const RuleTensor& tensor = step.rule->tensors()[step.rule->inputs()[input]];
  const bool data = tensor.dtype == DType::kInt64 || step.inputs[input].op >= 0;
  if (data || !TakesExponentials(*step.rule)) return value;
  return Field(static_cast<int64_t>(Mix(value.bits()) % 7) - 3);
}

void UndividedBody::Run(const OpStep& step) {
  std::vector<Array<Field>> inputs;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    inputs.push_back(Of(step.inputs[i]));
    for (Field& value : inputs.back().values) value = AsRead(step, i, value);
  }
  const std::vector<Array<Field>> all =
      EvaluateWhole(*step.rule, FactorExtents(graph_, body_.ops[step.op], *step.rule), inputs);
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const Array<Field>& made = all[step.rule->outputs()[i]];
    const auto [at, first] = tensors_.emplace(step.outputs[i], made);
    if (!first) Add(made, &at->second);  // another reader's part of a gradient
  }
  for (const TensorRef& ref : step.side_outputs) tensors_[ref] = all[ref.tensor];
}

PlanOracle::PlanOracle(const ModelGraph& graph, const DeviceMesh& mesh, const BoundBody& bound,
                       const BodyPlan& plan, uint64_t seed)
    : graph_(graph),
      mesh_(mesh),
      bound_(bound),
      plan_(plan),
      undivided_(graph, bound, plan, seed),
      values_(plan.values.size()),
      from_outside_(plan.values.size(), false) {
  for (const std::vector<int>* ports : {&plan.in_ports, &plan.grad_in_ports}) {
    for (const int value : *ports) {
      if (value >= 0) from_outside_[value] = true;
    }
  }
}

std::string PlanOracle::Check() {
  for (const bool backward : {false, true}) {
    const std::string wrong = Run(backward ? plan_.backward : plan_.forward, backward);
    if (!wrong.empty()) return wrong;
    for (const int value : backward ? plan_.grad_out_ports : plan_.out_ports) {
      // Of a port that nobody here adds to the neighbour gets zeros.
      if (value < 0 || (backward && values_[value].empty())) continue;
      const std::string difference = Compare(value);
      if (!difference.empty()) return absl::StrCat("at a port: ", difference);
    }
    if (backward) continue;
    // What is not kept is not there behind the forward pass.
    for (size_t v = 0; v < values_.size(); ++v) {
      const TensorInfo::Kind kind =
          FactsOf(graph_, graph_.bodies[bound_.body], plan_.values[v].ref).kind;
      const bool kept = std::find(plan_.saved.begin(), plan_.saved.end(), static_cast<int>(v)) !=
                        plan_.saved.end();
      if (!kept && kind != TensorInfo::Kind::kParameter && !plan_.puts_off) {
        values_[v].clear();
        const auto grads = plan_.grad_in_ports;
        from_outside_[v] =
            std::find(grads.begin(), grads.end(), static_cast<int>(v)) != grads.end();
      }
    }
  }
  return CompareParameterGradients();
}

std::string PlanOracle::Run(const std::vector<PlanStep>& steps, bool backward) {
  for (const PlanStep& step : steps) {
    std::string wrong = step.kind == PlanStep::Kind::kRelayout ? RunRelayout(step)
                        : step.kind == PlanStep::Kind::kAdd    ? RunAdd(step)
                        : step.loop >= 0                       ? RunLoop(step)
                                                               : RunOp(step);
    for (const int value : step.outputs) {
      const bool total = !plan_.values[value].ref.grad;
      if (wrong.empty() && total) wrong = Compare(value);
    }
    if (wrong.empty()) continue;
    const std::string name = step.kind == PlanStep::Kind::kOp
                                 ? graph_.bodies[bound_.body].ops[step.op.op].name
                                 : NameOf(step.outputs[0]);
    return absl::StrCat(backward ? "backward" : "forward", " step of `", name, "`: ", wrong);
  }
  return "";
}

std::pair<FactorSplit, OpPartition> PlanOracle::SplitOf(const OpStep& step) const {
  const OpNode& op = graph_.bodies[bound_.body].ops[step.op];
  FactorSplit split = SplitFor(*step.rule, op, bound_.splits[step.op]);
  const auto partition =
      PartitionOp(*step.rule, split, mesh_, FactorExtents(graph_, op, *step.rule));
  const int made = step.rule->outputs()[0];
  const Layout& layout = step.partition.tensors[made];
  Layout own = layout;  // as the op's split says
  if (partition.ok()) own = partition->tensors[made];
  for (const auto& [axis, rank] : bound_.OnOf(step.op)) own.placements[axis] = Placement::On(rank);
  const bool summed = layout.has_partial() && layout != own;
  if (summed) {  // it runs over what its summands are cut over
    split = FactorSplit::None(*step.rule);
    for (int a = 0; a < mesh_.num_axes(); ++a) {
      const Placement& placement = layout.placements[a];
      if (!placement.is_shard()) continue;
      split.axes[step.rule->tensors()[made].factors[placement.dim]].push_back(a);
    }
  }
  return {std::move(split), step.partition};
}

std::string PlanOracle::RunOp(const PlanStep& step) {
  const OpRule& rule = *step.op.rule;
  const Body& body = graph_.bodies[bound_.body];
  const auto [split, partition] = SplitOf(step.op);
  const std::vector<int64_t> extents = FactorExtents(graph_, body.ops[step.op.op], rule);
  std::vector<Evaluator<Field>> devices;
  std::vector<bool> runs;
  for (int d = 0; d < mesh_.num_devices(); ++d) {
    devices.emplace_back(rule, extents);
    const OnRanksOf& on = bound_.OnOf(step.op.op);
    runs.push_back(std::all_of(on.begin(), on.end(), [&](const auto& ranks) {
      return mesh_.Coordinate(d, ranks.first) == ranks.second;
    }));
  }
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const Layout& layout = partition.tensors[rule.inputs()[i]];
    const int value = step.inputs[i];
    // Model inputs, gradients of the loss, and what a fused kernel makes again are as they must be.
    const Devices made = value < 0 ? Laid(undivided_.Of(step.op.inputs[i]), layout) : Devices();
    const Devices* held = &made;
    if (value >= 0) {
      const auto found = Held(value);
      if (!found.ok()) return std::string(found.status().message());
      if (plan_.values[value].layout != layout) {
        return absl::StrCat("it reads ", NameOf(value), " in ", layout.DebugString(mesh_));
      }
      held = *found;
    }
    for (int d = 0; d < mesh_.num_devices(); ++d) {
      Array<Field> array = (*held)[d];
      for (Field& symbol : array.values) symbol = UndividedBody::AsRead(step.op, i, symbol);
      devices[d].array(rule.inputs()[i]) = std::move(array);
    }
  }
  for (const int value : step.extra_reads) {
    if (const auto found = Held(value); !found.ok()) return std::string(found.status().message());
  }
  SplitSimulator<Field> simulator(rule, mesh_, split, extents);
  const std::string wrong = simulator.Run(partition, runs, &devices);
  if (!wrong.empty()) return wrong;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const int tensor = i < rule.outputs().size()
                           ? rule.outputs()[i]
                           : step.op.side_outputs[i - rule.outputs().size()].tensor;
    Devices made;
    for (int d = 0; d < mesh_.num_devices(); ++d) {
      Array<Field> array = devices[d].array(tensor);
      std::vector<bool> kept(array.present.size(), false);
      ForEachHeld(mesh_, array.shape, partition.tensors[tensor], d,
                  [&](int64_t e) { kept[e] = array.present[e]; });
      array.present = std::move(kept);
      made.push_back(std::move(array));
    }
    values_[step.outputs[i]] = std::move(made);
  }
  return "";
}

std::string PlanOracle::RunLoop(const PlanStep& step) {
  const OpRule& rule = *step.op.rule;
  const CommLoop& loop = plan_.loops[step.loop];
  const OpNode& op = graph_.bodies[bound_.body].ops[step.op.op];
  const std::vector<int64_t> extents = FactorExtents(graph_, op, rule);
  std::vector<MeshAxis> axes = mesh_.axes();
  axes.push_back({"part", loop.pieces});
  const auto steps = DeviceMesh::Create(axes);
  FactorSplit split = SplitFor(rule, op, bound_.splits[step.op.op]);
  split.axes[loop.factor].push_back(mesh_.num_axes());
  if (split.patterns.empty()) split.patterns.resize(split.axes.size());
  split.patterns[loop.factor] = loop.pattern;
  const auto partition = PartitionOp(rule, split, *steps, extents);
  if (!partition.ok()) return std::string(partition.status().message());
  const auto pieces = static_cast<int>(loop.pieces);
  std::vector<Evaluator<Field>> devices;
  for (int d = 0; d < steps->num_devices(); ++d) devices.emplace_back(rule, extents);
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const int tensor = rule.inputs()[i], value = step.inputs[i];
    const Devices made =
        value < 0 ? Laid(undivided_.Of(step.op.inputs[i]), step.op.partition.tensors[tensor])
                  : Devices();
    const Devices* held = &made;
    if (value >= 0) {
      const auto found = Held(value);
      if (!found.ok()) return std::string(found.status().message());
      held = *found;
    }
    for (int d = 0; d < steps->num_devices(); ++d) {
      const Array<Field>& whole = (*held)[d / pieces];
      Array<Field>& part = devices[d].array(tensor);
      std::string missing;
      ForEachHeld(*steps, whole.shape, partition->tensors[tensor], d, [&](int64_t e) {
        if (!whole.present[e]) missing = "a part is not there";
        part.values[e] = UndividedBody::AsRead(step.op, i, whole.values[e]);
        part.present[e] = true;
      });
      if (!missing.empty()) return missing;
    }
  }
  SplitSimulator<Field> simulator(rule, *steps, split, extents);
  const std::string wrong =
      simulator.Run(*partition, std::vector<bool>(devices.size(), true), &devices);
  if (!wrong.empty()) return wrong;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const int tensor = i < rule.outputs().size()
                           ? rule.outputs()[i]
                           : step.op.side_outputs[i - rule.outputs().size()].tensor;
    const bool summed = partition->tensors[tensor].placements.back().is_partial();
    Devices made;
    for (int d = 0; d < mesh_.num_devices(); ++d) {
      Array<Field> all = Array<Field>::Empty(devices[0].array(tensor).shape);
      for (int s = d * pieces; s < (d + 1) * pieces; ++s) {
        const Array<Field>& part = devices[s].array(tensor);
        ForEachHeld(*steps, all.shape, partition->tensors[tensor], s, [&](int64_t e) {
          if (!part.present[e]) return;
          const bool adds = summed && all.present[e];
          all.values[e] = adds ? all.values[e] + part.values[e] : part.values[e];
          all.present[e] = true;
        });
      }
      made.push_back(std::move(all));
    }
    values_[step.outputs[i]] = std::move(made);
  }
  return "";
}

std::string PlanOracle::RunRelayout(const PlanStep& step) {
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    const auto held = Held(step.inputs[k]);
    if (!held.ok()) return std::string(held.status().message());
    const Value &from = plan_.values[step.inputs[k]], &to = plan_.values[step.outputs[k]];
    const auto own = PlanRelayout(mesh_, (**held)[0].shape, from.layout, to.layout);
    if (!own.ok()) return std::string(own.status().message());
    const Relayout& relayout = k == 0 ? step.relayout : *own;
    if (relayout.source != from.layout || relayout.target != to.layout) return "another relayout";
    RelayoutSimulator simulator(mesh_, **held);
    Layout at = relayout.source;
    for (const RelayoutStep& move : relayout.steps) {
      const std::string wrong = simulator.Execute(at, move);
      if (!wrong.empty()) return wrong;
      at = move.after;
    }
    values_[step.outputs[k]] = simulator.devices();
  }
  return "";
}

std::string PlanOracle::RunAdd(const PlanStep& step) {
  Devices sum;
  for (const int value : step.inputs) {
    const auto held = Held(value);
    if (!held.ok()) return std::string(held.status().message());
    if (sum.empty()) {
      sum = **held;
      continue;
    }
    for (int d = 0; d < mesh_.num_devices(); ++d) {
      if ((**held)[d].present != sum[d].present) return "it adds unlike parts";
      Add((**held)[d], &sum[d]);
    }
  }
  values_[step.outputs[0]] = std::move(sum);
  return "";
}

PlanOracle::Devices PlanOracle::Laid(const Array<Field>& whole, const Layout& layout) const {
  Devices devices(mesh_.num_devices(), Array<Field>::Empty(whole.shape));
  for (int d = 0; d < mesh_.num_devices(); ++d) {
    ForEachHeld(mesh_, whole.shape, layout, d, [&](int64_t e) {
      devices[d].values[e] = whole.values[e];
      devices[d].present[e] = true;
    });
  }
  return devices;
}

absl::StatusOr<const PlanOracle::Devices*> PlanOracle::Held(int value) {
  Devices& held = values_[value];
  if (!held.empty()) return &held;
  const Value& asked = plan_.values[value];
  const Body& body = graph_.bodies[bound_.body];
  const bool parameter =
      !asked.ref.grad && FactsOf(graph_, body, asked.ref).kind == TensorInfo::Kind::kParameter;
  if (!parameter && !from_outside_[value]) {
    return absl::InternalError(absl::StrCat("it reads ", NameOf(value), ", which is not there"));
  }
  if (asked.layout.has_partial()) {
    return absl::InternalError(absl::StrCat(NameOf(value), " comes in partial"));
  }
  held = Laid(undivided_.Of(asked.ref), asked.layout);
  return &held;
}

std::string PlanOracle::Assemble(int value, Array<Field>* whole) {
  const auto found = Held(value);
  if (!found.ok()) return std::string(found.status().message());
  Devices devices = **found;
  const Layout& layout = plan_.values[value].layout;
  for (int a = 0; a < mesh_.num_axes(); ++a) {
    if (!layout.placements[a].is_partial()) continue;
    for (const std::vector<int>& group : GroupsAlong(mesh_, {a})) {
      std::vector<Array<Field>*> arrays;
      for (const int d : group) arrays.push_back(&devices[d]);
      if (!ReduceArrays(arrays, layout.placements[a].reduction)) return "uneven partial parts";
    }
  }
  *whole = Array<Field>::Empty(devices[0].shape);
  for (int d = 0; d < mesh_.num_devices(); ++d) {
    std::vector<bool> expected(whole->values.size(), false);
    bool alike = true;
    ForEachHeld(mesh_, whole->shape, layout, d, [&](int64_t e) {
      expected[e] = true;
      alike &= !whole->present[e] || whole->values[e] == devices[d].values[e];
      whole->values[e] = devices[d].values[e];
      whole->present[e] = true;
    });
    if (!alike) return absl::StrCat("copies of ", NameOf(value), " are unlike");
    if (devices[d].present != expected) {
      return absl::StrCat("device ", d, " does not hold what it says of ", NameOf(value));
    }
  }
  const bool all =
      std::find(whole->present.begin(), whole->present.end(), false) == whole->present.end();
  return all ? "" : absl::StrCat("a part of ", NameOf(value), " is nowhere");
}

std::string PlanOracle::Compare(int value) {
  Array<Field> whole;
  const std::string wrong = Assemble(value, &whole);
  if (!wrong.empty()) return wrong;
  return whole.values == undivided_.Of(plan_.values[value].ref).values
             ? ""
             : absl::StrCat(NameOf(value), " differs from the undivided body's");
}

std::string PlanOracle::CompareParameterGradients() {
  absl::flat_hash_map<TensorRef, Array<Field>> sums;
  const Body& body = graph_.bodies[bound_.body];
  for (const PlanStep& step : plan_.backward) {
    if (step.kind != PlanStep::Kind::kOp) continue;
    for (const int value : step.outputs) {
      const TensorRef& ref = plan_.values[value].ref;
      if (!ref.grad || body.tensors[ref.tensor].kind != TensorInfo::Kind::kParameter) continue;
      Array<Field> whole;
      const std::string wrong = Assemble(value, &whole);
      if (!wrong.empty()) return wrong;
      const auto [at, first] = sums.emplace(ref, whole);
      if (!first) Add(whole, &at->second);
    }
  }
  for (const auto& [ref, sum] : sums) {
    if (sum.values == undivided_.Of(ref).values) continue;
    return absl::StrCat("`", FactsOf(graph_, body, ref).name,
                        "` differs from the undivided body's");
  }
  return "";
}

std::string PlanOracle::NameOf(int value) const {
  const Value& asked = plan_.values[value];
  return absl::StrCat("`", FactsOf(graph_, graph_.bodies[bound_.body], asked.ref).name, "` ",
                      asked.layout.DebugString(mesh_));
}

}  // namespace plancast
