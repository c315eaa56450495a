#include "compiler/lower/op_memory.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/body/partition.h"
#include "graph/model/trained.h"

namespace plancast {
namespace {

using ExtraTensor = SoftwareProfile::ExtraTensor;
using OpMemory = SoftwareProfile::OpMemory;

const OpMemory* MemoryOf(const SoftwareProfile& profile, const OpNode& node) {
  const auto& known = profile.tensors.op_memory;
  const size_t dot = node.name.rfind('.');
  auto found = known.find(dot == std::string::npos ? node.name : node.name.substr(dot + 1));
  if (found == known.end()) found = known.find(node.rule->name());
  return found == known.end() ? nullptr : &found->second;
}

const OpMemory* MemoryOf(const LowerContext& context, int op) {
  return MemoryOf(*context.profile, context.body().ops[op]);
}

// Per op: a gradient comes to its results; else autograd keeps nothing for it. Of bodies that are
// trained in whole: all of them.
std::vector<bool> OpsWithGradients(const Body& body) {
  std::vector<bool> ops(body.ops.size(), true);
  if (!TrainsInPart(body)) return ops;
  const std::vector<bool> has = HasGradients(body);
  for (size_t o = 0; o < ops.size(); ++o) {
    ops[o] = std::any_of(body.ops[o].outputs.begin(), body.ops[o].outputs.end(),
                         [&](int t) { return has[t]; });
  }
  return ops;
}

// Whether ops of the rule read what has been gathered over tensor parallelism.
bool IsGathered(const LowerContext& context, const OpRule& rule) {
  if (context.profile->kernels.whole_rules.count(rule.name()) == 0) return false;
  const std::vector<int> axes = context.mesh->AxesOf("tp");
  return std::any_of(axes.begin(), axes.end(), [&](int a) { return context.mesh->size(a) > 1; });
}

// Of the op's factors, the one that runs over a dim of the model; -1: none does.
int FactorOver(const LowerContext& context, const OpNode& node, absl::string_view name) {
  const auto dim = context.graph->FindDim(name);
  if (!dim.ok()) return -1;
  const auto found = std::find(node.factor_dims.begin(), node.factor_dims.end(), *dim);
  return found == node.factor_dims.end() ? -1 : static_cast<int>(found - node.factor_dims.begin());
}

// On one device; 0 where the tensor is not of the rule, or a view of another one.
int64_t BytesOf(const LowerContext& context, int op, const ExtraTensor& extra) {
  const OpNode& node = context.body().ops[op];
  const OpRule& rule = *node.rule;
  const auto like = rule.FindTensor(extra.like);
  if (!like.ok() || (extra.gathered && !IsGathered(context, rule))) return 0;
  const std::vector<int64_t> extents =
      LocalExtents(*context.graph, *context.mesh, node, context.bound->splits[op], rule);
  const int moved = extra.transposes.empty() ? -1 : FactorOver(context, node, extra.transposes);
  if (moved >= 0 && extents[moved] == 1) return 0;
  if (!extra.cut.empty()) {
    const int cut = FactorOver(context, node, extra.cut);
    if (cut < 0 || extents[cut] >= context.graph->dims[node.factor_dims[cut]].size) return 0;
  }
  double elements = 1;
  for (int f : rule.tensors()[*like].factors) elements *= static_cast<double>(extents[f]);
  for (const std::string& dim : extra.over) {
    const int f = FactorOver(context, node, dim);
    if (f >= 0) elements *= static_cast<double>(extents[f]);
  }
  const double each =
      extra.element_bytes > 0 ? extra.element_bytes : context.Bytes(rule.tensors()[*like].dtype);
  return static_cast<int64_t>(std::ceil(elements * each));
}

// Events of one block.
class Events {
 public:
  Events(const LowerContext& context, const std::string& path, BlockBuilder* builder)
      : context_(context), path_(path), builder_(*builder) {}

