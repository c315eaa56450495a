#ifndef PLANCAST_COMPILER_PROGRAM_STAGE_RESHARD_H_
#define PLANCAST_COMPILER_PROGRAM_STAGE_RESHARD_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/device_mesh.h"
#include "graph/execution/execution_graph.h"
#include "graph/layout/layout.h"

namespace plancast {

// A tensor at the border between two stages.
struct BorderTensor {
  std::vector<int64_t> shape;  // of a micro-batch
  double element_bytes = 0;
  Layout before, after;  // on the mesh of either stage
};

// Where the devices of a stage are: those of `mesh` where the pipeline axis is at `stage`.
struct StagePlace {
  const DeviceMesh* mesh = nullptr;
  int64_t stage = 0;
  int stage_mesh = 0;  // into ExecutionGraph::stage_meshes
  int64_t first_device = 0;
};

// What a reshard of a graph in the making moves.
struct CrossedBorder {
  int reshard = 0;  // into ExecutionGraph::reshards
  absl::Span<const BorderTensor> tensors;
  StagePlace from, to;
  bool backward = false;
};

// The ways in which the tensors at a border go from `from` to `to`, together
// (graph/layout/reshard.h): those that all of them may take. `backward`: gradients, from the
// stage after to the stage before. Errors: a pipeline axis that is not the outermost.
absl::StatusOr<Reshard> ReshardAtBorder(absl::Span<const BorderTensor> tensors,
                                        const StagePlace& from, const StagePlace& to,
                                        bool backward);

// All that goes over the border, in the way that sends most.
int64_t CrossingBytes(const Reshard& reshard);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_STAGE_RESHARD_H_
