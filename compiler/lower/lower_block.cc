#include "compiler/lower/lower_block.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/body/partition.h"
#include "compiler/body/split_backward.h"
#include "compiler/lower/buffer_lives.h"
#include "compiler/lower/buffers.h"
#include "compiler/lower/describe_loop.h"
#include "compiler/lower/fused_comms.h"
#include "compiler/lower/inner_reduction.h"
#include "compiler/lower/kernels/host_calls.h"
#include "compiler/lower/kernels/loop_pieces.h"
#include "compiler/lower/kernels/sum_fusion.h"
#include "compiler/lower/lower_relayout.h"
#include "compiler/lower/op_memory.h"
#include "compiler/lower/port_memory.h"
#include "compiler/lower/quantized.h"
#include "compiler/lower/rebuilt_weights.h"
#include "compiler/lower/sparse_update.h"

namespace plancast {
namespace {

// One phase of a body: steps, each in a group that is launched together, and the values that
// come in by ports; bytes of buffers that were kept for it, and that it keeps for later.
struct PassSteps {
  PhaseSteps steps;
  const std::vector<int>& groups;
  const std::vector<int>& in_ports;
  const std::vector<int64_t>&entered_bytes, &kept_bytes;
};

// Lowers one list of plan steps (one phase) to a block.
class PhaseLowering {
 public:
  PhaseLowering(const LowerContext& context, const BodyPlan& plan, const Buffers& buffers,
                const PassSteps& pass, const std::string& name, const std::string& path)
      : context_(context),
        plan_(plan),
        buffers_(buffers),
        pass_(pass),
        gathered_share_(GatheredShare(context)),
        sums_(SumFusionOf(context)),
        sum_read_bytes_(sums_ == SumFusion::kOwnType ? context.Bytes(DType::kCompute) : 0),
        steps_(pass.steps.own),
        groups_(pass.groups),
        backward_(pass.steps.backward),
        path_(path),
        in_ports_(pass.in_ports),
        builder_(name, static_cast<int>(pass.in_ports.size())),
        rebuilt_(context, plan, path_, &builder_),
        ready_(plan.values.size(), BlockBuilder::kNone),
        last_task_(pass.steps.own.size(), BlockBuilder::kNone),
        tasks_(pass.steps.own.size()),
        made_in_group_(plan.values.size(), -1),
        comes_quantized_(plan.values.size(), false),
        lives_(buffers.bytes.size()),
        tensors_(buffers.bytes.size(), -1) {
    for (size_t i = 0; i < in_ports_.size(); ++i) {
      if (in_ports_[i] >= 0) ready_[in_ports_[i]] = ~static_cast<int>(i);
    }
  }

  // `enters` and `stays`: values alive before and after the block.
  BlockTemplate Run(const std::vector<int>& enters, const std::vector<int>& stays,
                    const std::vector<int>& out_ports) {
    if (gathered_share_ != 1) {
      readers_ = ReadersOf(context_, plan_, backward_ ? plan_.backward : plan_.forward);
    }
    for (size_t s = 0; s < steps_.size();) {
      size_t end = s + 1;
      while (end < steps_.size() && groups_[end] == groups_[s]) ++end;
      const int first = builder_.size();
      if (steps_[s].kind == PlanStep::Kind::kRelayout) {
        LowerRelayout(steps_[s]);
      } else if (steps_[s].kind == PlanStep::Kind::kAdd) {
        LowerAdd(steps_[s]);
      } else if (!steps_[s].op.partition.reductions.empty()) {
        LowerInPieces(steps_[s]);
      } else {
        LowerLaunch(s, end);
      }
      NoteLives(s, end, first);
      s = end;
    }
    if (builder_.size() == 0) {
      CopyOut(out_ports, HandsOnOtherwise(buffers_, enters, stays, out_ports));
    }
    // On a rank that runs nothing of the module a task of no bytes gives up what it is handed, or
    // stands for what is handed on where nothing comes in: gradients that nobody needs.
    const bool begins = in_ports_.empty() && !out_ports.empty();
    const bool hands_on = plan_.puts_off && !backward_;  // keeps what it is handed for later
    if (builder_.size() == 0 &&
        (hands_on || (!plan_.place.empty() && (begins || EndsHere(buffers_, enters, stays))))) {
      builder_.AddKernel(MemoryKernel(context_, "release", 0, 0),
                         backward_ ? Purpose::kBackward : Purpose::kForward, "release", {});
    }
    const int last = builder_.size() > 0 ? builder_.size() - 1 : ~0;  // ~0: only hands on
    for (int value : out_ports) {
      const int ready = value < 0 ? BlockBuilder::kNone : ReadyAt(value);
      builder_.AddOutPort(ready == BlockBuilder::kNone ? last : ready);
    }
    if (builder_.size() > 0) {
      WriteLives({buffers_, pass_.entered_bytes, pass_.kept_bytes, path_},
                 {enters, stays, in_ports_, out_ports}, &lives_, &tensors_, &builder_);
    }
    AddOpMemory(context_, pass_.steps, tasks_, path_, &builder_);
    builder_.ReadSums(sum_read_bytes_);
    fused_.TellWork(context_, plan_, &builder_);
    return std::move(builder_).Build();
  }

