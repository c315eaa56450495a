#ifndef PLANCAST_INTEROP_ASTRA_SIMULATOR_PHASES_H_
#define PLANCAST_INTEROP_ASTRA_SIMULATOR_PHASES_H_

#include <cstdint>
#include <vector>

#include "interop/astra/simulator/astra_network.h"
#include "interop/astra/simulator/astra_system.h"

namespace plancast::astra {

// A ring of ranks as collectives see them: those that differ in one dimension,
// or the members of a group.
class Circle {
 public:
  Circle(int64_t size, int64_t stride) : size_(size), stride_(stride) {}
  explicit Circle(const AstraGroup& group);

  int64_t size() const { return size_; }
  // Of a group; these have a delay of their own between NPU and memory.
  bool local() const { return !members_.empty(); }
  int64_t PlaceOf(int64_t rank) const;
  // The rank `steps` after `rank`, which may be negative.
  int64_t After(int64_t rank, int64_t steps) const;
  int64_t At(int64_t any_member, int64_t place) const;

 private:
  int64_t size_, stride_ = 1;
  std::vector<int64_t> members_;
  std::vector<int32_t> place_of_;  // by rank
};

// One crossing of one dimension by one chunk of a collective.
struct Phase {
  AstraAlgorithm algorithm;
  AstraCollective kind = AstraCollective::kAllReduce;
  int32_t circle = 0;   // into Circles::all
  int64_t bytes = 0;    // that go in, per rank
  int64_t message = 0;  // bytes of the first message
  int32_t queue = 0;
  bool backwards = false;  // round the ring
  bool min_root = false;   // of the two trees, that with the root at the smallest rank
};

// The dimensions that a collective crosses, with what crosses them.
struct Route {
  std::vector<int32_t> circles;
  std::vector<AstraAlgorithm> algorithms;
};

// What each rank keeps between collectives: whose turn it is.
struct Turns {
  struct Queues {
    int32_t next = 0, first_half = 0, second_half = 0;
  };
  std::vector<Queues> queues;  // by dimension
  std::vector<int32_t> trees;  // by collective and dimension: trees taken so far
};

class Circles {
 public:
  Circles(const AstraNetwork& network, const AstraSystem& system,
          const std::vector<AstraGroup>& groups);

  const Circle& at(int32_t index) const { return all_[index]; }
  // `group` -1: all ranks. A group of all ranks takes the dimensions, a smaller
  // one is a single ring whatever the network looks like.
  const Route& RouteOf(AstraCollective collective, int32_t group) const;
  Turns NewTurns() const;

  // The phases of one chunk. Those of dimensions that are not `involved` (null:
  // all are) are left out.
  std::vector<Phase> PhasesOf(AstraCollective collective, int32_t group, int64_t bytes,
                              const std::vector<bool>* involved, Turns& turns) const;

 private:
  enum class Half { kAny, kFirst, kSecond };
  Phase Cross(AstraCollective kind, const Route& route, int32_t dim, int64_t bytes, Half half,
              int32_t trees_of, Turns& turns) const;

  int32_t dims_, queues_;
  bool local_bw_aware_;
  std::vector<Circle> all_;
  Route world_[4];
  std::vector<Route> groups_;  // group times 4 + collective
  std::vector<bool> whole_;    // by group: all ranks
};

// What a phase leaves on each rank.
int64_t BytesAfter(const Phase& phase, int64_t circle_size);

}  // namespace plancast::astra

#endif  // PLANCAST_INTEROP_ASTRA_SIMULATOR_PHASES_H_
