#ifndef PLANCAST_COMPILER_STAGE_BLOCKS_H_
#define PLANCAST_COMPILER_STAGE_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/program/block_catalogue.h"
#include "compiler/program/program_inputs.h"
#include "compiler/program/stage_contents.h"
#include "compiler/sharding/gradient_blocks.h"

namespace plancast {

// Numbers in the catalogue of what a stage's bodies run.
class StageBlocks {
 public:
  StageBlocks(const ProgramInputs& inputs, const StageContents& contents, BlockCatalogue* catalogue)
      : in_(inputs),
        contents_(contents),
        catalogue_(*catalogue),
        known_(kPasses * inputs.bodies->size(), -1) {}

  // Of a run's own block.
  int32_t Of(const StageRun& run, Phase phase) {
    const auto pass = static_cast<size_t>(phase);
    int32_t& known = known_[kPasses * run.bound_body + pass];
    if (known < 0) {
      const BodyBlocks& blocks = contents_.BodyOf(run).blocks;
      const BlockTemplate* const own[] = {&blocks.forward, &blocks.backward, &blocks.weights};
      constexpr BlockKey::Kind kKinds[] = {BlockKey::kForward, BlockKey::kBackward,
                                           BlockKey::kWeights};
      known = catalogue_.Number({kKinds[pass], run.bound_body},
                                [&]() -> const BlockTemplate& { return *own[pass]; });
    }
    return known;
  }
  // Of its backward pass with what that does to gradients.
  int32_t Backward(const StageRun& run, bool first) {
    const int32_t plain = Of(run, Phase::kBackward);
    if (!in_.profile->update.fresh_gradients) return plain;
    return WithGradients(plain,
                         {first, contents_.Parameters(run), in_.profile->types.grad_dtype,
                          StorageType(in_.dtype), nullptr},
                         &catalogue_);
  }

 private:
  static constexpr size_t kPasses = 3;  // F, B, W

  const ProgramInputs& in_;
  const StageContents& contents_;
  BlockCatalogue& catalogue_;
  std::vector<int32_t> known_;  // of each bound body, by pass; -1: not asked for yet
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_STAGE_BLOCKS_H_