  // What was gathered quantised in the half before is so in this one.
  void GoOnFrom(const PhaseLowering& before) { comes_quantized_ = before.comes_quantized_; }

  // Per buffer: its number among the tensors of the block, or -1. Of a block that was run.
  const std::vector<int>& tensors() const { return tensors_; }

 private:
  // A body that only renames model inputs still hands its neighbour a tensor; `all`: of what
  // enters too.
  void CopyOut(const std::vector<int>& out_ports, bool all) {
    for (int value : out_ports) {
      if (value < 0 || (ready_[value] != BlockBuilder::kNone && !all)) continue;
      const double bytes = LocalBytes(value);
      ready_[value] = builder_.AddKernel(MemoryKernel(context_, "copy", bytes, bytes),
                                         Purpose::kForward, "copy", {ready_[value]});
    }
  }

  std::vector<int> DepsOf(const PlanStep& step) const {
    std::vector<int> deps;
    ForEachRead(step, [&](int value) { fused_.Wait(step, value, ReadyAt(value), &deps); });
    if (step.after >= 0) deps.push_back(last_task_[step.after]);
    // Frameworks replay a module when its gradient has come.
    if (step.part == Part::kRecompute) {
      for (size_t i = 0; i < plan_.grad_in_ports.size(); ++i) deps.push_back(~static_cast<int>(i));
    }
    return deps;
  }

  // What a piece is of may be there when it is not made by itself.
  int ReadyAt(int value) const {
    while (ready_[value] == BlockBuilder::kNone && plan_.values[value].part_of >= 0) {
      value = plan_.values[value].part_of;
    }
    return ready_[value];
  }
  void SetReady(int value, int task) {
    for (; value >= 0; value = plan_.values[value].part_of) ready_[value] = task;
  }

  double LocalBytes(int value) const { return context_.LocalBytes(plan_.values[value]); }

  void LowerAdd(const PlanStep& step) {
    const double bytes = LocalBytes(step.outputs[0]);
    SetReady(step.outputs[0],
             builder_.AddKernel(MemoryKernel(context_, "grad_add", 2 * bytes, bytes),
                                PurposeOf(step.part), "grad_add", DepsOf(step)));
  }

