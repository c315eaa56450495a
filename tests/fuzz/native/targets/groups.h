#ifndef PLANCAST_TESTS_FUZZ_NATIVE_TARGETS_GROUPS_H_
#define PLANCAST_TESTS_FUZZ_NATIVE_TARGETS_GROUPS_H_

#include <vector>

#include "tests/fuzz/native/target.h"

namespace plancast {

std::vector<FuzzTarget> DescriptionTargets();  // machines and models
std::vector<FuzzTarget> PlanTargets();         // strategies, searches, what-ifs, profiles
std::vector<FuzzTarget> RuleTargets();         // op rules
std::vector<FuzzTarget> TraceTargets();        // timelines
std::vector<FuzzTarget> NcclTargets();         // topologies
std::vector<FuzzTarget> MscclTargets();        // collective algorithms
std::vector<FuzzTarget> AstraTargets();        // of ASTRA-sim, and Chakra traces

}  // namespace plancast

#endif  // PLANCAST_TESTS_FUZZ_NATIVE_TARGETS_GROUPS_H_
