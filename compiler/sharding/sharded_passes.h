#ifndef PLANCAST_COMPILER_SHARDING_SHARDED_PASSES_H_
#define PLANCAST_COMPILER_SHARDING_SHARDED_PASSES_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/program/program_inputs.h"
#include "compiler/program/program_writer.h"
#include "compiler/program/stage_contents.h"
#include "compiler/sharding/shard_block.h"
#include "compiler/sharding/sharded_stage.h"

namespace plancast {

// The passes of a stage's chunks under zero=2 and zero=3: which sharded block each
// repeat of a run is, and what is gathered ahead of the pass.
class ShardedPasses {
 public:
  // Equal repeats of one run, in the order of the pass.
  struct Piece {
    int32_t block = 0;
    int64_t layer_begin = 0, count = 1;
    bool reduces = false;
    const StageRun* run = nullptr;
    int32_t number = 0;  // of the block in the catalogue
  };
  struct Pass {
    std::vector<int32_t> ahead;  // blocks of gathers; the i-th joins port `own_ports` + i
    int own_ports = 0;           // of the first piece, those of its body
    std::vector<Piece> pieces;
  };

  ShardedPasses(const ProgramInputs& inputs, const StageContents& contents,
                const ShardedStage& stage, ProgramWriter* writer);

  // Of a chunk in the first and in the last of its micro-batches, or neither. Gradients are reduced
  // in the pass that makes those of weights.
  const Pass& Of(int32_t chunk, Phase phase, bool first, bool last);

 private:
  class Maker;

  const ProgramInputs& in_;
  const StageContents& contents_;
  ProgramWriter& writer_;
  const ShardedStage& stage_;
  ShardStyle style_;
  std::string types_;                                              // of style_, in keys
  std::map<std::tuple<int32_t, Phase, bool, bool>, Pass> passes_;  // first, last
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_SHARDED_PASSES_H_
