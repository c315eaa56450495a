#include "collectives/synthesis/bounds.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "collectives/synthesis/max_flow.h"

namespace plancast {
namespace {

std::string NodesOf(uint32_t set) {
  std::string out;
  for (int32_t v = 0; v < 32; ++v) {
    if (((set >> v) & 1) != 0) absl::StrAppend(&out, out.empty() ? "" : ", ", v);
  }
  return absl::StrCat("{", out, "}");
}

// Chunks from elsewhere to `node` (`arrive`) or from `node` to where only one
// node needs them, through as many layers of nodes as there are steps.
bool FlowExists(const LinkGraph& graph, const SynthesisProblem& problem,
                absl::Span<const int32_t> rounds, int32_t node, bool arrive) {
  const int32_t n = graph.nodes();
  const auto steps = static_cast<int32_t>(rounds.size());
  const int32_t source = n * (steps + 1), sink = source + 1;
  constexpr int64_t kAny = std::numeric_limits<int32_t>::max();
  MaxFlow flow(sink + 1);
  for (int32_t s = 0; s < steps; ++s) {
    for (int32_t v = 0; v < n; ++v) flow.AddArc(s * n + v, (s + 1) * n + v, kAny);
    for (const GraphLink& link : graph.links()) {
      flow.AddArc(s * n + link.from, (s + 1) * n + link.to, int64_t{link.width} * rounds[s]);
    }
  }
  int64_t demand = 0;
  for (const ChunkNeed& need : problem.needs) {
    const bool single = (need.needed & (need.needed - 1)) == 0;
    if (arrive ? !need.NeededAt(node) : need.origin != node || !single) continue;
    demand += problem.copies;
    flow.AddArc(source, need.origin, problem.copies);
    for (int32_t v = 0; v < n; ++v) {
      const bool here = arrive ? v == node : need.NeededAt(v);
      if (here) flow.AddArc(steps * n + v, sink, problem.copies);
    }
  }
  return flow.Solve(source, sink) == demand;
}

}  // namespace

Ratio Reduced(int64_t numerator, int64_t denominator) {
  const int64_t divisor = std::max<int64_t>(std::gcd(numerator, denominator), 1);
  return {numerator / divisor, denominator / divisor};
}

int32_t StepsBound(const LinkGraph& graph, const SynthesisProblem& problem) {
  int32_t steps = 0;
  for (const ChunkNeed& need : problem.needs) {
    for (int32_t v = 0; v < graph.nodes(); ++v) {
      if (need.NeededAt(v)) steps = std::max(steps, graph.Distance(need.origin, v));
    }
  }
  return steps;
}

RoundsBound BoundRounds(const LinkGraph& graph, const SynthesisProblem& problem) {
  RoundsBound best{{0, 1}, "nothing to move"};
  const auto offer = [&](int64_t chunks, int64_t width, const auto& reason) {
    if (best.rounds_per_chunk < Ratio{chunks, width}) best = {Reduced(chunks, width), reason()};
  };
  const uint32_t sets = uint32_t{1} << graph.nodes();
  for (uint32_t set = 1; set + 1 < sets; ++set) {
    int64_t width = 0, chunks = 0;
    for (const GraphLink& link : graph.links()) {
      if (((set >> link.to) & 1) != 0 && ((set >> link.from) & 1) == 0) width += link.width;
    }
    for (const ChunkNeed& need : problem.needs) {
      if (((set >> need.origin) & 1) == 0 && (need.needed & set) != 0) ++chunks;
    }
    offer(chunks, width, [&] {
      return absl::StrCat(chunks, " chunks enter ", NodesOf(set), " over links of width ", width);
    });
  }
  int64_t hops = 0, width = 0;
  for (const ChunkNeed& need : problem.needs) {
    int64_t farthest = 0, places = 0;
    for (int32_t v = 0; v < graph.nodes(); ++v) {
      if (!need.NeededAt(v)) continue;
      ++places;
      farthest = std::max<int64_t>(farthest, graph.Distance(need.origin, v));
    }
    hops += std::max(farthest, places);
  }
  for (const GraphLink& link : graph.links()) width += link.width;
  offer(hops, width,
        [&] { return absl::StrCat(hops, " hops over links of width ", width, " in all"); });
  return best;
}

bool FlowsExist(const LinkGraph& graph, const SynthesisProblem& problem,
                absl::Span<const int32_t> rounds, int32_t* node) {
  for (int32_t v = 0; v < graph.nodes(); ++v) {
    for (const bool arrive : {true, false}) {
      if (FlowExists(graph, problem, rounds, v, arrive)) continue;
      if (node != nullptr) *node = v;
      return false;
    }
  }
  return true;
}

}  // namespace plancast