  // Alive from before task `first` (-1: it was before) to after task `last` (-1: it stays).
  void Add(int op, const std::vector<ExtraTensor>& tensors, MemoryKind kind, int first, int last) {
    const bool ahead = std::any_of(tensors.begin(), tensors.end(),
                                   [](const ExtraTensor& extra) { return extra.early; });
    for (const ExtraTensor& extra : tensors) {
      const int64_t bytes = extra.shared ? 0 : BytesOf(context_, op, extra);
      if (bytes == 0) continue;
      const std::string name = absl::StrCat(context_.body().ops[op].name, "/", extra.name);
      const uint16_t tensor = builder_.AddTensor(NameIn(path_, name));
      if (first >= 0) builder_.AddMemory(first, false, kind, tensor, bytes, ahead);
      if (last < 0) continue;
      if (extra.early) {
        builder_.AddMemory(first, false, kind, tensor, -bytes, /*early=*/true);
      } else {
        builder_.AddMemory(last, true, kind, tensor, -bytes);
      }
    }
  }

 private:
  const LowerContext& context_;
  const std::string& path_;
  BlockBuilder& builder_;
};

// The ops, piece by piece, that one half of a backward pass runs again or makes gradients of.
struct OpsOfHalf {
  using Ops = std::set<std::pair<int, int>>;
  explicit OpsOfHalf(const std::vector<PlanStep>* half) {
    if (half == nullptr) return;
    for (const PlanStep& step : *half) {
      if (step.kind != PlanStep::Kind::kOp) continue;
      (step.part == Part::kRecompute ? again : gradients).emplace(step.op.op, step.piece);
    }
  }

  Ops again, gradients;
};

// Inputs of a backward step as its forward rule calls them.
bool Drops(const OpMemory* memory, const PlanStep& step, size_t input) {
  if (memory == nullptr || input >= step.op.rule->inputs().size()) return false;
  return memory->not_saved.count(step.op.rule->tensors()[step.op.rule->inputs()[input]].name) > 0;
}

}  // namespace

void AddOpMemory(const LowerContext& context, const PhaseSteps& phase,
                 const std::vector<StepTasks>& tasks, const std::string& path,
                 BlockBuilder* builder) {
  if (context.profile->tensors.op_memory.empty() || builder->size() == 0) return;
  const std::vector<PlanStep>& steps = phase.own;
  const OpsOfHalf before(phase.before), behind(phase.behind);
  const int ops = static_cast<int>(context.body().ops.size());
  int pieces = 1;
  for (const PlanStep& step : steps) pieces = std::max(pieces, step.piece + 2);
  // Of each op, piece by piece.
  const size_t count = static_cast<size_t>(ops) * pieces;
  std::vector<StepTasks> forward(count), gradients(count);
  std::vector<int> input_gradient(count, -1);  // its step
  for (size_t s = 0; s < steps.size(); ++s) {
    if (steps[s].kind != PlanStep::Kind::kOp || tasks[s].last < 0) continue;
    const int op = steps[s].op.op * pieces + steps[s].piece + 1;
    const Part part = steps[s].part;
    if (part == Part::kForward || part == Part::kRecompute) {
      forward[op] = tasks[s];
      continue;
    }
    if (gradients[op].last < 0 || part == Part::kBackward) {
      input_gradient[op] = static_cast<int>(s);
    }
    gradients[op].last = std::max(gradients[op].last, tasks[s].last);
  }
  const std::vector<bool> keeps = OpsWithGradients(context.body());
  Events events(context, path, builder);
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const int op = i / pieces;
    const OpMemory* memory = MemoryOf(context, op);
    if (memory == nullptr) continue;
    const bool again = static_cast<bool>(context.bound->replays[op]);
    const std::pair<int, int> piece(op, i % pieces - 1);
    const bool ends = phase.backward && behind.gradients.count(piece) == 0;
    const StepTasks &ahead = forward[i], &back = gradients[i];
    if (ahead.last >= 0 && !keeps[op]) {
      events.Add(op, memory->forward, MemoryKind::kWorkspace, ahead.first, ahead.last);
    } else if (ahead.last >= 0) {
      const int until = !phase.backward && again ? ahead.last : ends ? back.last : -1;
      events.Add(op, memory->saved, MemoryKind::kActivations, ahead.first, until);
      events.Add(op, memory->forward, MemoryKind::kWorkspace, ahead.first, ahead.last);
    } else if (ends && (!again || before.again.count(piece) > 0) && back.last >= 0) {
      events.Add(op, memory->saved, MemoryKind::kActivations, -1, back.last);
    }
    if (input_gradient[i] >= 0 && before.gradients.count(piece) == 0) {
      const StepTasks& step = tasks[input_gradient[i]];
      events.Add(op, memory->backward, MemoryKind::kWorkspace, step.first, step.last);
    }
  }
}

