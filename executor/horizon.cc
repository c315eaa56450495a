#include "executor/horizon.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace plancast {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

Horizon::Horizon(const SimInput& input, const SimTrace& trace, const std::vector<int64_t>& alone_ps,
                 std::vector<Lane>& lanes)
    : in_(input), trace_(trace), lanes_(lanes) {
  std::vector<int64_t> fastest;  // of the groups of each use
  for (const SimGraph::Use& use : in_.sim.uses) {
    const auto begin = alone_ps.begin() + use.first_group;
    fastest.push_back(use.num_groups == 0 ? 0 : *std::min_element(begin, begin + use.num_groups));
  }
  for (const SimGraph::Entity& entity : in_.sim.entities) {
    // Entities of a program are neighbours, so a look back finds most.
    const auto found = std::find_if(work_.rbegin(), work_.rend(), [&](const Work& work) {
      return work.program == entity.program && work.price_row == entity.price_row;
    });
    if (found != work_.rend()) {
      work_of_.push_back(static_cast<int32_t>(work_.rend() - found) - 1);
      continue;
    }
    work_of_.push_back(static_cast<int32_t>(work_.size()));
    work_.push_back(WorkOf(entity, fastest));
  }
}

Horizon::Work Horizon::WorkOf(const SimGraph::Entity& entity,
                              const std::vector<int64_t>& fastest) const {
  Work work;
  work.program = entity.program;
  work.price_row = entity.price_row;
  work.blocks.resize(in_.graph.blocks.size());
  const std::vector<Instance>& instances = in_.graph.programs[entity.program].instances;
  const ProgramIndex& program = in_.index.program(entity.program);
  int64_t sum[kNumStreams] = {};
  for (uint32_t rest = program.kernel_streams; rest != 0; rest &= rest - 1) {
    work.before[__builtin_ctz(rest)].reserve(instances.size());
  }
  for (const Instance& instance : instances) {
    const Block& block = in_.graph.blocks[instance.block];
    const BlockIndex& index = in_.index.block(instance.block);
    BlockWork& own = work.blocks[instance.block];
    if (own.until.empty() && index.kernel_streams != 0) {
      own.until.resize(index.size);
      for (int32_t t = 0; t < index.size; ++t) {
        const int stream = static_cast<int>(block.stream[t]);
        const int32_t before =
            index.rank[t] == 0 ? -1 : index.order[index.order_begin[stream] + index.rank[t] - 1];
        for (int32_t d = index.dep_begin[t]; d < index.dep_begin[t + 1] && before >= 0; ++d) {
          const int32_t dep = index.deps[d];
          if (block.kind[dep] != TaskKind::kComm || dep == block.rendezvous_task) continue;
          for (int32_t i = index.dep_begin[dep]; i < index.dep_begin[dep + 1]; ++i) {
            if (index.deps[i] != before) continue;
            own.whole[stream] += fastest[in_.uses.OfComm(entity.program, block.spec[dep])];
          }
        }
        if (block.kind[t] == TaskKind::kKernel) {
          own.whole[stream] += in_.prices.Duration(entity.price_row, block.spec[t]);
        }
        own.until[t] = own.whole[stream];
      }
    }
    for (uint32_t rest = program.kernel_streams; rest != 0; rest &= rest - 1) {
      const int s = __builtin_ctz(rest);
      work.before[s].push_back(sum[s]);
      sum[s] += own.whole[s] * instance.layer_count;
    }
  }
  return work;
}

int64_t Horizon::WorkUntil(int32_t entity, int stream, const TaskRef& ref) const {
  const Work& work = work_[work_of_[entity]];
  if (work.before[stream].empty()) return 0;
  const BlockWork& block = work.blocks[in_.index.InstanceOf(work.program, ref.instance).block];
  return work.before[stream][ref.instance] + block.whole[stream] * ref.copy +
         (block.until.empty() ? 0 : block.until[ref.task]);
}

int64_t Horizon::WorkBefore(int32_t entity, int stream, const Lane& lane) const {
  const Work& work = work_[work_of_[entity]];
  if (work.before[stream].empty()) return 0;
  const int32_t block = in_.index.InstanceOf(work.program, lane.instance).block;
  const BlockIndex& index = in_.index.block(block);
  int64_t within = 0;
  if (lane.rank > 0 && !work.blocks[block].until.empty()) {
    within = work.blocks[block].until[index.order[index.order_begin[stream] + lane.rank - 1]];
  }
  return work.before[stream][lane.instance] + work.blocks[block].whole[stream] * lane.copy + within;
}

