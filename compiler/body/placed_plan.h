#ifndef PLANCAST_COMPILER_BODY_PLACED_PLAN_H_
#define PLANCAST_COMPILER_BODY_PLACED_PLAN_H_

#include "compiler/body/body_plan.h"
#include "compiler/body/place.h"

namespace plancast {

// What of `plan` runs at a place: its ops, the relayouts that its devices take part in, and
// values that they hold. Values keep their numbers; `plan.place` says which are there.
BodyPlan PlanAt(BodyPlan plan, const BoundBody& bound, const Place& place);

// Gathers to several coordinates of one axis, or scatters from them, that follow one another are
// one exchange, as software issues them: of each run of rooted relayouts over one axis the first
// sends and receives for all (a relayout of several values). Those that can run earlier are moved
// up to it.
void JoinRooted(const BoundBody& bound, BodyPlan* plan);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BODY_PLACED_PLAN_H_
