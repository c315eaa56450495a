#include "compiler/sharding/shard_block.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "compiler/lower/kernels/sum_fusion.h"
#include "compiler/sharding/list_collectives.h"
#include "compiler/sharding/synchronise.h"

namespace plancast {
namespace {

// Emits what gathers and reductions are made of.
class ShardTasks {
 public:
  ShardTasks(const ShardStyle& style, Purpose purpose, BlockBuilder* out)
      : style_(style), types_(style.types), purpose_(purpose), out_(*out) {}

  // Returns the task that ends the gather, of a backward pass with what comes once more. The shard
  // is cast before where it rests in another type.
  int Gather(const ShardUnit& unit, bool backward, std::vector<int> deps, bool casts = true) {
    const bool secondary = backward && style_.secondary;
    const int64_t on_host = secondary ? 0 : unit.host_weights();
    const bool from_host = on_host > 0;
    const int copied = out_.size();
    if (from_host) {
      const int64_t bytes = WholeBytes(on_host, types_.at_rest);
      deps = {Copy(CollectiveKind::kCopyToDevice, bytes, unit.name, deps)};
    }
    const bool other = types_.at_rest != types_.gathered && !secondary;
    const bool keeps = secondary || unit.shard() > 0 || unit.padded() == 0;
    const bool cast = casts && keeps && (other || Quantizes());
    if (cast) {
      const auto shard = static_cast<double>(secondary ? unit.secondary() : unit.shard());
      const double from = secondary ? types_.gathered : types_.at_rest;
      deps = {out_.AddKernel(CopyKernel("cast_shard", shard * from, shard * types_.wire), purpose_,
                             absl::StrCat(unit.name, ".cast"), deps)};
    }
    const int first = out_.size();
    int ready = first;
    for (const ShardUnit::Part& part : unit.parts) {
      const std::vector<int>& axes = secondary ? part.axes.secondary : part.axes.shard;
      if (axes.empty() || part.padded == 0) continue;
      if (part.lists.has_value()) {
        ready = ListCollectives(style_, unit, part, purpose_, &out_).Gather(axes, deps, backward);
        continue;
      }
      CommSpec comm;
      comm.kind = secondary ? CollectiveKind::kAllGather : part.axes.gathers();
      comm.axes = axes;
      comm.bytes = WholeBytes(part.padded + (backward ? part.again : 0), types_.wire);
      ready = out_.AddComm(comm, StreamKind::kGradComm, Purpose::kDp,
                           absl::StrCat(kCollectiveKindNames[comm.kind], " ", unit.name), deps);
    }
    const bool gathers = out_.size() > first;
    // What is whole on the host comes to where it is used.
    const int64_t fetched = secondary || cast ? 0 : unit.whole_on_host();
    if (!gathers) {
      if (secondary || unit.whole_on_host() == 0) {
        return deps.empty() ? BlockBuilder::kNone : deps.back();
      }
      ready = deps.back();
    }
    if (GatheredBytes(unit) > 0 || unit.kept_whole() == 0) {
      out_.AddMemory(gathers && fetched == 0 ? first : copied, false, MemoryKind::kParameters,
                     Gathered(unit), GatheredBytes(unit),
                     /*early=*/false, GatherPool());
    }
    if (const int64_t shards = on_host - fetched; shards > 0) {
      const int64_t bytes = WholeBytes(shards, types_.at_rest);
      const uint16_t shard = Tensor(absl::StrCat(unit.name, " shard"));
      out_.AddMemory(copied, false, MemoryKind::kParameters, shard, bytes);
      out_.AddMemory(ready, true, MemoryKind::kParameters, shard, -bytes);
    }
    return ready;
  }