  void LowerRelayout(const PlanStep& step) {
    const int to = step.outputs[0];
    const TensorFacts facts =
        FactsOf(*context_.graph, context_.body(), plan_.values[step.inputs[0]].ref);
    const bool quantized = gathered_share_ != 1 && facts.dtype == DType::kCompute &&
                           readers_.products[to] && !readers_.others[to];
    comes_quantized_[to] =
        quantized && std::any_of(step.relayout.steps.begin(), step.relayout.steps.end(),
                                 [](const RelayoutStep& r) {
                                   return r.is_collective && r.kind == CollectiveKind::kAllGather;
                                 });
    const int before = builder_.size();
    const std::vector<int> deps = DepsOf(step);
    const double share = quantized ? gathered_share_ : 1;
    PlanStep sent = step;
    const PlanStep* const half = FusedComms::OtherHalf(context_, plan_, steps_, step);
    if (half != nullptr) sent.relayout.steps[0].kind = CollectiveKind::kAllReduce;
    const bool gone = half != nullptr && half < &step;  // with the half before the ops
    const int ready = gone ? ready_[half->outputs[0]]
                           : AddRelayout(context_, plan_, sent, share, deps, &builder_);
    fused_.Note(step, deps, ready);
    if (step.loop >= 0) NoteLoop(step, before);
    for (const int value : step.outputs) SetReady(value, ready);
  }

  // A step with reductions inside: kernel, collective, kernel, ...
  void LowerInPieces(const PlanStep& step) {
    const OpRule& rule = *step.op.rule;
    const int statements = static_cast<int>(rule.statements().size());
    std::vector<int> deps = DepsOf(step);
    int begin = 0;
    size_t r = 0;
    const std::vector<InnerReduction>& reductions = step.op.partition.reductions;
    int ready = BlockBuilder::kNone;
    while (begin < statements || r < reductions.size()) {
      const int end = r < reductions.size() ? reductions[r].after + 1 : statements;
      // The ends of recurrences are found first; behind the exchange their parts are
      // walked again from the right states.
      const bool again =
          r < reductions.size() && reductions[r].combiner == InnerReduction::Combiner::kScan;
      if (end > begin) {
        read_in_group_.clear();  // each piece reads its operands anew
        KernelPart part = Whole(step, groups_[&step - steps_.data()]);
        part.begin = begin;
        part.end = end;
        part.ends_only = again;
        for (size_t t = 0; t < rule.tensors().size(); ++t) {
          if (rule.tensors()[t].role != RuleTensor::Role::kIntermediate) continue;
          part.reads[t] = part.writes[t] = true;
        }
        ready = AddKernels({part}, 0, rule.name(), step, deps, ready);
        deps = {ready};
        if (!again) begin = end;
      }
      for (; r < reductions.size() && reductions[r].after + 1 == end; ++r) {
        ready = AddInnerReduction(step, reductions[r], deps);
        deps = {ready};
      }
    }
    for (int value : step.outputs) {
      SetReady(value, ready);
      NoteGradient(step, value);
    }
  }

  int AddInnerReduction(const PlanStep& step, const InnerReduction& reduction,
                        const std::vector<int>& deps) {
    const OpRule& rule = *step.op.rule;
    const OpNode& op = context_.body().ops[step.op.op];
    const std::vector<int64_t> extents =
        LocalExtents(*context_.graph, *context_.mesh, op, context_.bound->splits[step.op.op], rule);
    InnerExchange exchange = ExchangeOf(context_, rule, extents, reduction);
    CommSpec& comm = exchange.comm;
    if (context_.sums_outside && LeavesOutside(comm)) {
      builder_.CorrectLater(context_.LargestIntermediate(rule, extents));
      comm.axes = context_.Inside(comm.axes);
      if (comm.axes.empty()) return deps.empty() ? BlockBuilder::kNone : deps.back();
    }
    return builder_.AddComm(
        comm, StreamKind::kModelComm, PurposeOfAxes(*context_.mesh, comm.axes),
        absl::StrCat(kCollectiveKindNames[comm.kind], " ", op.name, "/", exchange.names), deps);
  }

  // Whether others do a part of it, who are told so.
  bool LeavesOutside(CommSpec comm) {
    if (context_.Inside(comm.axes) == comm.axes) return false;
    comm.axes = {context_.outside};
    builder_.LeaveOutside(comm);
    return true;
  }

