#include "collectives/synthesis/schedule_encoding.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace plancast {
namespace {

ChunkNeed Moved(const ChunkNeed& need, const Permutation& permutation) {
  ChunkNeed out{permutation[need.origin], 0};
  for (size_t v = 0; v < permutation.size(); ++v) {
    if (need.NeededAt(static_cast<int32_t>(v))) out.needed |= uint32_t{1} << permutation[v];
  }
  return out;
}

int32_t IndexOf(const SynthesisProblem& problem, const ChunkNeed& need) {
  for (size_t k = 0; k < problem.needs.size(); ++k) {
    if (problem.needs[k].origin == need.origin && problem.needs[k].needed == need.needed) {
      return static_cast<int32_t>(k);
    }
  }
  return -1;
}

// Links from `node` to the nearest node that needs the chunk.
int32_t Remaining(const LinkGraph& graph, const ChunkNeed& need, int32_t node) {
  int32_t nearest = LinkGraph::kUnreachable;
  for (int32_t v = 0; v < graph.nodes(); ++v) {
    if (need.NeededAt(v)) nearest = std::min(nearest, graph.Distance(node, v));
  }
  return nearest;
}

}  // namespace

bool ScheduleEncoding::Keeps(const SynthesisProblem& problem,
                             const std::vector<Permutation>& group) {
  for (const Permutation& permutation : group) {
    for (const ChunkNeed& need : problem.needs) {
      if (IndexOf(problem, Moved(need, permutation)) < 0) return false;
    }
  }
  return true;
}

ScheduleEncoding::ScheduleEncoding(const LinkGraph& graph, const SynthesisProblem& problem,
                                   absl::Span<const int32_t> rounds,
                                   const std::vector<Permutation>& group)
    : graph_(graph), problem_(problem), rounds_(rounds), group_(group) {
  for (int32_t k = 0; k < static_cast<int32_t>(problem.needs.size()); ++k) {
    int32_t first = k;
    for (const Permutation& permutation : group) {
      first = std::min(first, IndexOf(problem, Moved(problem.needs[k], permutation)));
    }
    if (first != k) continue;
    for (int32_t copy = 0; copy < problem.copies; ++copy) AddChunk(k, copy);
    BreakTies(k);
  }
  AddLinks();
}

void ScheduleEncoding::AddChunk(int32_t need_index, int32_t copy) {
  const ChunkNeed& need = problem_.needs[need_index];
  const auto steps = static_cast<int32_t>(rounds_.size());
  const int32_t n = graph_.nodes();
  // Whether a node has the chunk before step s; none: it cannot.
  std::vector<std::vector<std::optional<Literal>>> has(steps + 1,
                                                       std::vector<std::optional<Literal>>(n));
  for (int32_t s = 1; s <= steps; ++s) {
    for (int32_t v = 0; v < n; ++v) {
      if (v != need.origin && graph_.Distance(need.origin, v) <= s)
        has[s][v] = solver_.NewVariable();
    }
  }
  for (int32_t v = 0; v < n; ++v) {
    if (v == need.origin) continue;
    std::vector<Literal> arrivals;
    for (int32_t s = 1; s <= steps; ++s) {
      if (!has[s][v]) continue;
      std::vector<Literal> reasons = {!*has[s][v]};
      if (has[s - 1][v]) {
        solver_.AddClause({!*has[s - 1][v], *has[s][v]});
        reasons.push_back(*has[s - 1][v]);
      }
      for (const int32_t link : graph_.into(v)) {
        const int32_t from = graph_.links()[link].from;
        if (graph_.Distance(need.origin, from) > s - 1) continue;
        if (s + Remaining(graph_, need, v) > steps) continue;
        const Literal sent = solver_.NewVariable();
        sends_.push_back({need_index, copy, link, s - 1, sent});
        arrivals.push_back(sent);
        reasons.push_back(sent);
        solver_.AddClause({!sent, *has[s][v]});
        if (has[s - 1][v]) solver_.AddClause({!sent, !*has[s - 1][v]});
        if (from != need.origin) solver_.AddClause({!sent, *has[s - 1][from]});
      }
      solver_.AddClause(std::move(reasons));
    }
    solver_.AddAtMost(arrivals, 1);
    if (!need.NeededAt(v)) continue;
    solver_.AddClause(arrivals);
    if (has[steps][v]) solver_.AddClause({*has[steps][v]});
  }
}