  // What a gather allocates: nothing for what this rank keeps whole, unless it is used in another
  // type or in a copy.
  int64_t GatheredBytes(const ShardUnit& unit) const {
    const bool as_it_is = types_.at_rest == types_.gathered && !CopiesOut() && !Quantizes();
    return WholeBytes(unit.padded() - (as_it_is ? unit.kept_whole() : 0) - LeftOut(unit),
                      types_.gathered);
  }
  // What fully_shard is told to ignore: parameters shared with no rank, in the type they are used
  // in.
  int64_t LeftOut(const ShardUnit& unit) const {
    const bool ignores = KeepsBuffer() && types_.at_rest == types_.gathered;
    return ignores ? unit.alone() : 0;
  }
  // Bytes of an element of a unit's gradients before they are reduced, on average.
  double WholeGradient(const ShardUnit& unit) const {
    const auto all = static_cast<double>(unit.elements()), own = static_cast<double>(LeftOut(unit));
    if (own == 0) return style_.whole_gradient;
    return style_.whole_gradient + (types_.gradient - style_.whole_gradient) * (own / all);
  }
  // What it is copied into, where parameters are cut by rows, or joined of the ranks' parts.
  bool CopiesOut() const { return KeepsBuffer() || style_.cut == ShardCut::kJoined; }
  // Whether what was gathered stays beside its copy in a forward pass.
  bool KeepsBuffer() const { return style_.cut == ShardCut::kRows; }
  int64_t HeldBytes(const ShardUnit& unit) const {
    return GatheredBytes(unit) * (CopiesOut() ? 2 : 1);
  }

  // What comes in fewer bits is made parameters again.
  bool Quantizes() const { return types_.wire < types_.gathered; }
  int Dequantize(const ShardUnit& unit, const std::vector<int>& deps) {
    const auto elements = static_cast<double>(unit.padded());
    const KernelSpec kernel =
        CopyKernel("rebuild", elements * types_.wire, elements * types_.gathered);
    return out_.AddKernel(kernel, purpose_, absl::StrCat(unit.name, ".dequantize"), deps);
  }

  int CopyOut(const ShardUnit& unit, int passes, const std::vector<int>& deps) {
    const auto bytes = static_cast<double>(GatheredBytes(unit));
    const int task = out_.AddKernel(CopyOfUnit(style_, unit, bytes, passes), purpose_,
                                    absl::StrCat(unit.name, ".copy_out"), deps);
    out_.AddMemory(task, false, MemoryKind::kParameters, Gathered(unit), GatheredBytes(unit));
    return task;
  }

  // Gradients side by side in the type of the reduction, then the reduction. Returns
  // the task that ends it.
  int Reduce(const ShardUnit& unit, const std::vector<int64_t>& given_up, std::vector<int> deps,
             bool makes_shards) {
    const int64_t left_out = LeftOut(unit);
    const double from = static_cast<double>(unit.elements() - left_out) * style_.whole_gradient;
    const double to = static_cast<double>(unit.padded() - left_out) * types_.reduced;
    const std::string label = absl::StrCat(unit.name, ".copy_in");
    // Of a flat unit autograd joins the gradients first, in their own type.
    const bool flat = style_.cut == ShardCut::kUnit;
    const bool casts = style_.whole_gradient != types_.reduced;
    if (flat && casts) {
      deps = {out_.AddKernel(CopyKernel("join", from, from), purpose_, label, deps)};
    }
    int copy = out_.AddKernel(CopyKernel("copy_in", from, to), purpose_, label, deps);
    out_.AddMemory(copy, false, MemoryKind::kGradients, Reduced(unit), ReducedBytes(unit));
    int64_t bytes = 0;  // each block rounds its own
    for (const int64_t made : given_up) bytes += WholeBytes(made, WholeGradient(unit));
    out_.AddMemory(copy, true, MemoryKind::kGradients, Gradients(unit), -bytes);
    if (flat) {
      // It is divided by a part of the ranks before it is summed, by the rest after.
      copy = out_.AddKernel(CopyKernel("predivide", to, to), purpose_, label, {copy});
    }
    int ready = copy;
    for (const ShardUnit::Part& part : unit.parts) {
      const int summed = Sum(unit, part, copy);
      const bool nothing = summed == copy && part.homes.over.has_value();
      if (!nothing) ready = summed;
    }
    if (const int64_t on_host = unit.host_gradients(); on_host > 0) {
      Copy(CollectiveKind::kCopyToHost, WholeBytes(on_host, types_.reduced),
           absl::StrCat("d ", unit.name), {ready});
    }
    if (makes_shards) {
      out_.AddMemory(ready, false, MemoryKind::kGradients,
                     Tensor(absl::StrCat("d ", unit.name, " shard")),
                     KeptGradientBytes(unit, types_), /*early=*/false, ReducePool());
    }
    return ready;
  }

