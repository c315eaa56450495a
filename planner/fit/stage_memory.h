#ifndef PLANCAST_PLANNER_FIT_STAGE_MEMORY_H_
#define PLANCAST_PLANNER_FIT_STAGE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/program/block_catalogue.h"
#include "compiler/program_plan.h"
#include "executor/memory/block_profile.h"
#include "executor/memory/footprint.h"
#include "executor/memory/held_tensors.h"
#include "executor/memory/outline_replay.h"
#include "graph/execution/memory_overhead.h"
#include "graph/execution/program_outline.h"
#include "planner/fit/short_orders.h"

namespace plancast {

// The memory of the stages of one plan after another, from outlines of their programs with
// as few micro-batches as it takes. What blocks of bodies do is worked out once for all
// plans that share them. For one thread.
class StageMemory {
 public:
  // Of plans that differ in nothing that `overhead` depends on. What plans share is forgotten
  // at so many sets of bodies, or at 65,536 blocks.
  explicit StageMemory(const MemoryOverhead& overhead, size_t most_bodies = 1024)
      : overhead_(overhead), most_bodies_(most_bodies) {}

  // The plan that follows is about; it must outlive its use.
  void Begin(const ProgramPlan& plan);
  // Whether devices of both stages have as much memory.
  bool CapacityAsBefore(int64_t stage) const { return CapacityAt(stage) == CapacityAt(stage - 1); }
  // What a device of the stage takes, before blocks are placed.
  Footprint Of(int64_t stage);
  // Whether as much is in flight on the stage as on the one before.
  bool InFlightAsBefore(int64_t stage) { return Order().AsBefore(stage); }
  // Whether no stage has more in flight than those before it.
  bool InFlightShrinks() { return Order().Shrinks(); }
  // Places its blocks.
  void Place(int64_t stage, Footprint* footprint);
  // What a device of the stage keeps in the memory of its host, at most.
  int64_t HostBytes(int64_t stage);
  // Writes the outline of a stage from which `Of` tells.
  void Outline(int64_t stage);
  // The last one that was written, and the blocks that it numbers.
  const ProgramOutline& outline() const { return outline_; }
  const BlockCatalogue& catalogue() const { return catalogue_; }
  // Ascends when what plans share is forgotten.
  int64_t times_forgotten() const { return times_forgotten_; }

 private:
  // A block with all that memory needs to know of it.
  struct Known {
    BlockProfile profile;
    std::vector<int32_t> names;  // TensorNames, once it is placed
  };

  PlanOrder& Order();
  int64_t CapacityAt(int64_t stage) const;
  void Outline(int64_t stage, const ShortOrder& order);
  // Of the blocks in the catalogue that are not known yet.
  void KnowNew();
  // All that plans have in common.
  void Forget();
  int64_t BufferBytes();

  const MemoryOverhead overhead_;
  const size_t most_bodies_;
  int64_t times_forgotten_ = 0;
  const ProgramPlan* plan_ = nullptr;
  ProgramInputs inputs_;
  ShortOrders orders_;
  PlanOrder* order_ = nullptr;  // of this plan, once it is asked for
  BlockCatalogue catalogue_;
  ProgramOutline outline_;
  std::vector<PartProfile> parts_;
  std::vector<const BlockProfile*> profiles_;  // per block of the catalogue
  std::vector<Known*> blocks_;                 // likewise
  std::deque<Known> own_;                      // of blocks of one plan alone
  // What plans have in common, and what is known of it: bodies, and blocks outside of
  // them by what these depend on.
  absl::flat_hash_set<std::shared_ptr<const PlanBodies>> bodies_;
  absl::flat_hash_map<std::string, std::unique_ptr<SharedBlocks>> shared_;
  absl::flat_hash_map<const BlockTemplate*, Known*> of_block_;
  std::deque<Known> common_;
  TensorNames names_;
  std::vector<bool> runs_;  // per block of the catalogue
  std::vector<const CommSpec*> comms_;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FIT_STAGE_MEMORY_H_
