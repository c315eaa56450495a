#ifndef PLANCAST_COMPILER_LOWER_KERNELS_LOWER_KERNEL_H_
#define PLANCAST_COMPILER_LOWER_KERNELS_LOWER_KERNEL_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cluster/device_mesh.h"
#include "compiler/bind/routed_load.h"
#include "compiler/body/body_plan.h"
#include "graph/dtype.h"
#include "graph/execution/execution_graph.h"
#include "graph/kernel_spec.h"
#include "graph/model/model_graph.h"
#include "graph/model/packed_documents.h"
#include "strategy/software_profile.h"

namespace plancast {

// What lowering needs to know about its surroundings.
struct LowerContext {
  const ModelGraph* graph = nullptr;
  const DeviceMesh* mesh = nullptr;
  const BoundBody* bound = nullptr;
  const SoftwareProfile* profile = nullptr;
  DType dtype = DType::kBf16;
  const RoutedLoad* load = nullptr;  // null: all alike
  // Gradients of weights are a pass of their own (SplitBackward).
  bool splits_backward = false;
  // The axis of which the body's results are summed by others (BlockTemplate::outside); -1: none.
  // `sums_outside`: so are sums inside of ops, which go on with those of their own part.
  int outside = -1;
  bool sums_outside = false;
  // overlap=cp: kernels of a ring do not wait for what is sent beside them.
  bool hides_context = false;
  DocumentDeal documents = {};  // who gets which of the model's, if it has some
  // The others of these.
  std::vector<int> Inside(std::vector<int> axes) const {
    axes.erase(std::remove(axes.begin(), axes.end(), outside), axes.end());
    return axes;
  }

  const Body& body() const { return graph->bodies[bound->body]; }
  // Bytes of one element of a tensor declared with `type`.
  double Bytes(DType type) const {
    return ElementBytes(type == DType::kCompute ? StorageType(dtype) : type);
  }
  // Bytes of a value on one device, the busiest where loads are unlike.
  double LocalBytes(const Value& value) const {
    const TensorFacts facts = FactsOf(*graph, body(), value.ref);
    return value.layout.LocalElements(*mesh, facts.shape) * Bytes(facts.dtype) *
           Busiest(value.ref, value.layout);
  }
  // Bytes of the largest tensor that an op of such factors makes for itself.
  double LargestIntermediate(const OpRule& rule, const std::vector<int64_t>& extents) const {
    double most = 0;
    for (const RuleTensor& tensor : rule.tensors()) {
      if (tensor.role != RuleTensor::Role::kIntermediate) continue;
      double bytes = Bytes(tensor.dtype);
      for (const int f : tensor.factors) bytes *= static_cast<double>(extents[f]);
      most = std::max(most, bytes);
    }
    return most;
  }
  // How much more of it the busiest device has than the mean.
  double Busiest(const TensorRef& ref, const Layout& layout) const {
    const bool routed =
        load != nullptr && ref.op < 0 && load->Holds(body().tensors[ref.tensor], layout);
    return routed ? load->skew.Busiest() : 1;
  }
};

// One op step to be run in one kernel with its neighbours, and which of its
// border tensors the kernel really touches (a fused neighbour's stay in
// registers).
struct KernelPart {
  const OpStep* step = nullptr;
  int begin = 0, end = 0;           // statements of the rule
  std::vector<bool> reads, writes;  // per rule tensor: moved to or from memory
  bool ends_only = false;           // of recurrences only the last states: nothing is written
  bool quantized = false;           // its activation or gradient comes in 8 or 4 bits
  const CommLoop* loop = nullptr;   // it is part `piece` of this loop
  int64_t piece = 0;
};

// The kernels that run `parts` as one launch group: a matrix product per
// distinct shape, else one memory-bound kernel. `extra_read_bytes` are read
// besides the parts' own tensors. Empty if nothing is moved or computed.
std::vector<KernelSpec> KernelsOf(const LowerContext& context, const std::vector<KernelPart>& parts,
                                  double extra_read_bytes, const std::string& label);

// What is added to an op's name in the label of its kernels: ``, `.bwd`, ...
absl::string_view PartSuffix(Part part);

// Whose time a step of the part is.
Purpose PurposeOf(Part part);

// A pass over memory, also of what has no type of the model's.
inline KernelSpec CopyKernel(const std::string& label, double read_bytes, double write_bytes) {
  KernelSpec kernel;
  kernel.family = KernelFamily::kMemory;
  kernel.label = label;
  kernel.read_bytes = read_bytes;
  kernel.write_bytes = write_bytes;
  return kernel;
}
KernelSpec MemoryKernel(const LowerContext& context, const std::string& label, double read_bytes,
                        double write_bytes);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_KERNELS_LOWER_KERNEL_H_