  // FSDP allocates what it gathers and what reductions leave on streams of their own
  // (torch/distributed/fsdp: _fsdp_collectives.py, _runtime_utils.py).
  bool HasStreams() const { return HasOwnStreams(style_.cut); }
  MemoryPool GatherPool() const {
    return HasStreams() ? MemoryPool::kGather : MemoryPool::kCompute;
  }
  MemoryPool ReducePool() const {
    return HasStreams() ? MemoryPool::kReduce : MemoryPool::kCompute;
  }

  int64_t ReducedBytes(const ShardUnit& unit) const {
    return WholeBytes(unit.padded() - LeftOut(unit), types_.reduced);
  }

  uint16_t Gathered(const ShardUnit& unit) { return Tensor(absl::StrCat(unit.name, " gathered")); }
  uint16_t Gradients(const ShardUnit& unit) { return Tensor(absl::StrCat("d ", unit.name)); }
  uint16_t Reduced(const ShardUnit& unit) {
    return Tensor(absl::StrCat("d ", unit.name, " to reduce"));
  }
  uint16_t Tensor(std::string name) {
    const auto known = std::find_if(tensors_.begin(), tensors_.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (known != tensors_.end()) return known->second;
    tensors_.emplace_back(std::move(name), 0);
    return tensors_.back().second = out_.AddTensor(tensors_.back().first);
  }

 private:
  // Between the device and its host's memory.
  int Copy(CollectiveKind kind, int64_t bytes, const std::string& what,
           const std::vector<int>& deps) {
    const bool out = kind == CollectiveKind::kCopyToHost;
    CommSpec comm;
    comm.kind = kind;
    comm.bytes = bytes;
    return out_.AddComm(comm, out ? StreamKind::kCopyOut : StreamKind::kCopyIn, Purpose::kOffload,
                        absl::StrCat(out ? "copy out " : "copy in ", what), deps);
  }

  int Sum(const ShardUnit& unit, const ShardUnit::Part& part, int after) {
    int ready = after;
    if (!part.axes.summed.empty() && part.lists.has_value()) {
      ready = ListCollectives(style_, unit, part, purpose_, &out_).Reduce(after);
    } else if (!part.axes.summed.empty()) {
      CommSpec comm;
      comm.kind = part.axes.sums();
      comm.axes = part.axes.summed;
      comm.bytes = WholeBytes(part.to_reduce, types_.reduced_wire);
      ready =
          out_.AddComm(comm, StreamKind::kGradComm, Purpose::kDp,
                       absl::StrCat(kCollectiveKindNames[comm.kind], " d ", unit.name), {ready});
    }
    if (part.axes.SumsReplicas()) {
      CommSpec comm;
      comm.kind = CollectiveKind::kAllReduce;
      comm.axes = part.axes.replica;
      comm.bytes = WholeBytes(part.shard(), types_.reduced_wire);
      ready = out_.AddComm(comm, StreamKind::kReplicaComm, Purpose::kDp,
                           absl::StrCat("all_reduce d ", unit.name), {ready});
    }
    return ready;
  }

  const ShardStyle& style_;
  const ShardTypes& types_;
  const Purpose purpose_;
  BlockBuilder& out_;
  std::vector<std::pair<std::string, uint16_t>> tensors_;  // made so far
};

// Ranks that meet where compute waits for its parameters. Where each of those that they come from
// computes in step with others, all of these.
int64_t GatheredOver(const ShardedStep& step, const ShardStyle& style) {
  if (step.own == nullptr) return 1;
  const int64_t ranks = step.own->gathered_over(style.secondary && step.backward);
  return ranks > 1 ? ranks * style.in_step : 1;
}

class Sharder {
 public:
  Sharder(const BlockTemplate& in, const ShardedStep& step, const ShardStyle& style)
      : in_(in),
        block_(in.block),
        step_(step),
        style_(style),
        // FSDP2 reuses what it reduces from: a reduction waits for the one before.
        waits_for_reduction_(step.backward && style.cut == ShardCut::kRows),
        out_(in.block.name, in.block.num_in_ports + step.ports + (waits_for_reduction_ ? 1 : 0)),
        tasks_(style, step.backward ? Purpose::kBackward : Purpose::kForward, &out_),
        gathered_over_(GatheredOver(step, style)),
        new_of_(block_.size(), BlockBuilder::kNone),
        event_of_(block_.size(), 0) {}

