#ifndef PLANCAST_COMPILER_ACTIVATIONS_PARKING_FLOW_H_
#define PLANCAST_COMPILER_ACTIVATIONS_PARKING_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler/activations/parking_plan.h"
#include "compiler/program/program_inputs.h"
#include "compiler/program/program_writer.h"

namespace plancast {

// The transfers of a ParkingPlan in the program of one stage, on streams of their own.
// Their owner's computing waits for them two steps later; their host posts its ends ahead,
// since it has the space for them from the start.
class ParkingFlow {
 public:
  // `first_slot`: of the rendezvous.
  ParkingFlow(const ProgramInputs& inputs, int64_t stage, int64_t first_slot,
              ProgramWriter* writer);

  // A step of the stage's schedule begins, or has been written up to instance `last`; all have.
  void BeforeStep(int64_t step);
  void AfterStep(int64_t step, int32_t last);
  void Finish();

 private:
  using Trip = ParkingPlan::Trip;
  // What a stage does of a trip, in the order of a parcel's way.
  enum class Leg : uint8_t { kSend, kTake, kGive, kReceive };

  // Behind instance `behind`, if that is not negative.
  int32_t Append(const Trip& trip, Leg leg, int32_t behind);
  // What the stage does for another up to a step of that.
  void Host(int64_t step);

  const ParkingPlan& plan_;
  const int pp_axis_;
  const int64_t micro_batches_, first_slot_;
  ProgramWriter& writer_;
  // The stage's own, in the order in which they go out and come back; and what it hosts.
  std::vector<Trip> send_, receive_, take_, give_;
  size_t sent_ = 0, came_ = 0, took_ = 0, gave_ = 0;    // of each so many
  std::vector<int32_t> coming_;                         // that the next step waits for
  std::map<std::pair<int32_t, int32_t>, int32_t> has_;  // by parcel and micro-batch: who took it
  int64_t lead_ = 0;                                    // steps that a host is ahead of the owner
  int32_t last_ = -1;                                   // of the step before
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_ACTIVATIONS_PARKING_FLOW_H_
