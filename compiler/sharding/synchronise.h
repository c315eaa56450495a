#ifndef PLANCAST_COMPILER_SHARDING_SYNCHRONISE_H_
#define PLANCAST_COMPILER_SHARDING_SYNCHRONISE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cluster/device_mesh.h"
#include "compiler/lower/body_state.h"
#include "compiler/lower/lower_block.h"
#include "compiler/program/program_inputs.h"
#include "compiler/sharding/shard_axes.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"

namespace plancast {

// Of so many elements, or of one of their equal messages, rounded up.
int64_t WholeBytes(int64_t elements, double element_bytes, int messages = 1);

// Gradients that are reduced over axes of their own, in equal messages. `parts`: as their home
// over other axes than the data-parallel ones shares them out.
struct OwnReduction {
  std::vector<int> axes;
  int64_t elements = 0;
  int messages = 1;
  std::optional<ShardAxes> parts = std::nullopt;
};

// All that a block of messages depends on, but the plan.
std::string MessagesKey(absl::string_view what, int64_t elements, int messages,
                        const ElementsByAxes& cut, const std::vector<OwnReduction>& batch = {});

// Reduces `elements` of gradients over the data-parallel axes as `messages`
// equal messages: all-reduce, or if the optimizer is `sharded` reduce-scatter in the shard
// group and all-reduce of the shards over its replicas. What is `cut` is reduced over its own
// axes; of `batch`, whose weights are not cut, axes beside the data-parallel ones are
// replicas.
BlockTemplate GradientReduction(const DeviceMesh& mesh, const PlanOptions& options,
                                const SoftwareProfile& profile, bool sharded, int64_t elements,
                                int messages, const ElementsByAxes& cut = {},
                                const std::vector<OwnReduction>& batch = {});
// How updated parameters come back. As lists of the ranks' parts (SharedUpdate::part_s):
// how many tensors do, and launches that the host could do in the time of a part. Or from ranks
// that own whole tensors, each of which broadcasts its own when the one before has. Neither: 0.
struct ReturnStyle {
  int64_t listed = 0;
  double launches = 0;
  int64_t owners = 0;
  bool plain() const { return listed == 0 && owners == 0; }
};
// Gathers `elements` updated parameters of a sharded optimizer, and those that are
// `cut` over their own axes; of `own`, over exactly these, or from one rank of them.
using ElementsByHome = std::map<HomeAxes, int64_t>;
BlockTemplate ParameterGather(const DeviceMesh& mesh, const PlanOptions& options, int64_t elements,
                              double element_bytes, int messages, const ElementsByAxes& cut = {},
                              const ElementsByHome& own = {}, const ReturnStyle& style = {});
// Sums gradients that are partial over `axes` (one message).
BlockTemplate PartialGradientSum(const DeviceMesh& mesh, const SoftwareProfile& profile,
                                 const std::vector<int>& axes, int64_t elements);
// One way of the swap of gradients that stages on unlike meshes share.
BlockTemplate SharedGradientCrossing(const SharedCrossing& crossing, bool sends);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_SYNCHRONISE_H_
