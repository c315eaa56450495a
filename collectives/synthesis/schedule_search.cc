#include "collectives/synthesis/schedule_search.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/synthesis/bounds.h"
#include "collectives/synthesis/schedule_encoding.h"
#include "collectives/synthesis/symmetry.h"

namespace plancast {
namespace {

using Deal = std::vector<int32_t>;  // rounds of each step

void Extend(int32_t steps, int32_t rounds, Deal& deal, std::vector<Deal>& out) {
  if (steps == 0) {
    if (rounds == 0) out.push_back(deal);
    return;
  }
  for (int32_t first = 1; first + steps - 1 <= rounds; ++first) {
    deal.push_back(first);
    Extend(steps - 1, rounds - first, deal, out);
    deal.pop_back();
  }
}

// A try gets so many conflicts, and ten times as many in the next turn.
constexpr int64_t kFirstTurn = 2000;

// Ways of dealing `rounds` to `steps`, at least one to each: (rounds - 1) over
// (steps - 1), or what is more than kMostDeals.
int64_t CountDeals(int32_t steps, int32_t rounds) {
  int64_t ways = 1;
  for (int64_t k = 1; k < steps && ways <= kMostDeals; ++k) ways = ways * (rounds - k) / k;
  return std::max<int64_t>(ways, 0);
}

absl::Status CheckSize(const LinkGraph& graph, const SynthesisProblem& problem, int32_t steps,
                       int32_t rounds) {
  const int64_t variables = int64_t{problem.chunks()} * steps *
                            (graph.nodes() + static_cast<int64_t>(graph.links().size()));
  if (variables > kMostSearchVariables) {
    return absl::OutOfRangeError(
        absl::StrCat(problem.chunks(), " chunks in ", steps, " steps over ", graph.links().size(),
                     " links are a search over ", variables, " variables; it takes up to ",
                     kMostSearchVariables, ". Ask for fewer chunks or steps."));
  }
  if (CountDeals(steps, rounds) > kMostDeals) {
    return absl::OutOfRangeError(
        absl::StrCat(rounds, " rounds can be dealt to ", steps, " steps in more than ", kMostDeals,
                     " ways, the most that are searched. Ask for fewer steps, or for rounds ",
                     "closer to them."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SearchResult> FindSchedule(const LinkGraph& graph, const SynthesisProblem& problem,
                                          int32_t steps, int32_t rounds, int64_t conflicts) {
  RETURN_IF_ERROR(CheckSize(graph, problem, steps, rounds));
  SearchResult result;
  int64_t work = kMostSearchWork;
  std::vector<Deal> deals, open;
  Deal deal;
  Extend(steps, rounds, deal, deals);
  for (const Deal& each : deals) {
    if (FlowsExist(graph, problem, each, nullptr)) open.push_back(each);
  }
  std::vector<std::vector<Permutation>> groups;
  for (std::vector<Permutation>& group : FreeGroups(graph)) {
    if (ScheduleEncoding::Keeps(problem, group)) groups.push_back(std::move(group));
  }
  // Without the last, the identity alone, a search that ends proves nothing.
  std::vector<std::pair<size_t, Deal>> ended;
  for (int64_t turn = kFirstTurn; !open.empty(); turn *= 10) {
    for (size_t g = 0; g < groups.size(); ++g) {
      for (size_t d = 0; d < open.size(); ++d) {
        if (std::find(ended.begin(), ended.end(), std::make_pair(g, open[d])) != ended.end()) {
          continue;
        }
        const int64_t left = std::min(turn, conflicts - result.conflicts);
        if (left <= 0 || work <= 0) return result;
        ScheduleEncoding encoding(graph, problem, open[d], groups[g]);
        const CardinalitySolver::Answer answer = encoding.solver().Solve(left, work);
        result.conflicts += encoding.solver().conflicts();
        work -= encoding.solver().work();
        if (answer == CardinalitySolver::Answer::kSatisfiable) {
          result.answer = SearchResult::Answer::kFound;
          result.schedule = encoding.Schedule();
          return result;
        }
        if (answer == CardinalitySolver::Answer::kUnsatisfiable) {
          ended.emplace_back(g, open[d]);
        }
      }
    }
    open.erase(std::remove_if(open.begin(), open.end(),
                              [&](const Deal& each) {
                                return std::find(ended.begin(), ended.end(),
                                                 std::make_pair(groups.size() - 1, each)) !=
                                       ended.end();
                              }),
               open.end());
  }
  result.answer = SearchResult::Answer::kNone;
  result.proof = ended.empty() ? "bound" : "search";
  return result;
}

absl::Status VerifySchedule(const LinkGraph& graph, const SynthesisProblem& problem,
                            const SynchronousSchedule& schedule) {
  const auto wrong = [](int32_t step, const ScheduledSend& send, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("step ", step, ", chunk ", send.chunk,
                                                   " from node ", send.from, " to node ", send.to,
                                                   ": ", what, "."));
  };
  std::vector<uint32_t> holders;
  for (int32_t c = 0; c < problem.chunks(); ++c) {
    holders.push_back(uint32_t{1} << problem.need(c).origin);
  }
  for (int32_t s = 0; s < static_cast<int32_t>(schedule.steps.size()); ++s) {
    const SynchronousSchedule::Step& step = schedule.steps[s];
    std::vector<uint32_t> after = holders;
    std::map<int32_t, int64_t> crossing;
    for (const ScheduledSend& send : step.sends) {
      const int32_t link = graph.Find(send.from, send.to);
      if (link < 0) return wrong(s, send, "there is no link");
      if (++crossing[link] > int64_t{graph.links()[link].width} * step.rounds) {
        return wrong(s, send, "the link is full");
      }
      if (((holders[send.chunk] >> send.from) & 1) == 0) {
        return wrong(s, send, "the node does not have it yet");
      }
      after[send.chunk] |= uint32_t{1} << send.to;
    }
    holders = std::move(after);
  }
  for (int32_t c = 0; c < problem.chunks(); ++c) {
    if ((problem.need(c).needed & ~holders[c]) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("chunk ", c, " does not reach every node that needs it."));
  }
  return absl::OkStatus();
}

}  // namespace plancast