  KernelPart Whole(const PlanStep& step, int group) {
    const OpRule& rule = *step.op.rule;
    KernelPart part;
    part.step = &step.op;
    part.end = static_cast<int>(rule.statements().size());
    part.reads.assign(rule.tensors().size(), false);
    part.writes.assign(rule.tensors().size(), false);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int value = step.inputs[i];
      const int index = static_cast<int>(i);
      auto listed = [index](const std::vector<int>& list) {
        return std::find(list.begin(), list.end(), index) != list.end();
      };
      bool read = !listed(step.op.seeds) && !listed(step.op.rebuilt);
      if (value >= 0) {
        read = read && !OnlyRenamed(rule, rule.inputs()[i]) && FirstReadIn(group, value);
      }
      part.reads[rule.inputs()[i]] = read;
      if (value >= 0 && comes_quantized_[value]) {
        part.quantized |= step.part == Part::kForward || step.part == Part::kRecompute ||
                          plan_.values[value].ref.grad;
      }
    }
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const int value = step.outputs[i];
      const int t = i < rule.outputs().size()
                        ? rule.outputs()[i]
                        : step.op.side_outputs[i - rule.outputs().size()].tensor;
      const bool priced = sums_ == SumFusion::kFp32 && AccumulatesInKernel(step, value);
      part.writes[t] = !buffers_.in_registers[value] && !priced && !IsSparse(value);
      const int root = buffers_.root[value], whole = plan_.values[value].part_of;
      const bool renames = whole < 0 ? root != value : root != buffers_.root[whole];
      if (!renames) made_in_group_[root] = group;
    }
    return part;
  }

  // Whether the launch group reads the value from memory, for the first time.
  bool FirstReadIn(int group, int value) {
    const int root = buffers_.root[value];
    return made_in_group_[root] != group && read_in_group_.emplace(group, root).second;
  }

  bool IsParameterGrad(int value) const {
    const TensorRef& ref = plan_.values[value].ref;
    return ref.grad && context_.body().tensors[ref.tensor].kind == TensorInfo::Kind::kParameter;
  }
  bool IsSparse(int value) const {
    return IsParameterGrad(value) && context_.body().tensors[plan_.values[value].ref.tensor].sparse;
  }
  // The product that makes a weight gradient adds it to the sum itself. Of sums in fp32
  // its cost model counts the traffic.
  bool AccumulatesInKernel(const PlanStep& step, int value) const {
    return step.part == Part::kWeightGrad && IsParameterGrad(value) && sums_ != SumFusion::kNone &&
           HasContraction(*step.op.rule);
  }

  int AddKernels(const std::vector<KernelPart>& parts, double extra_bytes,
                 const std::string& kernel_label, const PlanStep& step, std::vector<int> deps,
                 int ready) {
    const bool routed =
        context_.load != nullptr &&
        context_.load->Holds(context_.body().ops[step.op.op], context_.bound->splits[step.op.op]);
    for (KernelSpec& kernel : KernelsOf(context_, parts, extra_bytes, kernel_label)) {
      kernel.routed = routed;
      ReadSum(sum_read_bytes_, &kernel);
      const std::string label =
          absl::StrCat(context_.body().ops[step.op.op].name, PartSuffix(step.part));
      ready = builder_.AddKernel(kernel, PurposeOf(step.part), label, deps);
    }
    if (HostWaitsFor(step, context_.profile->calls)) builder_.MarkHostSync(ready);
    return ready;
  }

  // Tasks from `first` on are of a loop over parts.
  BlockTemplate::Loop& NoteLoop(const PlanStep& step, int first) {
    const auto [known, inserted] = loops_.try_emplace({step.loop, step.piece}, loops_.size());
    BlockTemplate::Loop& loop = builder_.LoopAt(known->second);
    DescribeLoop(context_, plan_, step, &loop);
    const bool op = step.kind == PlanStep::Kind::kOp;
    std::vector<int>& tasks = op ? loop.op : step.into_loop ? loop.gathers : loop.scatters;
    for (int task = first; task < builder_.size(); ++task) {
      if (op || builder_.IsComm(task)) tasks.push_back(task);
    }
    return loop;
  }

