#ifndef PLANCAST_EXECUTOR_SIMULATE_SIMULATOR_H_
#define PLANCAST_EXECUTOR_SIMULATE_SIMULATOR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "executor/simulate/events.h"
#include "executor/simulate/host_clock.h"
#include "executor/simulate/kernel_chains.h"
#include "executor/simulate/layer_runs.h"
#include "executor/simulate/overlap.h"
#include "executor/simulate/simulate.h"
#include "executor/simulate/steady_state.h"
#include "executor/simulate/streams.h"
#include "executor/simulate/transfers.h"

namespace plancast {

// Goes from one event to the next in order of time. At each, what ends then goes before what
// begins; then every stream that may go on does, until it has to wait:
//
//   Streams       how far each stream has come, and which wait for which
//   HostClock     when hosts launch tasks
//   KernelChains  kernels that run, alone or slowed by communications
//   Transfers     communications that meet, wait, and share links
//   LayerRuns     whole layers as one event
//   SteadyState   periods that are left out
//
// An entity runs ahead of the time as far as no other can change what it does: a chain of
// kernels, or whole layers, are one event whose times are known from the beginning, and are
// found anew if a communication comes between.
class Simulator {
 public:
  Simulator(const SimInput& in, SimTrace memory);

  absl::StatusOr<SimTrace> Run() &&;

 private:
  void Handle(const Events::Event& event);
  // Lets streams go on until none can at this point in time.
  void GoOn();
  void RunReadyStreams();
  void RunStream(int32_t entity, int stream);
  // What is known of the next task of a stream: all that it waits for on its entity is over; its
  // host has launched it, too.
  enum class Known : uint8_t { kNothing, kReady, kLaunched };
  // Begins what can begin now in the rest of a layer, of whose next task so much is known. False
  // if the stream has to wait; for what, unless it runs or the time is known.
  bool RunLayer(int32_t entity, int stream, Known known, TaskRef* blocker);

  const SimInput& in_;
  Events events_;
  Streams streams_;
  Overlap overlap_;
  HostClock hosts_;
  KernelChains kernels_;
  LayerRuns runs_;
  Transfers transfers_;
  SteadyState steady_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_SIMULATOR_H_
