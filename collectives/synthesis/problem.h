#ifndef PLANCAST_COLLECTIVES_SYNTHESIS_PROBLEM_H_
#define PLANCAST_COLLECTIVES_SYNTHESIS_PROBLEM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/programs/program_kind.h"

namespace plancast {

// A chunk that one node has and others need.
struct ChunkNeed {
  int32_t origin = 0;
  uint32_t needed = 0;  // bit v: node v needs it; the origin's is not set

  bool NeededAt(int32_t node) const { return ((needed >> node) & 1) != 0; }
};

// Who has and who needs what when nothing is combined on the way (SCCL's pre- and
// postcondition; Cai et al., PPoPP 2021). `copies` chunks are alike: chunk i of
// needs[k] is numbered k * copies + i.
struct SynthesisProblem {
  std::vector<ChunkNeed> needs;
  int32_t copies = 1;

  int32_t chunks() const { return static_cast<int32_t>(needs.size()) * copies; }
  const ChunkNeed& need(int32_t chunk) const { return needs[chunk / copies]; }
};

// `copies` is SCCL's C: all_gather, gather: chunks of a node; broadcast: of the
// root; scatter, all_to_all: for each pair. Other kinds combine chunks: see
// synthesise.h. `root` of broadcast, gather and scatter.
absl::StatusOr<SynthesisProblem> MakeProblem(ProgramKind kind, int32_t nodes, int32_t copies,
                                             int32_t root);

// A chunk that a step moves over a link.
struct ScheduledSend {
  int32_t chunk = 0, from = 0, to = 0;
};

// A k-synchronous algorithm: a step's sends all start when the step before is
// done, and a link moves width * rounds chunks in it.
struct SynchronousSchedule {
  struct Step {
    int32_t rounds = 1;
    std::vector<ScheduledSend> sends;
  };
  std::vector<Step> steps;

  int32_t rounds() const;
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_SYNTHESIS_PROBLEM_H_