  // The fused ops of steps [begin, end) as one launch.
  void LowerLaunch(size_t begin, size_t end) {
    std::vector<KernelPart> parts;
    std::vector<int> deps;
    double extra = 0;
    const int group = groups_[begin];
    for (size_t s = begin; s < end; ++s) {
      for (int dep : DepsOf(steps_[s])) deps.push_back(dep);
      for (int value : steps_[s].inputs) {
        if (fused_.Hands(steps_[s], value)) FirstReadIn(group, value);  // not from memory
      }
      parts.push_back(Whole(steps_[s], group));
      for (int value : steps_[s].extra_reads) {
        if (FirstReadIn(group, value)) extra += LocalBytes(value);
      }
    }
    const std::string label = end - begin > 1
                                  ? absl::StrCat(context_.body().ops[steps_[begin].op.op].fusion,
                                                 PartSuffix(steps_[begin].part))
                                  : steps_[begin].op.rule->name();
    deps.push_back(rebuilt_.Before(&steps_[begin], &steps_[begin] + (end - begin), deps));
    const int before = builder_.size();
    const int launched = AddKernels(parts, extra, label, steps_[begin], deps, BlockBuilder::kNone);
    if (steps_[begin].loop >= 0) {
      NoteLoop(steps_[begin], before).kernels =
          PieceKernels(context_, plan_, steps_[begin], parts[0], extra, label);
    }
    // A step that moves nothing passes its newest input on.
    const int ready =
        builder_.size() > before ? launched : *std::max_element(deps.begin(), deps.end());
    double accumulated = 0;
    for (size_t s = begin; s < end; ++s) {
      for (int value : steps_[s].outputs) {
        SetReady(value, ready);
        if (IsSparse(value)) {
          LowerSparseUpdate(context_, plan_, steps_[s], value, ReadyAt(value), &builder_);
          continue;
        }
        NoteGradient(steps_[s], value);
        if (IsParameterGrad(value) && !AccumulatesInKernel(steps_[s], value)) {
          accumulated += LocalBytes(value) / context_.Bytes(DType::kCompute);
        }
      }
    }
    for (size_t s = begin; s < end; ++s) fused_.Note(steps_[s], deps, launched);
    rebuilt_.GiveUp(builder_.size() - 1);
    if (accumulated == 0) return;
    builder_.AddKernel(GradientAccumulation(context_, accumulated), Purpose::kBackward,
                       absl::StrCat(context_.body().ops[steps_[begin].op.op].name, ".accumulate"),
                       {ready});
  }

  void NoteGradient(const PlanStep& step, int value) {
    if (!IsParameterGrad(value) || ready_[value] < 0) return;
    const Value& v = plan_.values[value];
    const TensorFacts facts = FactsOf(*context_.graph, context_.body(), v.ref);
    builder_.AddGradient(ready_[value],
                         static_cast<int64_t>(v.layout.LocalElements(*context_.mesh, facts.shape)),
                         v.ref.tensor, step.further);
  }

  void NoteLives(size_t begin, size_t end, int first) {
    for (int task = first; steps_[begin].further && task < builder_.size(); ++task) {
      builder_.MarkFurther(task);
    }
    const int last = std::max(builder_.size() - 1, 0);
    first = std::min(first, last);
    for (size_t s = begin; s < end; ++s) {
      if (builder_.size() > 0) tasks_[s] = {first, last};
      last_task_[s] = builder_.size() > 0 ? builder_.size() - 1 : BlockBuilder::kNone;
      auto touch = [&](int value) {
        if (value < 0 || buffers_.of_value[value] < 0) return;
        BufferLife& life = lives_[buffers_.of_value[value]];
        life.first = std::min(life.first, first);
        life.last = std::max(life.last, last);
      };
      for (int value : steps_[s].inputs) touch(value);
      for (int value : steps_[s].extra_reads) touch(value);
      for (int value : steps_[s].outputs) touch(value);
    }
  }