// Copies are alike: those that leave by the origin's first link in the first step
// come first.
void ScheduleEncoding::BreakTies(int32_t need) {
  const int32_t link = graph_.out_of(problem_.needs[need].origin)[0];
  const Literal* before = nullptr;
  for (const Send& send : sends_) {
    if (send.need != need || send.link != link || send.step != 0) continue;
    if (before != nullptr) solver_.AddClause({!send.literal, *before});
    before = &send.literal;
  }
}

int32_t ScheduleEncoding::Image(const Permutation& permutation, int32_t link) const {
  const GraphLink& ends = graph_.links()[link];
  return graph_.Find(permutation[ends.from], permutation[ends.to]);
}

void ScheduleEncoding::AddLinks() {
  std::map<std::pair<int32_t, int32_t>, std::vector<Literal>> crossing;  // of (link, step)
  for (const Send& send : sends_) {
    for (const Permutation& permutation : group_) {
      crossing[{Image(permutation, send.link), send.step}].push_back(send.literal);
    }
  }
  int32_t rounds = 0;
  for (const int32_t count : rounds_) rounds += count;
  std::vector<int64_t> demand(graph_.nodes());
  for (const ChunkNeed& need : problem_.needs) {
    for (int32_t v = 0; v < graph_.nodes(); ++v) {
      if (need.NeededAt(v)) demand[v] += problem_.copies;
    }
  }
  for (int32_t link = 0; link < static_cast<int32_t>(graph_.links().size()); ++link) {
    int32_t first = link;
    for (const Permutation& permutation : group_) first = std::min(first, Image(permutation, link));
    if (first != link) continue;  // its orbit is constrained already
    const int32_t to = graph_.links()[link].to;
    const bool full = demand[to] == int64_t{graph_.WidthInto(to)} * rounds;
    for (int32_t s = 0; s < static_cast<int32_t>(rounds_.size()); ++s) {
      const std::vector<Literal>& literals = crossing[{link, s}];
      const int32_t most = graph_.links()[link].width * rounds_[s];
      solver_.AddAtMost(literals, most);
      if (!full) continue;
      // As many chunks must come in as can: every link is busy.
      std::vector<Literal> absent;
      for (const Literal literal : literals) absent.push_back(!literal);
      solver_.AddAtMost(std::move(absent), static_cast<int32_t>(literals.size()) - most);
    }
  }
}

SynchronousSchedule ScheduleEncoding::Schedule() const {
  SynchronousSchedule out;
  for (const int32_t rounds : rounds_) out.steps.push_back({rounds, {}});
  for (const Send& send : sends_) {
    if (!solver_.Holds(send.literal)) continue;
    for (const Permutation& permutation : group_) {
      const int32_t need = IndexOf(problem_, Moved(problem_.needs[send.need], permutation));
      const GraphLink& link = graph_.links()[Image(permutation, send.link)];
      out.steps[send.step].sends.push_back(
          {need * problem_.copies + send.copy, link.from, link.to});
    }
  }
  std::set<std::pair<int32_t, int32_t>> forwarded;  // (chunk, node), in later steps
  for (size_t s = out.steps.size(); s-- > 0;) {
    std::vector<ScheduledSend>& sends = out.steps[s].sends;
    sends.erase(std::remove_if(sends.begin(), sends.end(),
                               [&](const ScheduledSend& send) {
                                 return !problem_.need(send.chunk).NeededAt(send.to) &&
                                        forwarded.count({send.chunk, send.to}) == 0;
                               }),
                sends.end());
    for (const ScheduledSend& send : sends) forwarded.emplace(send.chunk, send.from);
    std::sort(sends.begin(), sends.end(), [](const ScheduledSend& a, const ScheduledSend& b) {
      return std::make_pair(std::make_pair(a.from, a.to), a.chunk) <
             std::make_pair(std::make_pair(b.from, b.to), b.chunk);
    });
  }
  return out;
}

}  // namespace plancast
