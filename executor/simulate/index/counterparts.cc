#include "executor/simulate/index/counterparts.h"

#include <algorithm>

#include "base/check.h"

namespace plancast {

bool Counterparts::Matches(int32_t program, const Block& block, int32_t task, int32_t use,
                           StreamKind stream) const {
  return block.kind[task] == TaskKind::kComm && task != block.rendezvous_task &&
         block.stream[task] == stream && uses_.OfComm(program, block.spec[task]) == use;
}

const Counterparts::Counts& Counterparts::CountsOf(int32_t program, int32_t use,
                                                   StreamKind stream) {
  const auto [found, fresh] = counts_.try_emplace({program, use, stream});
  Counts& counts = found->second;
  if (!fresh) return counts;
  std::vector<int32_t> of_block(graph_.blocks.size(), -1);
  int64_t total = 0;
  for (const Instance& instance : graph_.programs[program].instances) {
    int32_t& each = of_block[instance.block];
    if (each < 0) {
      const Block& block = graph_.blocks[instance.block];
      each = 0;
      for (int32_t t = 0; t < block.size(); ++t) each += Matches(program, block, t, use, stream);
    }
    counts.before.push_back(total);
    counts.each.push_back(each);
    total += int64_t{each} * instance.layer_count;
  }
  return counts;
}

TaskRef Counterparts::Of(int32_t program, const TaskRef& ref, int32_t theirs) {
  const Block& block = graph_.blocks[index_.InstanceOf(program, ref.instance).block];
  if (ref.task == block.rendezvous_task) {
    return index_.AtRendezvous(index_.InstanceOf(program, ref.instance).rendezvous, theirs);
  }
  if (program == theirs) return ref;
  const int32_t use = uses_.OfComm(program, block.spec[ref.task]);
  const StreamKind stream = block.stream[ref.task];
  const Counts& own = CountsOf(program, use, stream);
  int64_t number = own.before[ref.instance] + int64_t{own.each[ref.instance]} * ref.layer;
  for (int32_t t = 0; t < ref.task; ++t) number += Matches(program, block, t, use, stream);

  const Counts& other = CountsOf(theirs, use, stream);
  const auto after = std::upper_bound(other.before.begin(), other.before.end(), number);
  // Instances without any have the same count before them as the next.
  const auto instance = static_cast<int32_t>(after - other.before.begin()) - 1;
  PLANCAST_CHECK(instance >= 0 && other.each[instance] > 0);
  const int64_t inside = number - other.before[instance];
  TaskRef found{instance, static_cast<int32_t>(inside / other.each[instance]), 0};
  auto rank = static_cast<int32_t>(inside % other.each[instance]);
  const Block& their_block = graph_.blocks[index_.InstanceOf(theirs, instance).block];
  while (!Matches(theirs, their_block, found.task, use, stream) || rank-- > 0) ++found.task;
  return found;
}

}  // namespace plancast