  BlockTemplate Run() {
    if (waits_for_reduction_) reduction_ = PortOf(step_.ports);
    Before();
    for (int t = 0; t < block_.size(); ++t) Emit(t);
    CopyMemory();
    AllocateGradients();
    After();
    Ports();
    return std::move(out_).Build();
  }

 private:
  int PortOf(int i) const { return ~(block_.num_in_ports + i); }

  // What comes before the copy: its inputs, or whatever else it has to wait for.
  int BeginPort() const {
    if (block_.num_in_ports > 0) return ~0;
    return out_.size() > 0 ? 0 : PortOf(0);
  }

  // Gathers, and what compute waits for.
  void Before() {
    std::vector<int> begin;
    for (int i = 0; i < block_.num_in_ports; ++i) begin.push_back(~i);
    const bool shifts = step_.own != nullptr && step_.ports > 0;
    if (shifts) begin.push_back(PortOf(0));
    if (step_.gather != nullptr) issued_ = tasks_.Gather(*step_.gather, step_.backward, begin);
    if (step_.own == nullptr) return;
    if (step_.ports == 0 && issued_ != BlockBuilder::kNone) begin.push_back(issued_);
    if (tasks_.CopiesOut()) {
      const bool twice = absl::c_linear_search(block_.purpose, Purpose::kRecompute);
      const int copy = tasks_.CopyOut(*step_.own, twice ? 2 : 1, begin);
      // FSDP2's backward pass gives the buffer of the gather up at once, its forward pass with the
      // next gather.
      if (step_.backward || !tasks_.KeepsBuffer()) GiveUpBuffer(copy);
      waits_ = {copy};
    } else if (tasks_.Quantizes()) {
      waits_ = {tasks_.Dequantize(*step_.own, begin)};
    } else {
      waits_ = {shifts ? PortOf(0) : begin.empty() ? BlockBuilder::kNone : begin.back()};
    }
    head_ = out_.size();
  }

  void GiveUpBuffer(int task) {
    out_.AddMemory(task, true, MemoryKind::kParameters, tasks_.Gathered(*step_.own),
                   -tasks_.GatheredBytes(*step_.own), /*early=*/false, tasks_.GatherPool());
  }

  bool IsWhole(const BlockTemplate::Gradient& gradient) const {
    return step_.whole != nullptr && (*step_.whole)[gradient.tensor];
  }
  // Whether `t` adds up a gradient that is none of the unit's.
  bool AddsWhole(int t) const {
    if (step_.whole == nullptr) return false;
    const auto begin = block_.deps.begin() + block_.dep_begin[t];
    const auto end = block_.deps.begin() + block_.dep_begin[t + 1];
    return std::any_of(in_.gradients.begin(), in_.gradients.end(), [&](const auto& gradient) {
      return IsWhole(gradient) && std::find(begin, end, gradient.task) != end;
    });
  }
  // Whether it makes one.
  bool MakesWhole(int t) const {
    return step_.whole != nullptr &&
           std::any_of(in_.gradients.begin(), in_.gradients.end(), [&](const auto& gradient) {
             return IsWhole(gradient) && gradient.task == t;
           });
  }

