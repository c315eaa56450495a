#include "executor/simulate/deadlock.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {
namespace {

class Search {
 public:
  Search(const SimInput& in, const std::vector<Lane>& lanes) : in_(in), lanes_(lanes) {}

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

  int32_t FirstUnfinished() const {
    int32_t lane = 0;
    while (lanes_[lane].done()) ++lane;
    return lane;
  }

  TaskRef TaskOf(int32_t at) const {
    const Lane& lane = lanes_[at];
    const BlockIndex& block = in_.index.BlockAt(in_.ProgramOf(EntityOf(at)), lane.instance);
    return {lane.instance, lane.copy, block.order[block.order_begin[at % kNumStreams] + lane.rank]};
  }

  // The lane whose first task `lane` waits for.
  int32_t BlockerOf(int32_t at) const {
    const Lane& lane = lanes_[at];
    if (lane.state == Lane::kMeets) return MissingPeer(EntityOf(at), TaskOf(at));
    if (lane.state != Lane::kBlocked) return -1;
    return EntityOf(at) * kNumStreams + lane.blocking_stream;
  }

  // The lane of a member that has not come to the communication `ref`.
  int32_t MissingPeer(int entity, const TaskRef& ref) const {
    const int32_t program = in_.ProgramOf(entity);
    const bool meets = ref.task == in_.BlockAt(entity, ref.instance).rendezvous_task;
    for (int32_t peer : in_.sim.MembersOf(in_.sim.groups[in_.GroupOf(entity, ref)])) {
      const int32_t their_program = in_.ProgramOf(peer);
      const TaskRef theirs =
          meets ? in_.index.AtRendezvous(in_.index.InstanceOf(program, ref.instance).rendezvous,
                                         their_program)
                : ref;
      const int32_t lane = peer * kNumStreams + in_.index.StreamOf(their_program, theirs);
      if (peer == entity || (lanes_[lane].state == Lane::kMeets &&
                             lanes_[lane].place() >= in_.index.PlaceOf(their_program, theirs))) {
        continue;
      }
      return lane;
    }
    return -1;
  }

  std::string Name(int32_t lane) const {
    const int32_t p = in_.sim.entities[EntityOf(lane)].program;
    const Program& program = in_.graph.programs[p];
    const TaskRef ref = TaskOf(lane);
    const Instance& instance = program.instances[ref.instance];
    const Block& block = in_.graph.blocks[instance.block];
    return absl::StrCat("`", program.name, "` at `", block.name, "` task `", block.label[ref.task],
                        "` (instance ", ref.instance, ", micro-batch ", instance.micro_batch,
                        ", chunk ", instance.chunk, ")");
  }

  const SimInput& in_;
  const std::vector<Lane>& lanes_;
};

}  // namespace

absl::Status DeadlockError(const SimInput& input, const std::vector<Lane>& lanes) {
  return Search(input, lanes).Report();
}

}  // namespace plancast
