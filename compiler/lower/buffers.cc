#include "compiler/lower/buffers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/lower/kernels/loop_pieces.h"
#include "compiler/lower/kernels/product_bias.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

std::vector<int> GroupList(const LowerContext& context, const std::vector<PlanStep>& steps) {
  std::vector<int> groups(steps.size());
  int group = -1;
  auto label_of = [&](const PlanStep& step) -> std::string {
    if (step.kind != PlanStep::Kind::kOp) return "";
    const std::string& label = context.body().ops[step.op.op].fusion;
    return context.profile->kernels.fusions.count(label) > 0 ? label : "";
  };
  for (size_t s = 0; s < steps.size(); ++s) {
    const std::string label = label_of(steps[s]);
    const bool joins = s > 0 && !label.empty() && label == label_of(steps[s - 1]) &&
                       steps[s].part == steps[s - 1].part && steps[s].piece == steps[s - 1].piece &&
                       steps[s].loop < 0 && steps[s - 1].loop < 0 &&
                       steps[s].op.partition.reductions.empty() &&
                       steps[s - 1].op.partition.reductions.empty();
    const bool fused = s > 0 && steps[s].fused >= 0 && steps[s].fused == steps[s - 1].fused &&
                       steps[s].kind == PlanStep::Kind::kOp &&
                       steps[s - 1].kind == PlanStep::Kind::kOp;
    groups[s] = joins || fused ? group : ++group;
  }
  return groups;
}

// Whether a value, or what it is a piece of, leaves the module.
bool IsPort(const BodyPlan& plan, int value) {
  while (plan.values[value].part_of >= 0) value = plan.values[value].part_of;
  const auto has = [value](const std::vector<int>& ports) {
    return std::find(ports.begin(), ports.end(), value) != ports.end();
  };
  return has(plan.out_ports) || has(plan.grad_out_ports);
}

// Finds the value that output `i` of an op step only renames, or -1. (A part of a larger tensor
// leaves a module as a copy: who takes it would not know of the rest.)
int RenamedInput(const LowerContext& context, const BodyPlan& plan, const PlanStep& step,
                 size_t i) {
  const OpRule& rule = *step.op.rule;
  if (i >= rule.outputs().size()) return -1;
  if (AddedByProduct(context, step.op)) return step.inputs[0];
  for (const Statement& statement : rule.statements()) {
    if (statement.target != rule.outputs()[i] || !IsRenaming(rule, statement)) continue;
    const int source = statement.value.tensor();
    for (size_t j = 0; j < rule.inputs().size(); ++j) {
      if (rule.inputs()[j] != source) continue;
      const int from = step.inputs[j], to = step.outputs[i];
      if (from < 0) return -1;
      const double given = context.LocalBytes(plan.values[from]);
      const double made = context.LocalBytes(plan.values[to]);
      // Where a cut leaves elements far apart, each rank writes its own into a whole tensor.
      return made > given || (IsPort(plan, to) && made < given) ? -1 : from;
    }
  }
  return -1;
}

bool InPlace(const LowerContext& context, const PlanStep& step) {
  for (const RelayoutStep& r : step.relayout.steps) {
    const bool stays = r.kind == CollectiveKind::kAllReduce || r.kind == CollectiveKind::kReduce ||
                       r.kind == CollectiveKind::kBroadcast;
    if (r.is_collective && !stays) return false;
  }
  const int axes = context.mesh->num_axes();
  for (int a = 0; a < axes; ++a) {
    const Placement& from = step.relayout.source.placements[a];
    const Placement& to = step.relayout.target.placements[a];
    if (from.is_shard() != to.is_shard()) return false;
  }
  return true;
}

std::vector<int> RenamedRoots(const LowerContext& context, const BodyPlan& plan) {
  std::vector<int> root(plan.values.size());
  std::iota(root.begin(), root.end(), 0);
  for (size_t v = 0; v < root.size(); ++v) {  // of pieces the whole, which comes first
    if (plan.values[v].part_of >= 0) root[v] = root[plan.values[v].part_of];
  }
  for (const std::vector<PlanStep>* steps : {&plan.forward, &plan.backward}) {
    for (const PlanStep& step : *steps) {
      if (step.kind != PlanStep::Kind::kOp) continue;
      for (size_t i = 0; i < step.outputs.size(); ++i) {
        const int source = RenamedInput(context, plan, step, i);
        if (source >= 0) root[step.outputs[i]] = root[source];
      }
    }
  }
  return root;
}

