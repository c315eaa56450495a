#ifndef PLANCAST_COLLECTIVES_SYNTHESIS_MAX_FLOW_H_
#define PLANCAST_COLLECTIVES_SYNTHESIS_MAX_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plancast {

// The largest flow through a network (Dinic 1970).
class MaxFlow {
 public:
  explicit MaxFlow(int32_t nodes) : arcs_of_(nodes) {}

  void AddArc(int32_t from, int32_t to, int64_t capacity);
  // May be called once.
  int64_t Solve(int32_t source, int32_t sink);

 private:
  struct Arc {
    int32_t to;
    int64_t left;
  };
  bool Rank(int32_t source, int32_t sink);
  int64_t Push(int32_t node, int32_t sink, int64_t most);

  std::vector<Arc> arcs_;  // arc i and its reverse i ^ 1
  std::vector<std::vector<int32_t>> arcs_of_;
  std::vector<int32_t> rank_;
  std::vector<size_t> next_;
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_SYNTHESIS_MAX_FLOW_H_
