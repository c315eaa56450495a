#ifndef PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_PROFILE_H_
#define PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_PROFILE_H_

#include "strategy/software_profile.h"
#include "tests/compiler/folded_against_reference.h"

namespace plancast {

// How the framework runs a random job: kernels, types, shards, updates.
void DrawProfile(Dice& dice, SoftwareProfile* profile);

}  // namespace plancast

#endif  // PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_PROFILE_H_
