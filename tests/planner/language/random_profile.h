#ifndef PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_PROFILE_H_
#define PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_PROFILE_H_

#include "strategy/software_profile.h"
#include "tests/compiler/folded_against_reference.h"

namespace plancast {

// How the framework runs a random job: kernels, types, shards, updates.
void DrawProfile(Dice& dice, SoftwareProfile* profile);

// What is kept from pass to pass: in the 8 or 4 bits of products, and beside rules.
void DrawKept(Dice& dice, SoftwareProfile* profile, DType* dtype);

}  // namespace plancast

#endif  // PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_PROFILE_H_
