#ifndef PLANCAST_COMPILER_PROGRAM_REPEATED_TURNS_H_
#define PLANCAST_COMPILER_PROGRAM_REPEATED_TURNS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/program/program_writer.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {

// Turns of a schedule that are like the one before them, for later micro-batches: the first are
// written pass by pass, and as soon as one has appended what the one before it did, the others are
// copies. Whoever writes passes says what passes leave for later ones, and which are not written
// the way of those before.
class RepeatedTurns {
 public:
  explicit RepeatedTurns(ProgramWriter* writer) : writer_(*writer) {}

  // Of a schedule, up to the first pass that is the last of its chunk. A turn is of so many
  // micro-batches at most. Without it none is looked for.
  void Begin(const std::vector<ScheduleStep>& schedule, const LastPasses& last_passes,
             int64_t most_micro_batches);
  // Step `begin` is next, and all before it is written. Appends what the turns from there on do, if
  // that is known; how many steps those are.
  size_t Append(size_t begin);
  // A pass leaves an instance in `column`, for one of its micro-batch.
  void Leave(std::vector<int32_t>* column, int32_t micro_batch, int32_t instance) {
    (*column)[micro_batch] = instance;
    if (length_ > 0) left_.push_back({column, micro_batch, instance});
  }
  // A pass is not written like those before.
  void NoteOther() { others_ = true; }

 private:
  struct Left {
    std::vector<int32_t>* column;
    int32_t micro_batch, instance;
  };
  // What there is when a turn begins.
  struct Mark {
    int32_t instances = 0;
    size_t joins = 0, meetings = 0, left = 0;
  };

  void Stop();
  Mark Now() const;
  // Whether the last turn did what the one before it did.
  bool IsLikeBefore() const;
  // Whether all that the last turn refers to is of turns since `first`, or its own.
  bool RefersTo(int32_t first) const;

  ProgramWriter& writer_;
  size_t length_ = 0;  // steps of a turn; 0: none is looked for
  size_t end_ = 0;     // of the steps that are like those a turn before
  int32_t micro_batches_ = 0;
  size_t next_ = 0;  // the step that the next turn begins with
  bool others_ = false;
  std::vector<Mark> marks_;
  size_t alike_ = 0;  // the first mark since which turns are alike
  std::vector<ProgramWriter::Meeting> meetings_;
  std::vector<Left> left_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_REPEATED_TURNS_H_