std::vector<bool> RegisterValues(const BodyPlan& plan, const LaunchGroups& groups,
                                 const std::vector<int>& root) {
  const size_t values = plan.values.size();
  std::vector<bool> in_registers(values, false);
  auto scan = [&](const std::vector<PlanStep>& steps, const std::vector<int>& group) {
    std::vector<int> home(values, -1);
    for (size_t s = 0; s < steps.size(); ++s) {
      if (steps[s].kind != PlanStep::Kind::kOp) continue;
      for (int value : steps[s].outputs) {
        if (root[value] == value) home[value] = group[s];
      }
    }
    std::vector<bool> inside(values, false), elsewhere(values, false);
    for (size_t s = 0; s < steps.size(); ++s) {
      ForEachRead(steps[s], [&](int value) {
        (home[root[value]] == group[s] ? inside : elsewhere)[root[value]] = true;
      });
    }
    for (size_t v = 0; v < values; ++v) {
      if (home[v] >= 0 && inside[v] && !elsewhere[v]) in_registers[v] = true;
    }
  };
  scan(plan.forward, groups.forward);
  scan(plan.backward, groups.backward);
  for (const std::vector<int>* kept :
       {&plan.saved, &plan.in_ports, &plan.out_ports, &plan.grad_in_ports, &plan.grad_out_ports}) {
    for (int value : *kept) {
      if (value >= 0) in_registers[root[value]] = false;
    }
  }
  for (size_t v = 0; v < values; ++v) in_registers[v] = in_registers[root[v]];
  return in_registers;
}

// Per value, how much of it is there at once: of tensors that a loop takes in or gives away part by
// part the part at hand and the one on its way.
std::vector<double> SharesThere(const LowerContext& context, const BodyPlan& plan) {
  std::vector<double> shares(plan.values.size(), 1);
  for (const std::vector<PlanStep>* steps : {&plan.forward, &plan.backward}) {
    for (const PlanStep& step : *steps) {
      if (step.loop < 0 || step.kind != PlanStep::Kind::kRelayout) continue;
      const CommLoop& loop = plan.loops[step.loop];
      if (loop.in_parts || !loop.comes.whole() || !loop.leaves.whole()) continue;
      const double pieces = static_cast<double>(loop.pieces);
      const bool at_once =
          IsContextRing(context, loop) && context.profile->kernels.context_steps.gathers;
      shares[step.into_loop ? step.outputs[0] : step.inputs[0]] =
          step.into_loop && at_once ? 1.0 : std::min(1.0, 2 / pieces);
    }
  }
  return shares;
}

// Inputs of an op, by name, that software writes over with their gradients while it runs forward.
std::vector<absl::string_view> WrittenOver(const LowerContext& context, const OpNode& op) {
  const auto& known = context.profile->tensors.op_memory;
  const auto memory = known.find(op.rule->name());
  std::vector<absl::string_view> inputs;
  if (memory == known.end()) return inputs;
  for (const SoftwareProfile::ExtraTensor& extra : memory->second.saved) {
    if (extra.shared) inputs.push_back(extra.like);
  }
  return inputs;
}

// Per value the one in whose memory it lies, -1: it has its own.
std::vector<int> LieIn(const LowerContext& context, const BodyPlan& plan) {
  std::vector<int> in(plan.values.size(), -1);
  for (const PlanStep& step : plan.forward) {
    if (step.kind != PlanStep::Kind::kOp || step.part != Part::kForward) continue;
    const std::vector<absl::string_view> names =
        WrittenOver(context, context.body().ops[step.op.op]);
    const OpRule& rule = *step.op.rule;
    for (size_t i = 0; i < step.inputs.size() && i < rule.inputs().size(); ++i) {
      const RuleTensor& input = rule.tensors()[rule.inputs()[i]];
      const int value = step.inputs[i];
      if (value < 0 || std::find(names.begin(), names.end(), input.name) == names.end()) continue;
      // Who else reads it in backward would not find it.
      if (std::count(plan.saved.begin(), plan.saved.end(), value) > 0) continue;
      const int tensor = plan.values[value].ref.tensor;
      for (size_t v = 0; v < plan.values.size(); ++v) {
        const TensorRef& ref = plan.values[v].ref;
        const bool gradient = ref.op < 0 && ref.grad && ref.tensor == tensor;
        const bool inside =
            ref.op == step.op.op && rule.tensors()[ref.tensor].factors == input.factors;
        if (gradient || inside) in[v] = value;
      }
    }
  }
  return in;
}

