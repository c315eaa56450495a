#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "collectives/synthesis/synthesise.h"

namespace plancast {
namespace {

constexpr int32_t kUsualSteps = 8;  // beyond the least

struct Candidate {
  int32_t rounds, chunks;
  Ratio cost() const { return {rounds, chunks}; }
};

// Rounds and chunks that would beat `best` and the bound allows, cheapest first,
// and of equal ones those of fewer chunks.
std::vector<Candidate> Candidates(const ParetoRequest& request, const SynthesisBounds& bounds,
                                  int32_t steps, const Ratio* best) {
  const Ratio bound = bounds.rounds.rounds_per_chunk;
  // all_reduce has two halves of so many extra rounds.
  const int32_t stride = request.kind == ProgramKind::kAllReduce ? 2 : 1;
  const int32_t most = steps + stride * request.extra_rounds;
  std::vector<Candidate> out;
  for (int32_t rounds = steps; rounds <= most; rounds += stride) {
    for (int32_t chunks = 1; chunks <= SynthesisRequest::kMostChunks; ++chunks) {
      const Candidate candidate{rounds, chunks};
      if (candidate.cost() < bound) break;
      if (best == nullptr || candidate.cost() < *best) out.push_back(candidate);
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    if (!(a.cost() == b.cost())) return a.cost() < b.cost();
    return a.chunks < b.chunks;
  });
  return out;
}

}  // namespace

absl::StatusOr<ParetoFront> FindParetoFront(const LinkGraph& graph, const ParetoRequest& request) {
  ParetoFront front;
  ASSIGN_OR_RETURN(front.bounds, BoundsOf(graph, request.kind, request.root));
  const int32_t stride = request.kind == ProgramKind::kAllReduce ? 2 : 1;
  const int32_t last =
      request.most_steps > 0 ? request.most_steps : front.bounds.steps + kUsualSteps;
  bool gave_up = false, met = false;
  for (int32_t steps = front.bounds.steps; steps <= last && !met; steps += stride) {
    const bool first = front.points.empty();
    const Ratio best =
        first ? Ratio{} : Ratio{front.points.back().rounds, front.points.back().chunks};
    for (const Candidate& candidate :
         Candidates(request, front.bounds, steps, first ? nullptr : &best)) {
      SynthesisRequest wanted{request.kind,     steps,        candidate.rounds,
                              candidate.chunks, request.root, request.conflicts};
      absl::StatusOr<Synthesis> made = Synthesise(graph, wanted);
      if (absl::IsOutOfRange(made.status())) made = Synthesis();  // too large a search: given up
      ASSIGN_OR_RETURN(Synthesis synthesis, std::move(made));
      const SearchResult::Answer answer = synthesis.answer;
      const bool found = answer == SearchResult::Answer::kFound;
      gave_up = gave_up || answer == SearchResult::Answer::kGaveUp;
      (found ? front.points : front.others)
          .push_back({steps, candidate.rounds, candidate.chunks, std::move(synthesis)});
      if (!found) continue;
      met = candidate.cost() == front.bounds.rounds.rounds_per_chunk;
      break;
    }
  }
  front.complete = met && !gave_up;
  return front;
}

}  // namespace plancast
