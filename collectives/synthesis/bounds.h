#ifndef PLANCAST_COLLECTIVES_SYNTHESIS_BOUNDS_H_
#define PLANCAST_COLLECTIVES_SYNTHESIS_BOUNDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "collectives/synthesis/link_graph.h"
#include "collectives/synthesis/problem.h"

// What no algorithm can beat, whatever it does.

namespace plancast {

struct Ratio {
  int64_t numerator = 0, denominator = 1;

  double value() const { return static_cast<double>(numerator) / denominator; }
  friend bool operator<(const Ratio& a, const Ratio& b) {
    return a.numerator * b.denominator < b.numerator * a.denominator;
  }
  friend bool operator==(const Ratio& a, const Ratio& b) { return !(a < b) && !(b < a); }
};

// Lowest terms.
Ratio Reduced(int64_t numerator, int64_t denominator);

// Steps: the longest of the shortest ways from a chunk to where it is needed.
int32_t StepsBound(const LinkGraph& graph, const SynthesisProblem& problem);

// Rounds for each chunk of a node (copies = 1), and why.
struct RoundsBound {
  Ratio rounds_per_chunk;
  // "7 chunks enter {0} over links of width 6", or hops counted.
  std::string reason;
};

// The largest of: for every set of nodes, chunks that must enter it over the width
// of its links; hops that all chunks must make over the width of all links.
RoundsBound BoundRounds(const LinkGraph& graph, const SynthesisProblem& problem);

// Whether, for each node by itself, the chunks that it needs can flow there when
// step s has rounds[s]; and the chunks that leave a node to where only one node
// needs them. False proves that there is no algorithm; `node` is then the one.
bool FlowsExist(const LinkGraph& graph, const SynthesisProblem& problem,
                absl::Span<const int32_t> rounds, int32_t* node);

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_SYNTHESIS_BOUNDS_H_
