#ifndef PLANCAST_COMPILER_SHARDING_SHARDED_STAGE_H_
#define PLANCAST_COMPILER_SHARDING_SHARDED_STAGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "compiler/program/program_inputs.h"
#include "compiler/program/stage_contents.h"
#include "compiler/sharding/shard_plan.h"

namespace plancast {

// The units of sharded data parallelism that a stage holds: each module of a
// list is one; modules outside of lists are units of their own, or one together (the
// root). Units that are used again soon stay gathered from forward to backward.
class ShardedStage {
 public:
  struct Unit {
    ShardUnit sizes;      // of what has sharded gradients, or would have if it were trained
    ShardUnit weights;    // of these what is gathered
    ShardUnit trained;    // of these what is trained
    int64_t repeats = 1;  // of the body, each a unit
    bool stays = false;   // gathered until its backward pass is over
    std::vector<int64_t> gradients;  // elements of sharded ones before they are reduced, by block
    bool backward = false;           // some module of it has anything to do in the backward pass
    bool all_trained = true, all_gathered = true;  // sizes are those of trained, of weights
  };

  ShardedStage(const ProgramInputs& inputs, const StageContents& contents);

  // Of one repeat of run `run` of a chunk; null: nothing to shard.
  const Unit* UnitOf(int32_t chunk, size_t run) const { return of_run_[chunk][run]; }
  // Whether any weights of the stage are sharded, and so may have to be gathered.
  bool gathers() const { return gathers_; }
  // Whether gradients of parameters with these homes are reduced in the blocks of bodies.
  bool Takes(const ParameterHomes& homes) const { return ShardsBodies(*in_.options, homes); }
  // What the stage keeps of trained parameters with these homes, in elements, of any bucket; and
  // of frozen ones.
  int64_t ShardElements(const ParameterHomes& homes) const;
  int64_t FrozenShards(const ParameterHomes& homes) const;
  // Of all shards of gradients that are on the device.
  int64_t GradientBytes(const ShardTypes& types) const;

 private:
  template <typename Of>
  int64_t Shards(const ParameterHomes& with, const Of& of) const {
    const ParameterHomes homes = with.OfAnyBucket();
    int64_t total = 0;
    for (const std::unique_ptr<Unit>& unit : units_) {
      for (const ShardUnit::Part& part : of(*unit).parts) {
        if (part.homes == homes) total += part.shard() * unit->repeats;
      }
    }
    return total;
  }

  std::vector<std::vector<const Unit*>> of_run_;  // per chunk and run
  std::vector<std::unique_ptr<Unit>> units_;
  const ProgramInputs& in_;
  bool gathers_ = false;
};

// Whether gathered parameters are given up after the forward pass.
bool Reshards(const PlanOptions& options);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_SHARDED_STAGE_H_
