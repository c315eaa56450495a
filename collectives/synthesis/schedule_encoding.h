#ifndef PLANCAST_COLLECTIVES_SYNTHESIS_SCHEDULE_ENCODING_H_
#define PLANCAST_COLLECTIVES_SYNTHESIS_SCHEDULE_ENCODING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "collectives/synthesis/cardinality_solver.h"
#include "collectives/synthesis/link_graph.h"
#include "collectives/synthesis/problem.h"
#include "collectives/synthesis/symmetry.h"

namespace plancast {

// The question for a schedule with rounds[s] rounds in step s, as clauses: whether
// chunk c crosses link l in step s, and whether node v has it after step s. With a
// group of automorphisms that move every node, only schedules that the group
// keeps: one chunk of each orbit decides for all.
class ScheduleEncoding {
 public:
  // Whether the group maps every need to a need.
  static bool Keeps(const SynthesisProblem& problem, const std::vector<Permutation>& group);

  // `group` is kept by the problem. All must outlive the encoding.
  ScheduleEncoding(const LinkGraph& graph, const SynthesisProblem& problem,
                   absl::Span<const int32_t> rounds, const std::vector<Permutation>& group);

  CardinalitySolver& solver() { return solver_; }
  // Of the model that the solver found, less sends that serve no need.
  SynchronousSchedule Schedule() const;

 private:
  struct Send {
    int32_t need, copy, link, step;
    Literal literal;
  };

  void AddChunk(int32_t need, int32_t copy);
  void AddLinks();
  void BreakTies(int32_t need);
  int32_t Image(const Permutation& permutation, int32_t link) const;

  const LinkGraph& graph_;
  const SynthesisProblem& problem_;
  const absl::Span<const int32_t> rounds_;
  const std::vector<Permutation>& group_;
  CardinalitySolver solver_;
  std::vector<Send> sends_;
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_SYNTHESIS_SCHEDULE_ENCODING_H_
