#include "compiler/activations/parking_flow.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/types/span.h"
#include "compiler/lower/lower_block.h"

namespace plancast {
namespace {

bool ComesBackBefore(const ParkingPlan::Trip& a, const ParkingPlan::Trip& b) {
  return a.back < b.back;
}

}  // namespace

ParkingFlow::ParkingFlow(const ProgramInputs& inputs, int64_t stage, int64_t first_slot,
                         ProgramWriter* writer)
    : plan_(*inputs.parking),
      pp_axis_(inputs.mesh->FindAxis("pp").value()),
      micro_batches_(inputs.options->micro_batches),
      first_slot_(first_slot),
      writer_(*writer),
      send_(plan_.TripsOf(stage)),
      receive_(send_),
      take_(plan_.HostedBy(stage)),
      give_(take_) {
  std::stable_sort(receive_.begin(), receive_.end(), ComesBackBefore);
  std::stable_sort(give_.begin(), give_.end(), ComesBackBefore);
  if (!take_.empty()) lead_ = 2 + 2 * std::abs(plan_.parcel(take_[0].parcel).owner - stage);
}

int32_t ParkingFlow::Append(const Trip& trip, Leg leg, int32_t behind) {
  const ParkingPlan::Parcel& parcel = plan_.parcel(trip.parcel);
  const bool back = leg == Leg::kGive || leg == Leg::kReceive;
  const BlockKey key{BlockKey::kPark, trip.parcel, static_cast<int64_t>(leg)};
  const int32_t block = writer_.BlockOf(key, [&] {
    CommSpec comm;
    comm.kind = CollectiveKind::kSendRecv;
    comm.bytes = parcel.bytes;
    comm.axes = {pp_axis_};
    comm.peer_offset =
        static_cast<int>(back ? parcel.owner - parcel.host : parcel.host - parcel.owner);
    const bool sends = leg == Leg::kSend || leg == Leg::kGive;
    BlockBuilder builder(back ? "fetch activations" : "park activations");
    const int task = builder.AddComm(comm, sends ? StreamKind::kPeerOut : StreamKind::kPeerIn,
                                     Purpose::kOffload, sends ? "send" : "receive", {});
    builder.MarkRendezvous(task);
    for (const KeptTensor& tensor : parcel.tensors) {
      if (leg == Leg::kTake || leg == Leg::kGive) break;  // the host's are there all the time
      builder.AddMemory(task, /*after=*/!back, MemoryKind::kActivations,
                        builder.AddTensor(tensor.name), back ? tensor.bytes : -tensor.bytes);
    }
    return std::move(builder).Build();
  });
  const Join join{behind, -1, -1};
  const int32_t instance = writer_.Append(block, Phase::kComm, trip.micro_batch, parcel.chunk,
                                          absl::MakeConstSpan(&join, behind < 0 ? 0 : 1));
  writer_.Meet(instance, first_slot_ + (2 * trip.parcel + (back ? 1 : 0)) * micro_batches_ +
                             trip.micro_batch);
  return instance;
}

void ParkingFlow::Host(int64_t step) {
  for (; took_ < take_.size() && take_[took_].out <= step; ++took_) {
    const Trip& trip = take_[took_];
    has_[{trip.parcel, trip.micro_batch}] = Append(trip, Leg::kTake, -1);
  }
  for (; gave_ < give_.size() && give_[gave_].back <= step; ++gave_) {
    const Trip& trip = give_[gave_];
    Append(trip, Leg::kGive, has_.at({trip.parcel, trip.micro_batch}));
  }
}

void ParkingFlow::BeforeStep(int64_t step) {
  Host(step + lead_);
  for (const int32_t instance : coming_) writer_.HoldCompute(instance);
  coming_.clear();
  for (; came_ < receive_.size() && receive_[came_].back == step; ++came_) {
    coming_.push_back(Append(receive_[came_], Leg::kReceive, writer_.last_compute()));
  }
}

void ParkingFlow::AfterStep(int64_t step, int32_t last) {
  for (; sent_ < send_.size() && send_[sent_].out == step; ++sent_) {
    writer_.HoldCompute(Append(send_[sent_], Leg::kSend, last_));
  }
  last_ = last;
}

void ParkingFlow::Finish() { Host(std::numeric_limits<int64_t>::max()); }

}  // namespace plancast
