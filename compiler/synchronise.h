#ifndef PLANCAST_COMPILER_SYNCHRONISE_H_
#define PLANCAST_COMPILER_SYNCHRONISE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cluster/device_mesh.h"
#include "compiler/body_plan.h"
#include "compiler/lower_block.h"
#include "graph/model_graph.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"

namespace plancast {

// Elements by mesh axes.
using ElementsByAxes = std::map<std::vector<int>, int64_t>;
void AddTimes(const ElementsByAxes& elements, int64_t times, ElementsByAxes* sum);

// What one copy of a body owns and owes on one device, in elements.
struct BodyState {
  int64_t parameters = 0;
  // Of these, what the matrices of products have that may run in 8 or 4 bits.
  int64_t product_parameters = 0;
  // Gradients to be reduced over the data-parallel axes, and those that are
  // partial over other axes as well (norm weights under sequence parallelism).
  int64_t reduced_over_data = 0;
  ElementsByAxes reduced_over_others;
  // Gradients that are partial because other axes cut the batch as well (a split by hand):
  // data parallelism under another name, by all the axes to be reduced over.
  ElementsByAxes reduced_over_batch;
  // Of weights that a data-parallel axis cuts (experts): the parameters, which are
  // among `parameters`, and gradients, by the axes that the weight has copies on.
  ElementsByAxes cut_parameters, cut_gradients;
  // Each parameter: its rows (as the matrix or vector that frameworks have) and elements,
  // and the axes that it has copies on if they are not the data-parallel ones.
  struct Parameter {
    int64_t rows = 1, elements = 0;
    bool cut = false;
    std::vector<int> copies;
  };
  std::vector<Parameter> each;

  std::string DebugString(const DeviceMesh& mesh) const;
};
BodyState SummariseState(const ModelGraph& graph, const DeviceMesh& mesh, const Body& body,
                         const BodyPlan& plan, const SoftwareProfile& profile);

// Of so many elements, or of one of their equal messages, rounded up.
int64_t WholeBytes(int64_t elements, double element_bytes, int messages = 1);

// Gradients that are reduced over axes of their own, in equal messages.
struct OwnReduction {
  std::vector<int> axes;
  int64_t elements = 0;
  int messages = 1;
};

// Reduces `elements` of gradients over the data-parallel axes as `messages`
// equal messages: all-reduce, or under a sharded optimizer reduce-scatter in the shard
// group and all-reduce of the shards over its replicas. What is `cut` is reduced over its own
// axes; of `batch`, whose weights are not cut, axes beside the data-parallel ones are
// replicas.
BlockTemplate GradientReduction(const DeviceMesh& mesh, const PlanOptions& options,
                                const SoftwareProfile& profile, int64_t elements, int messages,
                                const ElementsByAxes& cut = {},
                                const std::vector<OwnReduction>& batch = {});
// Gathers `elements` updated parameters of a sharded optimizer, and those that are
// `cut` over their own axes.
BlockTemplate ParameterGather(const DeviceMesh& mesh, const PlanOptions& options, int64_t elements,
                              double element_bytes, int messages, const ElementsByAxes& cut = {});
// Sums gradients that are partial over `axes` (one message).
BlockTemplate PartialGradientSum(const DeviceMesh& mesh, const SoftwareProfile& profile,
                                 const std::vector<int>& axes, int64_t elements);

// Sizes of one device's state.
struct StateBytes {
  double parameters = 0, gradients = 0, optimizer = 0;
};
// `kept`: of how many parameters the device keeps the optimizer's state; `products`: how
// many of `parameters` are BodyState::product_parameters.
StateBytes StateOf(const SoftwareProfile& profile, DType dtype, int64_t parameters, int64_t kept,
                   int64_t products = 0);
// Bytes of parameters stored as `type`, or sent in it: 8- and 4-bit floats are for
// `products` alone.
double ParameterBytes(DType type, DType dtype, int64_t parameters, int64_t products);
double ParameterWireBytes(DType type, DType dtype, int64_t parameters, int64_t products);
// Bytes of the optimizer's state of `kept` parameters: master copy and moments.
double OptimizerBytes(const SoftwareProfile& profile, DType dtype, int64_t kept);
// That number: its share of `parameters`, where the optimizer is sharded; those that
// are `cut`, which are among them, are shared by fewer.
int64_t KeptElements(const DeviceMesh& mesh, const PlanOptions& options, int64_t parameters,
                     const ElementsByAxes& cut = {});

// The end of the iteration on one device: gradient norm and its all-reduce
// over `norm_axes` (joined by all programs if `joins_programs`), overflow
// check, clipping, update. A copy of the gradients in the optimizer's own type, where
// that is not theirs, lives through it.
struct ShardedUpdate {
  bool rests_as_master = false;            // there is no copy in the model's type to be written
  int64_t freed_gradients = 0;             // bytes of gradients that are given up at the end
  MemoryPool pool = MemoryPool::kCompute;  // which they are of
  // The processors of the host clip and update, in fp32; then so many bytes of
  // parameters are copied back.
  bool on_host = false;
  int64_t copied_back = 0;
};
BlockTemplate OptimizerStep(const SoftwareProfile& profile, DType dtype, int64_t elements,
                            const std::vector<int>& norm_axes, bool joins_programs,
                            const ShardedUpdate& sharded = {});
// Copies gradients to an optimizer on the host.
BlockTemplate GradientsToHost(int64_t bytes);
// Its beginning: gradients set to zero.
BlockTemplate ZeroGradients(const SoftwareProfile& profile, int64_t elements);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SYNCHRONISE_H_