  const LowerContext& context_;
  const BodyPlan& plan_;
  const Buffers& buffers_;
  const PassSteps pass_;
  const double gathered_share_;
  const SumFusion sums_;
  const double sum_read_bytes_;  // of an element
  Readers readers_;              // where anything is quantised
  const std::vector<PlanStep>& steps_;
  const std::vector<int>& groups_;
  const bool backward_;
  const std::string& path_;
  const std::vector<int>& in_ports_;
  BlockBuilder builder_;
  RebuiltWeights rebuilt_;
  FusedComms fused_;
  std::vector<int> ready_, last_task_;  // per value: task, ~in-port, or kNone; per step
  std::vector<StepTasks> tasks_;        // per step
  std::vector<int> made_in_group_;      // per value
  std::vector<bool> comes_quantized_;   // per value: gathered in 8 or 4 bits
  std::set<std::pair<int, int>> read_in_group_;
  std::map<std::pair<int, int>, size_t> loops_;  // by loop of the plan and piece: of the block
  std::vector<BufferLife> lives_;                // per buffer
  std::vector<int> tensors_;                     // per buffer: its number in the block, or -1
};

}  // namespace

BodyBlocks LowerBody(const LowerContext& context, const BodyPlan& plan, const std::string& name,
                     const std::string& path) {
  const LaunchGroups groups = GroupLaunches(context, plan);
  const BackwardHalves halves =
      context.splits_backward ? SplitBackward(plan, groups.backward) : BackwardHalves();
  const Buffers buffers = AssignBuffers(context, plan, groups, halves.reads);
  const std::vector<PlanStep>& later = halves.weights.steps;
  const BytesKept kept = BytesKeptOf(context, plan, buffers, halves);
  const std::vector<int> saved = WithHeldInputs(context, plan, plan.saved);
  std::vector<int> before_backward = saved;
  const std::vector<int>& given = plan.grad_in_ports;
  before_backward.insert(before_backward.end(), given.begin(), given.end());
  const auto lower = [&](const PassSteps& pass, const char* suffix) {
    return PhaseLowering(context, plan, buffers, pass, name + suffix, path);
  };
  const bool splits = !later.empty();
  const std::vector<PlanStep>& now = splits ? halves.inputs.steps : plan.backward;
  const std::vector<int> none;
  const std::vector<int64_t>& whole = buffers.bytes;
  PhaseLowering forward =
      lower({{plan.forward}, groups.forward, plan.in_ports, whole, kept.from_forward}, ".F");
  const PhaseSteps in_backward{now, /*backward=*/true, nullptr, splits ? &later : nullptr};
  const std::vector<int>& groups_now = splits ? halves.inputs.groups : groups.backward;
  PhaseLowering backward = lower(
      {in_backward, groups_now, plan.grad_in_ports, kept.from_forward, kept.until_weights}, ".B");
  const PhaseSteps apart{later, /*backward=*/true, &now, nullptr};
  PhaseLowering weights =
      lower({apart, halves.weights.groups, none, kept.until_weights, whole}, ".W");
  BodyBlocks blocks;
  blocks.forward =
      forward.Run(plan.in_ports, Stays(buffers, saved, plan.out_ports), plan.out_ports);
  blocks.backward = backward.Run(before_backward, Stays(buffers, halves.reads, plan.grad_out_ports),
                                 plan.grad_out_ports);
  weights.GoOnFrom(backward);
  if (splits) blocks.weights = weights.Run(Stays(buffers, halves.reads, {}), {}, {});
  const BufferTensors tensors{saved, halves.reads, forward.tensors(), backward.tensors(),
                              weights.tensors()};
  NotePorts(plan, buffers, kept, tensors, &blocks);
  NoteKept(*context.mesh, plan, buffers, kept, tensors, &blocks);
  return blocks;
}

}  // namespace plancast
