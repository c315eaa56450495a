#include "executor/simulate/deadlock.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "executor/simulate/index/counterparts.h"

namespace plancast {
namespace {

class Search {
 public:
  Search(const SimInput& in, const std::vector<StreamCursor>& cursors)
      : in_(in), cursors_(cursors) {}

  absl::Status Report() const {
    std::vector<int32_t> path;  // cursors
    int32_t cursor = FirstUnfinished();
    while (std::find(path.begin(), path.end(), cursor) == path.end()) {
      path.push_back(cursor);
      const int32_t blocker = BlockerOf(cursor);
      if (blocker < 0) break;
      cursor = blocker;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), cursor));
    path.push_back(cursor);
    return absl::FailedPreconditionError(absl::StrCat(
        "the schedule deadlocks: ",
        absl::StrJoin(path, ", which waits for ",
                      [&](std::string* out, int32_t at) { absl::StrAppend(out, Name(at)); }),
        ". Issue the communications of neighbouring stages in the same order, or give "
        "them streams of their own."));
  }

 private:
  int32_t FirstUnfinished() const {
    int32_t cursor = 0;
    while (cursors_[cursor].done()) ++cursor;
    return cursor;
  }

  TaskRef TaskOf(int32_t at) const {
    const StreamCursor& cursor = cursors_[at];
    const BlockIndex& block = in_.index.BlockAt(in_.ProgramOf(EntityOf(at)), cursor.instance);
    return {cursor.instance, cursor.layer,
            block.order[block.order_begin[StreamOf(at)] + cursor.rank]};
  }

  // The cursor whose first task `cursor` waits for.
  int32_t BlockerOf(int32_t at) const {
    const StreamCursor& cursor = cursors_[at];
    if (cursor.state == StreamCursor::kMeeting) return MissingPeer(EntityOf(at), TaskOf(at));
    if (cursor.state != StreamCursor::kBlocked) return -1;
    return CursorOf(EntityOf(at), cursor.blocking_stream);
  }

  // The cursor of a member that has not come to the communication `ref`.
  int32_t MissingPeer(int entity, const TaskRef& ref) const {
    Counterparts counterparts(in_.graph, in_.uses, in_.index);
    for (int32_t peer : in_.sim.MembersOf(in_.sim.groups[in_.GroupOf(entity, ref)])) {
      const int32_t their_program = in_.ProgramOf(peer);
      const TaskRef theirs = counterparts.Of(in_.ProgramOf(entity), ref, their_program);
      const int32_t cursor = CursorOf(peer, in_.index.StreamOf(their_program, theirs));
      if (peer == entity ||
          (cursors_[cursor].state == StreamCursor::kMeeting &&
           cursors_[cursor].place() >= in_.index.PlaceOf(their_program, theirs))) {
        continue;
      }
      return cursor;
    }
    return -1;
  }

  std::string Name(int32_t cursor) const {
    const int32_t p = in_.sim.entities[EntityOf(cursor)].program;
    const Program& program = in_.graph.programs[p];
    const TaskRef ref = TaskOf(cursor);
    const Instance& instance = program.instances[ref.instance];
    const Block& block = in_.graph.blocks[instance.block];
    return absl::StrCat("`", program.name, "` at `", block.name, "` task `", block.label[ref.task],
                        "` (instance ", ref.instance, ", micro-batch ", instance.micro_batch,
                        ", chunk ", instance.chunk, ")");
  }

  const SimInput& in_;
  const std::vector<StreamCursor>& cursors_;
};

}  // namespace

absl::Status DeadlockError(const SimInput& input, const std::vector<StreamCursor>& cursors) {
  return Search(input, cursors).Report();
}

}  // namespace plancast