int64_t Horizon::Of(int32_t entity, int stream, int64_t now, int64_t need) {
  int64_t horizon = kNever;
  for (int other = 0; other < kNumStreams && horizon >= need; ++other) {
    if (other == stream) continue;
    horizon = std::min(horizon, OfLane(entity * kNumStreams + other, stream, now, need));
  }
  return horizon;
}

// What waits for a task of the plan begins when that is over: not before what it
// might disturb, if the plan has no more copies than it leaves.
void Horizon::Heed(Plan& plan, int stream, const TaskRef& ref) const {
  const BlockIndex& block = in_.index.BlockAt(in_.ProgramOf(plan.entity), plan.instance);
  const bool within = ref.instance == plan.instance;
  const int32_t copy = ref.copy - plan.first_copy;
  if (within && plan.end[ref.task] >= plan.undisturbed) {
    plan.copies = std::min(plan.copies, copy + 1);
    return;
  }
  // It comes after what the plan does in its stream, and the work in between.
  const TaskRef last{plan.instance, plan.first_copy + (within ? copy : plan.copies) - 1,
                     block.Last(stream)};
  const int64_t between =
      WorkUntil(plan.entity, stream, ref) - WorkUntil(plan.entity, stream, last);
  if (plan.end[last.task] + between < plan.undisturbed) {
    plan.copies = 0;
  } else if (within) {
    plan.copies = std::min(plan.copies, copy);
  }
}

int64_t Horizon::OfLane(int32_t lane_index, uint32_t streams, Plan* plan, int64_t now, int64_t need,
                        int depth) {
  const int32_t entity = lane_index / kNumStreams;
  Lane& lane = lanes_[lane_index];
  // Bounds only rise, so one that is enough stays so.
  switch (lane.state) {
    case Lane::kIdle:
      return lane.done() ? kNever : now;
    case Lane::kBlocked: {
      if ((streams >> lane.blocking_stream & 1) != 0) return kNever;
      if (lane.bound >= need) break;
      const int64_t end = EndOf(entity, lane.blocker, streams, plan, now, depth);
      if (streams != 0 || plan != nullptr) return end;
      lane.bound = std::max(lane.bound, end);
      break;
    }
    case Lane::kMeets: {
      if (lane.bound >= need) break;
      const int64_t begin = OfMeeting(lane_index, plan, now);
      if (plan != nullptr) return begin;
      lane.bound = std::max(lane.bound, begin);
      break;
    }
    case Lane::kFlies:
    case Lane::kKernel:
      break;
  }
  return std::max(now, lane.bound);
}

// All members that have not come yet have to come first.
int64_t Horizon::OfMeeting(int32_t lane_index, Plan* plan, int64_t now) const {
  const int32_t entity = lane_index / kNumStreams, program = in_.ProgramOf(entity);
  const Lane& lane = lanes_[lane_index];
  const BlockIndex& index = in_.index.BlockAt(program, lane.instance);
  const TaskRef ref{lane.instance, lane.copy,
                    index.order[index.order_begin[lane_index % kNumStreams] + lane.rank]};
  const Block& block = in_.BlockAt(entity, lane.instance);
  const bool meets = ref.task == block.rendezvous_task;
  int64_t bound = std::max(now, lane.bound);
  for (const int32_t member : in_.sim.MembersOf(in_.sim.groups[in_.GroupOf(entity, ref)])) {
    if (member == entity) continue;
    const TaskRef own =
        meets ? in_.index.AtRendezvous(in_.index.InstanceOf(program, ref.instance).rendezvous,
                                       in_.ProgramOf(member))
              : ref;
    bound = std::max(bound, BeginOf(member, own, 0, plan, now, kDepth - 1));
  }
  return bound;
}

