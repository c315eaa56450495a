#ifndef PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_KNOBS_H_
#define PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_KNOBS_H_

#include "strategy/short_form.h"
#include "tests/compiler/folded_against_reference.h"

namespace plancast {

// What is sharded over data-parallel ranks, and when gradients are reduced and weights updated.
void DrawSharding(Dice& dice, ShortForm* form);
// What runs again.
void DrawRecompute(Dice& dice, ShortForm* form);

}  // namespace plancast

#endif  // PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_KNOBS_H_