void DropBuffers(const LowerContext& context, const std::vector<PlanStep>& steps,
                 const Buffers& buffers, std::vector<int64_t>* kept_bytes) {
  if (context.profile->tensors.op_memory.empty()) return;
  std::vector<bool> dropped(kept_bytes->size(), false), read(kept_bytes->size(), false);
  const auto note = [&](std::vector<bool>* how, int value) {
    if (value >= 0 && buffers.of_value[value] >= 0) (*how)[buffers.of_value[value]] = true;
  };
  for (const PlanStep& step : steps) {
    const bool gradient = step.kind == PlanStep::Kind::kOp && step.part != Part::kRecompute;
    const OpMemory* memory = gradient ? MemoryOf(context, step.op.op) : nullptr;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      note(Drops(memory, step, i) ? &dropped : &read, step.inputs[i]);
    }
    for (int value : step.extra_reads) note(&read, value);
  }
  for (size_t b = 0; b < kept_bytes->size(); ++b) {
    if (dropped[b] && !read[b]) (*kept_bytes)[b] = 0;
  }
}

std::vector<int> WithHeldInputs(const LowerContext& context, const BodyPlan& plan,
                                std::vector<int> saved) {
  if (context.profile->tensors.op_memory.empty()) return saved;
  const std::vector<bool> keeps = OpsWithGradients(context.body());
  for (const PlanStep& step : plan.forward) {
    if (step.kind != PlanStep::Kind::kOp || step.part != Part::kForward) continue;
    const OpMemory* memory = keeps[step.op.op] ? MemoryOf(context, step.op.op) : nullptr;
    if (memory == nullptr || memory->pinned_inputs.empty()) continue;
    const OpRule& rule = *step.op.rule;
    for (size_t i = 0; i < step.inputs.size() && i < rule.inputs().size(); ++i) {
      const bool held = memory->pinned_inputs.count(rule.tensors()[rule.inputs()[i]].name) > 0;
      if (held && step.inputs[i] >= 0) saved.push_back(step.inputs[i]);
    }
  }
  return saved;
}

HeldMemory HeldBy(const LowerContext& context, const Place& place) {
  HeldMemory held;
  std::set<absl::string_view> met;  // the ops of joined layers have one name
  for (size_t op = 0; op < context.body().ops.size(); ++op) {
    const OpMemory* memory = MemoryOf(context, static_cast<int>(op));
    if (memory == nullptr || !place.Runs(context.bound->OnOf(static_cast<int>(op)))) continue;
    const bool again = !met.insert(context.body().ops[op].name).second;
    for (const ExtraTensor& extra : memory->persistent) {
      if (extra.shared && again) continue;
      (extra.shared ? held.shared : held.each) += BytesOf(context, static_cast<int>(op), extra);
    }
  }
  return held;
}

std::string NameIn(const std::string& path, absl::string_view name) {
  const bool grad = absl::ConsumePrefix(&name, "d ");
  return absl::StrCat(grad ? "d " : "", path, ".", name);
}

}  // namespace plancast
