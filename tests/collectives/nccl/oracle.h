#ifndef PLANCAST_TESTS_COLLECTIVES_NCCL_ORACLE_H_
#define PLANCAST_TESTS_COLLECTIVES_NCCL_ORACLE_H_

#include <map>
#include <string>
#include <vector>

#include "collectives/nccl/graphs.h"
#include "collectives/programs/program_kind.h"

namespace plancast {

// What NCCL itself answered for a topology: an entry of oracles/nccl.
struct NcclOracle {
  struct Cell {
    ProgramKind kind;
    std::string pair;  // `Ring/LL128`
    double latency_us = 0, bandwidth = 0;
  };
  struct Time {
    ProgramKind kind;
    int64_t bytes = 0;
    std::string best;
    double us = 0;
    std::map<std::string, double> all;  // by pair
  };
  std::string name;
  NcclCommunicator communicator;  // with the oracle's graphs
  std::vector<Cell> cells;
  std::vector<Time> times;
};

// Every oracle of $PLANCAST_SHARED_DATA; none where it is not set.
std::vector<NcclOracle> ReadNcclOracles();

}  // namespace plancast

#endif  // PLANCAST_TESTS_COLLECTIVES_NCCL_ORACLE_H_
