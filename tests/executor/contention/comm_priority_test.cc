#include "executor/contention/comm_priority.h"

#include <initializer_list>

#include "graph/execution/execution_graph.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

// A use whose programs run it each in one of these streams.
CommUse UseIn(std::initializer_list<StreamKind> streams) {
  CommUse use;
  for (StreamKind stream : streams) {
    use.streams.push_back(MaskOf(stream));
  }
  return use;
}

TEST(CommPriorityTest, ModelParallelBeforePipelineBeforeGradients) {
  const CommPriority model = PriorityOf(UseIn({StreamKind::kModelComm})),
                     pipeline = PriorityOf(UseIn({StreamKind::kSendNext, StreamKind::kRecvPrev})),
                     gradients = PriorityOf(UseIn({StreamKind::kGradComm}));
  EXPECT_LT(model, pipeline);
  EXPECT_LT(pipeline, gradients);
  EXPECT_EQ(PriorityOf(UseIn({StreamKind::kSendPrev, StreamKind::kRecvNext})), pipeline);
}

TEST(CommPriorityTest, TheMostUrgentStreamCounts) {
  EXPECT_EQ(PriorityOf(UseIn({StreamKind::kGradComm, StreamKind::kModelComm})), kModelParallel);
  EXPECT_EQ(PriorityOf(UseIn({StreamKind::kGradComm, StreamKind::kRecvNext})), kPipeline);
}

}  // namespace
}  // namespace plancast
