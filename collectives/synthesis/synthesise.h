#ifndef PLANCAST_COLLECTIVES_SYNTHESIS_SYNTHESISE_H_
#define PLANCAST_COLLECTIVES_SYNTHESIS_SYNTHESISE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/programs/chunk_program.h"
#include "collectives/synthesis/bounds.h"
#include "collectives/synthesis/link_graph.h"
#include "collectives/synthesis/schedule_search.h"

// Algorithms for a topology, as SCCL finds them (Cai et al., "Synthesizing Optimal
// Collective Algorithms", PPoPP 2021): steps, rounds and chunks are given, and what
// comes out is an algorithm or the proof that there is none. Moving L bytes for
// each of C chunks costs steps * alpha + rounds / C * (C * L) * beta.

namespace plancast {

struct SynthesisRequest {
  ProgramKind kind = ProgramKind::kAllGather;
  int32_t steps = 1, rounds = 1;
  // Pieces that a part is cut into: what one rank contributes (all_gather,
  // gather) or gets (reduce_scatter, scatter), one rank's share of an all_reduce,
  // the message of a pair (all_to_all), the root's buffer (broadcast, reduce).
  int32_t chunks = 1;
  int32_t root = 0;
  int64_t conflicts = 2'000'000;  // after which the search gives up

  static constexpr int32_t kMostChunks = 64;
};

struct Synthesis {
  SearchResult::Answer answer = SearchResult::Answer::kGaveUp;
  std::string proof;  // of kNone: see SearchResult
  int64_t conflicts = 0;
  std::vector<int32_t> rounds;  // of each step, if found
  ChunkProgram program;         // passes CheckChunkProgram, if found
};

// reduce_scatter and reduce come from all_gather and broadcast on the links turned
// round; all_reduce is a reduce_scatter and an all_gather of half the steps and
// rounds each. InvalidArgument for odd ones, and for what cannot be asked.
absl::StatusOr<Synthesis> Synthesise(const LinkGraph& graph, const SynthesisRequest& request);

struct SynthesisBounds {
  int32_t steps = 0;
  RoundsBound rounds;
};
absl::StatusOr<SynthesisBounds> BoundsOf(const LinkGraph& graph, ProgramKind kind, int32_t root);

struct ParetoRequest {
  ProgramKind kind = ProgramKind::kAllGather;
  int32_t root = 0;
  int32_t extra_rounds = 4;  // SCCL's k: at most so many more rounds than steps
  int32_t most_steps = 0;    // 0: until the bound on rounds is met, or 8 more than the least
  int64_t conflicts = 2'000'000;
};

struct ParetoFront {
  SynthesisBounds bounds;
  struct Point {
    int32_t steps, rounds, chunks;
    Synthesis synthesis;
  };
  // More steps and fewer rounds per chunk from one to the next.
  std::vector<Point> points;
  // Better ones that were asked for: none exist, or the search gave up.
  std::vector<Point> others;
  // Whether nothing was given up and the last point meets the bound on rounds, so
  // that no algorithm with that many extra rounds, of any steps, is better.
  bool complete = false;
};

absl::StatusOr<ParetoFront> FindParetoFront(const LinkGraph& graph, const ParetoRequest& request);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_SYNTHESIS_SYNTHESISE_H_
