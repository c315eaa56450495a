#ifndef PLANCAST_EXECUTOR_SIMULATE_LAYER_RUNS_H_
#define PLANCAST_EXECUTOR_SIMULATE_LAYER_RUNS_H_

#include <cstdint>
#include <vector>

#include "executor/simulate/events.h"
#include "executor/simulate/host_clock.h"
#include "executor/simulate/kernel_chains.h"
#include "executor/simulate/layer/layer_outcome.h"
#include "executor/simulate/layer/layer_run.h"
#include "executor/simulate/layer/outcome_cache.h"
#include "executor/simulate/layer_variants.h"
#include "executor/simulate/overlap.h"
#include "executor/simulate/simulate.h"
#include "executor/simulate/snapshot.h"
#include "executor/simulate/streams.h"
#include "executor/simulate/transfers.h"

namespace plancast {

// Layers of an instance that run at once on an entity: from when all that a layer waits for
// is over until all of it is, and as many as do the same after it, they are one event. Runs
// are looked at anew when others communicate alongside them, and come apart into single tasks
// when others load their links.
class LayerRuns : public TransferListener {
 public:
  LayerRuns(const SimInput& in, Streams& streams, HostClock& hosts, KernelChains& kernels,
            Transfers& transfers, Overlap& overlap, Events& events);

  // Without, every chain of kernels and every communication is an event.
  bool enabled() const { return enabled_; }
  // Runs what is left of an instance from a layer on. False if others are in the way. `can_open`:
  // nothing of the layer has begun, and its first kernel could.
  bool Start(int32_t entity, const StreamCursor& at, bool can_open);
  // A stream goes on before the run of its entity is over.
  void Leave(int32_t cursor);
  void End(int32_t entity);
  // Finds anew what was disturbed, once all is done that is to be done now. True if a run came
  // apart, so that there is more to do now.
  bool Settle() { return !disturbed_.empty() && SettleDisturbed(); }

  void OnCommsChange(int32_t entity) override;
  void OnLoad(int32_t group) override;

  void Describe(int32_t entity, Snapshot& snapshot) const;

 private:
  // Starting, in layer_runs.cc.
  // Whether all streams of a block are where a run of a layer can take them over. `behind`: the
  // place in LayerCosts of what one of them is still at before it, or LayerVariants::kNone.
  bool StreamsAreThere(int32_t entity, const StreamCursor& at, const BlockIndex& index,
                       int32_t variant, int32_t* behind);
  // Whether a stream belongs to a run of a layer that begins now.
  bool IsPart(int32_t entity, const StreamCursor& at, const BlockIndex& index, int32_t variant,
              int32_t cursor) const;
  // Whether a stream that may load the links of a layer is in a run that does, or does so now.
  bool RunMeets(int32_t variant, int32_t rival) const;
  bool LoadMeets(int32_t variant, int32_t rival) const;
  // Whether nobody loads the links of a block now, nor may in a run.
  bool IsAlone(int32_t entity, const StreamCursor& at, int32_t block, int32_t variant) const;
  // Whether nobody loads the links of a block now; runs that do come apart.
  bool OutrunRivals(int32_t entity, const StreamCursor& at, int32_t block, int32_t variant);
  // Whether a stream is at its last communication before a layer, which nobody else takes part in.
  bool IsBehind(int32_t entity, const StreamCursor& at, int stream) const;
  // What streams have begun of a layer that a run takes over, or are still at before it.
  void TakeOver(int32_t entity, const StreamCursor& at, const BlockIndex& index, int32_t behind);
  // How many layers a run has, of those left.
  int32_t CountLayers(int32_t entity, int32_t left) const;
  // Whether the next layer finds and does the same.
  bool Repeats(int32_t entity, const LayerRun& run) const;
  // `before`: of conditions that were the same until now, or null.
  LayerOutcome* OutcomeOf(int32_t entity, const LayerOutcome* before);
  // Sets whether it comes apart, and when its kernels end.
  void FindTail(int32_t entity);
  // Whether no kernel comes after a run before all of it is over.
  bool EndsWhole(int32_t entity, const LayerRun& run) const;
  // Whether a stream may go on before the kernels of a run are over.
  bool MayLeave(int32_t entity, const LayerRun& run, int stream) const;
  TaskRef NextAfter(int32_t entity, const LayerRun& run, int stream) const;

  // Going on and ending, in layer_runs_end.cc.
  bool SettleDisturbed();
  void Schedule(int32_t entity);
  // Of a stream, in a run whose last layer begins then.
  void ScheduleStream(int32_t entity, int stream, int64_t last);
  // A stream is through with a layer before its run, if that is over by now.
  void EndBehind(int32_t entity);
  // Layers of a run that are over.
  void Keep(int32_t entity, int32_t layers);
  // Times of a layer of a run that streams have or get, until it stops.
  void WriteLayer(int32_t entity, const LayerStop* stop);
  // Sets from when to when others communicate, as known now. Whether that is new.
  bool FindToggles(int32_t entity);
  // Leaves what is not over of a run to its streams.
  void Dissolve(int32_t entity);
  void Resume(int32_t entity, int stream, const LayerStop::Stream& at, int64_t origin);

  const SimInput& in_;
  const bool enabled_;
  Streams& streams_;
  HostClock& hosts_;
  KernelChains& kernels_;
  Transfers& transfers_;
  Overlap& overlap_;
  Events& events_;
  LayerVariants variants_;
  OutcomeCache outcomes_;
  LayerRunner runner_;
  int32_t numbered_ = 0;            // outcomes in the trace
  std::vector<bool> is_disturbed_;  // per entity: its run has to be looked at
  std::vector<int32_t> disturbed_;  // those
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_LAYER_RUNS_H_
