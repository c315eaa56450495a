#ifndef PLANCAST_GRAPH_EXECUTION_PROGRAM_OUTLINE_H_
#define PLANCAST_GRAPH_EXECUTION_PROGRAM_OUTLINE_H_

#include <cstdint>
#include <vector>

#include "graph/execution/execution_graph.h"

namespace plancast {

// What memory needs of a program: instances in the order of issue without what they wait
// for, and those of equal turns of the schedule written once.
struct ProgramOutline {
  // Instances of one turn that follow one another: [begin, end) of `written`.
  struct Part {
    int32_t begin = 0, end = 0;
    int32_t micro_batch = 0;  // of the turn that they were written for
  };
  // A part that runs, so many micro-batches later than as it is written.
  struct Turn {
    int32_t part = 0;
    int32_t later = 0;
  };

  Program written;  // every part runs at least once; no joins, no rendezvous
  std::vector<Part> parts;
  std::vector<Turn> turns;
  // Turns [like_begin, like_end) would come again behind themselves in a program of more
  // micro-batches; equal: none is left out.
  int32_t like_begin = 0, like_end = 0;

  void Clear() {
    written.instances.clear();
    parts.clear();
    turns.clear();
    like_begin = like_end = 0;
  }
};

// Calls `use(instance, later)` for all of them, in order, until it says false; `later`: by how many
// micro-batches each is later than it is written.
template <typename Use>
void ForEachIssued(const ProgramOutline& outline, const Use& use) {
  for (const ProgramOutline::Turn& turn : outline.turns) {
    const ProgramOutline::Part& part = outline.parts[turn.part];
    for (int32_t i = part.begin; i < part.end; ++i) {
      if (!use(outline.written.instances[i], turn.later)) return;
    }
  }
}

}  // namespace plancast

#endif  // PLANCAST_GRAPH_EXECUTION_PROGRAM_OUTLINE_H_
