#ifndef PLANCAST_COMPILER_ACTIVATIONS_PARKING_PLAN_H_
#define PLANCAST_COMPILER_ACTIVATIONS_PARKING_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/program/program_inputs.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "graph/execution/kept_tensors.h"

namespace plancast {

// Activations that wait for their backward pass on the devices of another stage, which are the
// same in every other coordinate (`activations: on(pp=3)`): BPipe's pairs of stages (Kim et al.,
// ICML 2023). What a micro-batch leaves is sent away beside the step behind its forward pass, and
// is back before its backward pass, having come beside the step before that. What would be away
// for no step in between stays.
class ParkingPlan {
 public:
  // What a chunk of a stage parks of a micro-batch on one other stage.
  struct Parcel {
    int64_t owner = 0, host = 0;  // stages
    int32_t chunk = 0;            // of the owner
    std::vector<KeptTensor> tensors;
    int64_t bytes = 0;
  };
  // That of one micro-batch goes out behind step `out` of its owner, and back before `back`.
  struct Trip {
    int32_t parcel = 0, micro_batch = 0;
    int64_t out = 0, back = 0;
  };

  // Of a plan with homes on other stages. `schedule`: of all micro-batches.
  // Errors: kUnimplemented for a stage that hosts two others or parks what it hosts, for stages
  // with meshes of their own and nodes on some ranks; homes that park nothing.
  static absl::StatusOr<std::shared_ptr<const ParkingPlan>> Create(
      const ProgramInputs& inputs, const PipelineSchedule& schedule);

  const Parcel& parcel(int32_t number) const { return parcels_[number]; }
  int32_t num_parcels() const { return static_cast<int32_t>(parcels_.size()); }
  // Those of what a stage owns, in the order in which they go out; and of what it hosts.
  const std::vector<Trip>& TripsOf(int64_t owner) const { return trips_[owner]; }
  std::vector<Trip> HostedBy(int64_t host) const;
  // What a stage has to have for others at most, on one device.
  int64_t HostedBytes(int64_t host) const;

 private:
  void AddParcels(const ProgramInputs& inputs, int64_t stage);
  void AddTrips(int64_t stage, const std::vector<ScheduleStep>& steps);
  absl::Status Check() const;

  std::vector<Parcel> parcels_;
  std::vector<std::vector<Trip>> trips_;  // by owner
  std::vector<int64_t> hosted_;           // by stage: the owner whose activations it has, or -1
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_ACTIVATIONS_PARKING_PLAN_H_
