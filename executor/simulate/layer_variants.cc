#include "executor/simulate/layer_variants.h"

#include <algorithm>
#include <utility>

#include "executor/sharing/activity_kinds.h"

namespace plancast {
namespace {

constexpr int32_t kFewestTasks = 3;  // of a block that is worth it
constexpr StreamMask kKernels = MaskOf(kCompute);

}  // namespace

LayerVariants::LayerVariants(const SimInput& in, const HostClock& hosts, const Overlap& overlap,
                             const Transfers& transfers)
    : in_(in),
      hosts_(hosts),
      overlap_(overlap),
      transfers_(transfers),
      answers_(in.sim.entities.size() * in.graph.blocks.size()),
      of_block_(in.graph.blocks.size()) {}

void LayerVariants::Ask(int32_t entity, int32_t block_index, Answer& answer) {
  answer.variant = kNone;
  const int32_t program = in_.ProgramOf(entity);
  const Block& block = in_.graph.blocks[block_index];
  const BlockIndex& index = in_.index.block(block_index);
  if (index.size < kFewestTasks || block.rendezvous_task >= 0 || index.syncs ||
      index.kernel_streams != kKernels ||
      (overlap_.slows_kernels() && in_.index.program(program).kernel_streams != kKernels)) {
    return;
  }
  const int32_t row = in_.sim.entities[entity].price_row;
  Variant variant;
  LayerCosts& costs = variant.costs;
  costs.launch_ps = in_.hosts[program].launch_ps;
  costs.hosted = hosts_.Matters(program);
  costs.interferes = overlap_.slows_kernels();
  variant.key = {row, costs.launch_ps, costs.hosted};
  std::vector<int32_t> rivals;
  for (int32_t t = 0; t < index.size; ++t) {
    LayerCosts::Task& task = costs.tasks.emplace_back();
    variant.groups.push_back(-1);
    if (block.kind[t] == TaskKind::kKernel) {
      task.alone = in_.prices.Duration(row, block.spec[t]);
      task.slowdown_q20 = in_.SlowdownOf(entity, block.spec[t]);
      continue;
    }
    const int32_t g = in_.sim.GroupOf(in_.uses.OfComm(program, block.spec[t]), entity);
    const SimGraph::Group& group = in_.sim.groups[g];
    if (group.member_end - group.member_begin != 1) return;
    variant.groups.back() = g;
    task = CostOf(g);
    variant.key.push_back(g);
    if (!transfers_.contention().of_group[g]) continue;
    variant.contended |= MaskOf(block.stream[t]);
    for (const Fluid::Use& load : in_.sim.LoadsOf(group)) {
      variant.resources.push_back(load.resource);
      const auto cursors = transfers_.contention().CursorsOn(load.resource);
      rivals.insert(rivals.end(), cursors.begin(), cursors.end());
    }
  }
  if (__builtin_popcount(variant.contended) > kMostSharing) return;
  for (std::vector<int32_t>* const all : {&rivals, &variant.resources}) {
    std::sort(all->begin(), all->end());
    all->erase(std::unique(all->begin(), all->end()), all->end());
  }
  answer.rivals_begin = static_cast<int32_t>(rivals_.size());
  rivals_.insert(rivals_.end(), rivals.begin(), rivals.end());
  answer.rivals_end = static_cast<int32_t>(rivals_.size());
  for (const int32_t known : of_block_[block_index]) {
    if (variants_[known].key == variant.key) answer.variant = known;
  }
  if (answer.variant >= 0) return;
  answer.variant = static_cast<int32_t>(variants_.size());
  of_block_[block_index].push_back(answer.variant);
  variant.block = block_index;
  if (variant.Shares()) FindShared(variant);
  variants_.push_back(std::move(variant));
}

bool LayerVariants::Meet(int32_t variant, int32_t other) const {
  const std::vector<int32_t>& own = variants_[variant].resources;
  return std::any_of(own.begin(), own.end(),
                     [&](int32_t resource) { return Loads(other, resource); });
}

LayerCosts::Task LayerVariants::CostOf(int32_t group) const {
  const RealisedCollective& realised = in_.realised[in_.sim.groups[group].realised];
  LayerCosts::Task task;
  task.alone = transfers_.alone_ps()[group];
  task.uses_no_sms = realised.uses_no_sms;
  task.delay = realised.delay_ps;
  task.work = ActivityKinds::Work(realised.work_bytes);
  task.rate_q16 = transfers_.AloneRateQ16(group, /*slow=*/false);
  task.slow_rate_q16 = transfers_.AloneRateQ16(group, transfers_.Yields(group));
  return task;
}

// Groups of two streams that never meet are asked for, too, and their rates never read.
void LayerVariants::FindShared(Variant& variant) {
  LayerCosts& costs = variant.costs;
  std::vector<int32_t> groups;  // per row
  for (size_t t = 0; t < costs.tasks.size(); ++t) {
    const int32_t g = variant.groups[t];
    if (g < 0 || !transfers_.contention().of_group[g]) continue;
    const auto known = std::find(groups.begin(), groups.end(), g);
    costs.tasks[t].sharer = static_cast<int32_t>(known - groups.begin());
    if (known == groups.end()) groups.push_back(g);
  }
  costs.sharers = static_cast<int32_t>(groups.size());
  costs.shared_q16.clear();
  for (const bool busy : {false, true}) {
    for (const int32_t own : groups) {
      for (const int32_t other : groups) {
        const auto [found, fresh] = of_two_.try_emplace({own, other, busy}, 0);
        if (fresh) found->second = transfers_.RateAmongQ16({own, other}, busy);
        costs.shared_q16.push_back(found->second);
      }
    }
  }
  if (__builtin_popcount(variant.contended) < 3) return;
  costs.rate_of_three = [this, groups](int32_t own, int32_t other, int32_t third, bool busy) {
    const auto [low, high] = std::minmax(groups[other], groups[third]);
    const auto [found, fresh] = of_three_.try_emplace({groups[own], low, high, busy}, 0);
    if (fresh) found->second = transfers_.RateAmongQ16({groups[own], low, high}, busy);
    return found->second;
  };
}

int32_t LayerVariants::TaskBehind(int32_t index, int stream, int32_t group) {
  Variant& variant = variants_[index];
  const auto known = std::find(variant.groups.begin(), variant.groups.end(), group);
  if (known != variant.groups.end()) return static_cast<int32_t>(known - variant.groups.begin());
  const bool contended = transfers_.contention().of_group[group];
  if (contended) {
    for (const Fluid::Use& load : in_.sim.LoadsOf(in_.sim.groups[group])) {
      if (transfers_.contention().CursorsOn(load.resource).empty()) continue;
      if (!Loads(index, load.resource)) return kNone;
    }
    const StreamMask all = variant.contended | MaskOf(stream);
    if (__builtin_popcount(all) > kMostSharing) return kNone;
    variant.contended = all;
  }
  variant.groups.push_back(group);
  variant.costs.tasks.push_back(CostOf(group));
  if (variant.Shares()) FindShared(variant);
  return static_cast<int32_t>(variant.groups.size()) - 1;
}

}  // namespace plancast