  bool Dropped(int t) const {
    return step_.backward && !step_.accumulates && block_.kind[t] == TaskKind::kKernel &&
           in_.kernels[block_.spec[t]].label == "grad_accumulate" && !AddsWhole(t) && !IsFurther(t);
  }
  // Whether it adds to gradients of pieces before.
  bool IsFurther(int t) const {
    return std::binary_search(in_.further.begin(), in_.further.end(), t);
  }

  void Emit(int t) {
    std::vector<int> deps;
    bool inner = false;
    for (int d = block_.dep_begin[t]; d < block_.dep_begin[t + 1]; ++d) {
      const int dep = block_.deps[d];
      deps.push_back(dep < 0 ? dep : new_of_[dep]);
      inner = inner || (dep >= 0 && new_of_[dep] >= head_);
    }
    if (!inner) deps.insert(deps.end(), waits_.begin(), waits_.end());
    if (Dropped(t)) {
      new_of_[t] = deps.empty() ? BlockBuilder::kNone : *std::max_element(deps.begin(), deps.end());
      event_of_[t] = std::max(out_.size() - 1, 0);
      return;
    }
    if (block_.kind[t] == TaskKind::kComm) {
      new_of_[t] = out_.AddComm(in_.comms[block_.spec[t]], block_.stream[t], block_.purpose[t],
                                block_.label[t], deps);
    } else {
      KernelSpec kernel = in_.kernels[block_.spec[t]];
      if (step_.backward && !step_.accumulates && !MakesWhole(t) && !IsFurther(t)) {
        MakeAnew(in_.sum_read_bytes, &kernel);
      }
      kernel.gathered_over = gathered_over_;
      new_of_[t] = out_.AddKernel(kernel, block_.purpose[t], block_.label[t], deps);
    }
    if ((block_.flags[t] & Block::kHostSync) != 0) out_.MarkHostSync(new_of_[t]);
    event_of_[t] = last_ = new_of_[t];
  }

  void CopyMemory() {
    std::vector<uint16_t> tensor;
    for (const std::string& name : block_.tensors) tensor.push_back(out_.AddTensor(name));
    for (const MemoryEvent& e : block_.memory) {
      out_.AddMemory(event_of_[e.task], e.after, e.kind, tensor[e.tensor], e.delta, e.early,
                     e.pool);
    }
    for (const PortMemory& take : block_.takes) out_.Take(tensor[take.tensor], take.bytes);
    for (const PortMemory& give : block_.gives) out_.Give(tensor[give.tensor], give.bytes);
  }

  void AllocateGradients() {
    if (in_.gradients.empty() || !step_.backward || step_.accumulates) return;
    // All are added to those of parameters that another unit counts (tied ones).
    if (step_.unit->elements() == 0) return;
    const uint16_t tensor = tasks_.Gradients(*step_.unit);
    const double bytes = tasks_.WholeGradient(*step_.unit);
    int64_t elements = 0;  // so far: they are rounded together, as they are given up
    for (const BlockTemplate::Gradient& g : in_.gradients) {
      if (IsWhole(g) || g.further) continue;
      const int64_t before = WholeBytes(elements, bytes);
      elements += g.elements;
      out_.AddMemory(event_of_[g.task], false, MemoryKind::kGradients, tensor,
                     WholeBytes(elements, bytes) - before);
    }
  }

  void After() {
    if (waits_for_reduction_) reduction_ = PortOf(step_.ports);
    if (out_.size() == 0) {
      if (step_.reduce != nullptr) ReduceAlone();
      return;
    }
    const int last = std::max(last_, 0);
    // The device is waited for before parameters are gathered.
    if (step_.own != nullptr && step_.own->by_lists()) out_.MarkHostSync(last);
    if (step_.own != nullptr && tasks_.KeepsBuffer() && !step_.backward) GiveUpBuffer(last);
    if (step_.frees != nullptr) {
      const int64_t gathered = tasks_.GatheredBytes(*step_.frees);
      if (gathered > 0 || step_.frees->kept_whole() == 0) {
        out_.AddMemory(last, true, MemoryKind::kParameters, tasks_.Gathered(*step_.frees),
                       -gathered, /*early=*/false,
                       tasks_.CopiesOut() ? MemoryPool::kCompute : tasks_.GatherPool());
      }
      if (step_.keeps_part) {
        const int64_t part = WholeBytes(step_.frees->secondary(), style_.types.gathered);
        out_.AddMemory(last, step_.backward, MemoryKind::kParameters,
                       tasks_.Tensor(absl::StrCat(step_.frees->name, " kept")),
                       step_.backward ? -part : part);
      }
    }
    Reductions(last);
  }

