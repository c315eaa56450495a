#include "compiler/activations/parking_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/program/stage_contents.h"

namespace plancast {
namespace {

// From a forward pass to its backward pass: out beside the step behind the one, back beside the
// step before the other, and a step in between.
constexpr int64_t kLeastSteps = 4;

absl::Status CheckSupported(const ProgramInputs& inputs) {
  const bool unlike = !inputs.options->own_stages.empty();
  const bool placed = inputs.place != nullptr && !inputs.place->empty();
  if (!unlike && !placed) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("not supported yet: activations on another stage where ",
                   unlike ? "stages have meshes of their own" : "nodes are on some ranks (`on`)",
                   ". Write `activations: host`, or leave it out."));
}

}  // namespace

void ParkingPlan::AddParcels(const ProgramInputs& inputs, int64_t stage) {
  const StageContents contents(inputs, stage);
  for (int32_t chunk = 0; chunk < contents.chunks(); ++chunk) {
    std::map<int64_t, Parcel> by_host;
    for (const StageRun& run : contents.Runs(chunk)) {
      const std::optional<Home>& home = inputs.homes->ActivationsOf(run);
      if (!home.has_value() || !home->rank.has_value() || *home->rank == stage) continue;
      if (!contents.HasBackward(run)) continue;
      Parcel& parcel = by_host[*home->rank];
      for (KeptTensor& tensor : KeptTensors(contents.BodyOf(run).blocks.forward.block, 0)) {
        tensor.bytes *= run.count;
        parcel.bytes += tensor.bytes;
        parcel.tensors.push_back(std::move(tensor));
      }
    }
    for (auto& [host, parcel] : by_host) {
      if (parcel.bytes == 0) continue;
      parcel.owner = stage;
      parcel.host = host;
      parcel.chunk = chunk;
      parcels_.push_back(std::move(parcel));
    }
  }
}

void ParkingPlan::AddTrips(int64_t stage, const std::vector<ScheduleStep>& steps) {
  std::map<std::pair<int32_t, int32_t>, int64_t> backward;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].phase != Phase::kBackward) continue;
    backward[{steps[i].chunk, steps[i].micro_batch}] = static_cast<int64_t>(i);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].phase != Phase::kForward) continue;
    const auto at = static_cast<int64_t>(i);
    const auto until = backward.find({steps[i].chunk, steps[i].micro_batch});
    if (until == backward.end() || until->second - at < kLeastSteps) continue;
    for (int32_t p = 0; p < num_parcels(); ++p) {
      if (parcels_[p].owner != stage || parcels_[p].chunk != steps[i].chunk) continue;
      trips_[stage].push_back({p, steps[i].micro_batch, at + 1, until->second - 1});
    }
  }
}

absl::Status ParkingPlan::Check() const {
  if (std::all_of(trips_.begin(), trips_.end(), [](const auto& trips) { return trips.empty(); })) {
    return absl::InvalidArgumentError(
        "`activations: on(pp=...)` has no effect: no stage but the one that it names has, of what "
        "is below the node, micro-batches whose backward pass is not next but one anyhow. Take "
        "more micro-batches, name a later stage, or leave it out.");
  }
  for (const Parcel& parcel : parcels_) {
    const int64_t hosted = hosted_[parcel.host];
    if (hosted != parcel.owner) {
      return absl::UnimplementedError(
          absl::StrCat("not supported yet: stage ", parcel.host, " with activations of stages ",
                       std::min(hosted, parcel.owner), " and ", std::max(hosted, parcel.owner),
                       ". Stages help each other in pairs: name another stage for one of them."));
    }
    if (hosted_[parcel.owner] < 0) continue;
    return absl::UnimplementedError(
        absl::StrCat("not supported yet: stage ", parcel.owner, " with activations of stage ",
                     hosted_[parcel.owner], " and its own on stage ", parcel.host,
                     ". Name nodes of one of the two, or another stage."));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ParkingPlan>> ParkingPlan::Create(
    const ProgramInputs& inputs, const PipelineSchedule& schedule) {
  RETURN_IF_ERROR(CheckSupported(inputs));
  const int64_t stages = inputs.options->pp;
  auto plan = std::make_shared<ParkingPlan>();
  plan->trips_.resize(stages);
  plan->hosted_.assign(stages, -1);
  for (int64_t stage = 0; stage < stages; ++stage) {
    plan->AddParcels(inputs, stage);
    plan->AddTrips(stage, schedule.OfStage(stage));
  }
  for (const Parcel& parcel : plan->parcels_) {
    int64_t& owner = plan->hosted_[parcel.host];
    if (owner < 0) owner = parcel.owner;
  }
  RETURN_IF_ERROR(plan->Check());
  return std::shared_ptr<const ParkingPlan>(std::move(plan));
}

std::vector<ParkingPlan::Trip> ParkingPlan::HostedBy(int64_t host) const {
  std::vector<Trip> hosted;
  if (hosted_[host] < 0) return hosted;
  for (const Trip& trip : trips_[hosted_[host]]) {
    if (parcels_[trip.parcel].host == host) hosted.push_back(trip);
  }
  return hosted;
}

int64_t ParkingPlan::HostedBytes(int64_t host) const {
  // Changes by step: what has come back is let go before the step behind.
  std::map<std::pair<int64_t, bool>, int64_t> changes;  // by step, behind it
  for (const Trip& trip : HostedBy(host)) {
    changes[{trip.out, true}] += parcels_[trip.parcel].bytes;
    changes[{trip.back + 1, false}] -= parcels_[trip.parcel].bytes;
  }
  int64_t bytes = 0, most = 0;
  for (const auto& [when, change] : changes) most = std::max(most, bytes += change);
  return most;
}

}  // namespace plancast
