#include "executor/deadlock.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {
namespace {

class Search {
 public:
  Search(const SimInput& in, const SimTrace& trace, const std::vector<int32_t>& next)
      : in_(in), trace_(trace), next_(next) {}

  absl::Status Report() const {
    std::vector<int32_t> path;  // lanes
    int32_t lane = FirstUnfinished();
    while (std::find(path.begin(), path.end(), lane) == path.end()) {
      path.push_back(lane);
      const int32_t blocker = BlockerOf(lane);
      if (blocker < 0) break;
      lane = blocker;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), lane));
    path.push_back(lane);
    return absl::FailedPreconditionError(absl::StrCat(
        "the schedule deadlocks: ",
        absl::StrJoin(path, ", which waits for ",
                      [&](std::string* out, int32_t at) { absl::StrAppend(out, Name(at)); }),
        ". Issue the communications of neighbouring stages in the same order, or give "
        "them streams of their own."));
  }

 private:
  int EntityOf(int32_t lane) const { return lane / kNumStreams; }
  const TaskTable& TableOf(int entity) const {
    return in_.tables[in_.sim.entities[entity].program];
  }
  bool Over(int32_t lane) const {
    return next_[lane] == TableOf(EntityOf(lane)).stream_begin[lane % kNumStreams + 1];
  }
  int64_t At(int entity, int32_t task) const { return trace_.begin[entity] + task; }

  int32_t FirstUnfinished() const {
    int32_t lane = 0;
    while (Over(lane)) ++lane;
    return lane;
  }

  // The lane whose first task `lane` waits for.
  int32_t BlockerOf(int32_t lane) const {
    const int entity = EntityOf(lane);
    const TaskTable& table = TableOf(entity);
    const int32_t task = next_[lane];
    if (trace_.start[At(entity, task)] >= 0) return MissingPeer(entity, table, task);
    for (int32_t d = table.dep_begin[task]; d < table.dep_begin[task + 1]; ++d) {
      if (trace_.end[At(entity, table.deps[d])] < 0) {
        return entity * kNumStreams + table.StreamOf(table.deps[d]);
      }
    }
    if (!table.syncs_before.empty() && table.syncs_before[task] > 0) {
      const int32_t sync = table.sync_tasks[table.syncs_before[task] - 1];
      if (trace_.end[At(entity, sync)] < 0) return entity * kNumStreams + table.StreamOf(sync);
    }
    return -1;
  }

  // The lane of a member that has not come to the communication `task`.
  int32_t MissingPeer(int entity, const TaskTable& table, int32_t task) const {
    const bool meets = (table.flags[task] & TaskTable::kMeets) != 0;
    const int32_t spec = table.spec[task];
    const int32_t use = meets ? in_.uses.of_rendezvous[spec] : spec;
    for (int32_t peer : in_.sim.MembersOf(in_.sim.groups[in_.sim.GroupOf(use, entity)])) {
      const int32_t theirs =
          meets ? TaskAtRendezvous(in_.graph, in_.tables, spec, in_.sim.entities[peer].program)
                : task;
      if (peer == entity || trace_.start[At(peer, theirs)] >= 0) continue;
      return peer * kNumStreams + TableOf(peer).StreamOf(theirs);
    }
    return -1;
  }

  std::string Name(int32_t lane) const {
    const int32_t p = in_.sim.entities[EntityOf(lane)].program;
    const Program& program = in_.graph.programs[p];
    const TaskOrigin origin = OriginOf(in_.graph, p, in_.tables[p], next_[lane]);
    const Instance& instance = program.instances[origin.instance];
    const Block& block = in_.graph.blocks[instance.block];
    return absl::StrCat("`", program.name, "` at `", block.name, "` task `",
                        block.label[origin.block_task], "` (instance ", origin.instance,
                        ", micro-batch ", instance.micro_batch, ", chunk ", instance.chunk, ")");
  }

  const SimInput& in_;
  const SimTrace& trace_;
  const std::vector<int32_t>& next_;
};

}  // namespace

absl::Status DeadlockError(const SimInput& input, const SimTrace& trace,
                           const std::vector<int32_t>& next) {
  return Search(input, trace, next).Report();
}

}  // namespace plancast