  void Reductions(int last) {
    if (step_.reduce != nullptr) {
      std::vector<int> deps = {last, reduction_};
      for (const BlockTemplate::Gradient& g : in_.gradients) {
        if (!IsWhole(g)) deps.push_back(new_of_[g.task]);
      }
      GiveUpReduced(step_.reduced_before, last);
      reduction_ = tasks_.Reduce(*step_.reduce, step_.reduced_gradients, deps, step_.makes_shards);
      if (step_.ends_reductions) GiveUpReduced(step_.reduce, reduction_);
    } else if (step_.ends_reductions) {
      GiveUpReduced(step_.reduced_before, last);
    }
  }
  // Where the body has nothing to do: its gradients were made before.
  void ReduceAlone() {
    const int first = out_.size();
    reduction_ =
        tasks_.Reduce(*step_.reduce, step_.reduced_gradients, {reduction_}, step_.makes_shards);
    GiveUpReduced(step_.reduced_before, first, /*after=*/false);
    if (step_.ends_reductions) GiveUpReduced(step_.reduce, reduction_);
  }
  void GiveUpReduced(const ShardUnit* unit, int task, bool after = true) {
    if (unit == nullptr) return;
    out_.AddMemory(task, after, MemoryKind::kGradients, tasks_.Reduced(*unit),
                   -tasks_.ReducedBytes(*unit));
  }

  void Ports() {
    for (const int port : block_.out_ports) {
      out_.AddOutPort(port < 0 ? port : new_of_[port] == BlockBuilder::kNone ? 0 : new_of_[port]);
    }
    const int shift = step_.own != nullptr ? 1 : 0;
    for (int i = 0; i < step_.ports; ++i) {
      const bool newest = i + 1 == step_.ports;
      if (newest && issued_ != BlockBuilder::kNone) {
        out_.AddOutPort(issued_);
      } else {
        out_.AddOutPort(PortOf(std::min(i + shift, step_.ports - 1)));
      }
    }
    if (waits_for_reduction_) out_.AddOutPort(reduction_);
    if (step_.tells_begin) out_.TellBegin(BeginPort());
  }

  const BlockTemplate& in_;
  const Block& block_;
  const ShardedStep& step_;
  const ShardStyle& style_;
  const bool waits_for_reduction_;
  BlockBuilder out_;
  ShardTasks tasks_;
  const int64_t gathered_over_;  // KernelSpec, of its kernels
  std::vector<int> new_of_;      // per old task
  std::vector<int> event_of_;    // and where its memory events belong
  std::vector<int> waits_;       // what first tasks wait for
  int head_ = 0;                 // tasks before are not the body's own
  int last_ = -1;                // of the body's own tasks
  int issued_ = BlockBuilder::kNone;
  int reduction_ = BlockBuilder::kNone;
};

}  // namespace

BlockTemplate ShardBlock(const BlockTemplate& block, const ShardedStep& step,
                         const ShardStyle& style) {
  return Sharder(block, step, style).Run();
}

// Frameworks cast on a stream of its own. Here that is compute, where it would wait
// for all before a backward pass, and the gather with it; so it is left out there.
BlockTemplate GatherAhead(const ShardUnit& unit, bool backward, const ShardStyle& style) {
  BlockBuilder builder("param all_gather");
  ShardTasks(style, backward ? Purpose::kBackward : Purpose::kForward, &builder)
      .Gather(unit, backward, {}, /*casts=*/!backward);
  return std::move(builder).Build();
}

}  // namespace plancast