int64_t Horizon::BeginOf(int32_t entity, const TaskRef& ref, uint32_t streams, Plan* plan,
                         int64_t now, int depth) const {
  const int32_t program = in_.ProgramOf(entity);
  const BlockIndex& block = in_.index.BlockAt(program, ref.instance);
  int64_t bound = now;
  TaskIndex::Refs waits;
  for (int32_t d = block.dep_begin[ref.task]; d < block.dep_begin[ref.task + 1]; ++d) {
    waits.push_back({ref.instance, ref.copy, block.deps[d]});
  }
  for (int32_t p = block.port_begin[ref.task]; p < block.port_begin[ref.task + 1]; ++p) {
    in_.index.TasksOfPort(program, ref.instance, ref.copy, block.ports[p], waits);
  }
  if (ref.copy == 0 && block.rank[ref.task] == 0) {
    const int32_t gate = in_.BlockAt(entity, ref.instance).num_in_ports;
    in_.index.TasksOfPort(program, ref.instance, 0, gate, waits);
  }
  for (const TaskRef& wait : waits) {
    bound = std::max(bound, EndOf(entity, wait, streams, plan, now, depth));
  }
  return bound;
}

int64_t Horizon::BeginAfterPlan(const TaskRef& ref, Plan& plan, int64_t now, int depth) const {
  const int32_t program = in_.ProgramOf(plan.entity);
  const int32_t copies_end = plan.first_copy + plan.copies;
  const BlockIndex& own = in_.index.BlockAt(program, plan.instance);
  const auto end_of = [&](const TaskRef& of) {
    return plan.origin + plan.period * (of.copy - plan.first_copy) + plan.end[of.task];
  };
  int64_t bound =
      end_of({plan.instance, copies_end - 1, own.Last(in_.index.StreamOf(program, ref))});
  TaskIndex::Refs waits;
  in_.index.WaitsOf(program, ref, waits);
  for (const TaskRef& wait : waits) {
    const int stream = in_.index.StreamOf(program, wait);
    if ((plan.streams >> stream & 1) == 0) {
      bound = std::max(bound, EndOf(plan.entity, wait, 0, &plan, now, depth));
    } else if (wait.instance < plan.instance) {
      bound = std::max(bound, EndOf(plan.entity, wait, 0, nullptr, now, 0));
    } else if (wait.instance == plan.instance && wait.copy < copies_end) {
      bound = std::max(bound, end_of(wait));
    } else {
      bound = std::max(bound, end_of({plan.instance, copies_end - 1, own.Last(stream)}));
      if (depth > 0) bound = std::max(bound, BeginAfterPlan(wait, plan, now, depth - 1));
    }
  }
  return bound;
}

int64_t Horizon::EndOf(int32_t entity, const TaskRef& ref, uint32_t streams, Plan* plan,
                       int64_t now, int depth) const {
  const int32_t program = in_.ProgramOf(entity);
  const Block& block = in_.BlockAt(entity, ref.instance);
  const int64_t known = trace_.EndOf(entity, ref, block.size());
  if (known >= 0) return std::max(known, now);
  const int own = static_cast<int>(block.stream[ref.task]);
  if ((streams >> own & 1) != 0) return kNever;
  if (plan != nullptr && plan->entity == entity && (plan->streams >> own & 1) != 0) {
    Heed(*plan, own, ref);
    return kNever;
  }
  const Lane& lane = lanes_[entity * kNumStreams + own];
  int64_t from = now;  // when the next task begins or, under way, ends
  bool begins = true;
  switch (lane.state) {
    case Lane::kIdle:
      break;
    case Lane::kBlocked:
      if (depth == 0) break;
      from = std::max(from, EndOf(entity, lane.blocker, streams, plan, now, depth - 1));
      break;
    case Lane::kMeets:
      from = std::max(from, lane.bound);
      break;
    case Lane::kFlies:
    case Lane::kKernel:
      from = std::max(from, lane.bound);
      begins = false;
      break;
  }
  if (from == kNever) return kNever;
  const int64_t until = WorkUntil(entity, own, ref), before = WorkBefore(entity, own, lane);
  const BlockIndex& index = in_.index.BlockAt(program, lane.instance);
  const TaskRef next{lane.instance, lane.copy, index.order[index.order_begin[own] + lane.rank]};
  const int64_t past = WorkUntil(entity, own, next);
  if (begins && in_.BlockAt(entity, next.instance).kind[next.task] == TaskKind::kKernel) {
    from += in_.prices.Duration(in_.sim.entities[entity].price_row,
                                in_.BlockAt(entity, next.instance).spec[next.task]);
  }
  from += until - past;
  from = std::max(from, lane.last_end + until - before);
  if (depth == 0 || block.kind[ref.task] == TaskKind::kKernel) return from;
  return std::max(from, BeginOf(entity, ref, streams, plan, now, depth - 1));
}

}  // namespace plancast
