#ifndef PLANCAST_COMPILER_LOWER_REBUILT_WEIGHTS_H_
#define PLANCAST_COMPILER_LOWER_REBUILT_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/body/body_plan.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// Weights that rest in 4 bits (AtRest): before a product reads them they are rebuilt in the
// model's type, and given up when it is over; a backward pass does so again.
class RebuiltWeights {
 public:
  RebuiltWeights(const LowerContext& context, const BodyPlan& plan, const std::string& path,
                 BlockBuilder* builder)
      : context_(context), plan_(plan), path_(path), builder_(*builder) {}

  // The task that rebuilds what steps [begin, end) read, behind `deps`; kNone if they read none.
  int Before(const PlanStep* begin, const PlanStep* end, const std::vector<int>& deps);
  // Gives up what the last call rebuilt, behind `task`.
  void GiveUp(int task);

 private:
  const LowerContext& context_;
  const BodyPlan& plan_;
  const std::string& path_;
  BlockBuilder& builder_;
  uint16_t tensor_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_REBUILT_WEIGHTS_H_