// Gradients that software writes over the inputs that they are of (gradients_over_inputs), where
// none but the op reads these afterwards.
void LieInInputs(const LowerContext& context, const BodyPlan& plan, const std::vector<int>& root,
                 const std::vector<bool>& stays, std::vector<int>* in) {
  const auto& known = context.profile->tensors.op_memory;
  // Per root the last step that reads it, and the op of that.
  std::vector<int> last(plan.values.size(), -1);
  for (size_t s = 0; s < plan.backward.size(); ++s) {
    ForEachRead(plan.backward[s], [&](int value) { last[root[value]] = static_cast<int>(s); });
  }
  const auto is_of = [&](int step, int op) {
    return plan.backward[step].kind == PlanStep::Kind::kOp && plan.backward[step].op.op == op;
  };
  for (const PlanStep& step : plan.backward) {
    if (step.kind != PlanStep::Kind::kOp || step.op.part != Part::kBackward) continue;
    const auto memory = known.find(context.body().ops[step.op.op].rule->name());
    if (memory == known.end() || !memory->second.gradients_over_inputs) continue;
    for (const int output : step.outputs) {
      const TensorRef& gradient = plan.values[output].ref;
      if (!gradient.grad || gradient.op >= 0) continue;
      for (const int input : step.inputs) {
        if (input < 0) continue;
        const TensorRef& ref = plan.values[input].ref;
        const bool same = ref.op < 0 && !ref.grad && ref.tensor == gradient.tensor;
        const bool alone = !stays[root[input]] && !IsPort(plan, input) &&
                           is_of(last[root[input]], step.op.op) && root[output] == output;
        const bool fits =
            context.LocalBytes(plan.values[output]) == context.LocalBytes(plan.values[input]);
        if (same && alone && fits) (*in)[output] = input;
      }
    }
  }
}

}  // namespace

bool OnlyRenamed(const OpRule& rule, int tensor) {
  for (const Statement& statement : rule.statements()) {
    if (IsRenaming(rule, statement)) continue;
    const std::vector<int> read = TensorsOf(statement.value);
    if (std::find(read.begin(), read.end(), tensor) != read.end()) return false;
  }
  return true;
}

LaunchGroups GroupLaunches(const LowerContext& context, const BodyPlan& plan) {
  return {GroupList(context, plan.forward), GroupList(context, plan.backward)};
}

Buffers AssignBuffers(const LowerContext& context, const BodyPlan& plan, const LaunchGroups& groups,
                      const std::vector<int>& read_later) {
  const std::vector<int> root = RenamedRoots(context, plan);
  std::vector<bool> stays(plan.values.size(), false);  // per root
  for (const int value : read_later) stays[root[value]] = true;
  std::vector<int> parent(plan.values.size());
  std::iota(parent.begin(), parent.end(), 0);
  auto find = [&parent](int v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
  };
  for (size_t v = 0; v < parent.size(); ++v) {
    if (plan.values[v].part_of >= 0)
      parent[find(static_cast<int>(v))] = find(plan.values[v].part_of);
  }
  for (const std::vector<PlanStep>* steps : {&plan.forward, &plan.backward}) {
    for (const PlanStep& step : *steps) {
      if (step.kind == PlanStep::Kind::kAdd) {
        // Accumulated in place.
        if (!stays[root[step.inputs[0]]]) parent[find(step.outputs[0])] = find(step.inputs[0]);
      } else if (step.kind == PlanStep::Kind::kRelayout) {
        const bool over = InPlace(context, step) && !stays[root[step.inputs[0]]];
        if (over) parent[find(step.outputs[0])] = find(step.inputs[0]);
      } else {
        for (size_t i = 0; i < step.outputs.size(); ++i) {
          const int source = RenamedInput(context, plan, step, i);
          if (source >= 0) parent[find(step.outputs[i])] = find(source);
        }
      }
    }
  }
  std::vector<int> in = LieIn(context, plan);
  LieInInputs(context, plan, root, stays, &in);
  for (size_t v = 0; v < in.size(); ++v) {
    if (in[v] >= 0) parent[find(static_cast<int>(v))] = find(in[v]);
  }
  Buffers buffers;
  buffers.root = root;
  buffers.in_registers = RegisterValues(plan, groups, buffers.root);
  buffers.of_value.assign(plan.values.size(), -1);
  std::vector<int> buffer_of_root(plan.values.size(), -1);
  const std::vector<double> shares = SharesThere(context, plan);
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const Value& value = plan.values[v];
    const TensorFacts facts = FactsOf(*context.graph, context.body(), value.ref);
    if (facts.kind != TensorInfo::Kind::kActivation || buffers.in_registers[v]) continue;
    if (!plan.place.Holds(value.layout)) continue;
    const int root = find(static_cast<int>(v));
    if (buffer_of_root[root] < 0) {
      buffer_of_root[root] = static_cast<int>(buffers.bytes.size());
      buffers.bytes.push_back(0);
      buffers.name.push_back(facts.name);
    }
    buffers.of_value[v] = buffer_of_root[root];
    if (in[v] >= 0) continue;
    int64_t& bytes = buffers.bytes[buffer_of_root[root]];
    bytes = std::max(bytes, static_cast<int64_t>(std::ceil(context.LocalBytes(value) * shares[v])));
  }
  return buffers;
}

}  // namespace plancast
