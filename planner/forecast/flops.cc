#include "planner/forecast/flops.h"

#include <algorithm>
#include <vector>

#include "compiler/body/partition.h"
#include "graph/model/trained.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

// The tokens that visit experts, as a share of the experts' places: a model's work
// does not depend on how many there are.
double FilledSlots(const ModelGraph& graph) {
  const auto size = [&](absl::string_view dim) {
    const absl::StatusOr<int> index = graph.FindDim(dim);
    return index.ok() ? static_cast<double>(graph.dims[*index].size) : 0;
  };
  const double places = size("experts") * size("slots");
  return places > 0 ? static_cast<double>(graph.seq) * size("topk") / places : 1;
}

// What share of an op's places have work.
double FilledShare(const ModelGraph& graph, const OpNode& op) {
  const absl::StatusOr<int> slots = graph.FindDim("slots");
  const bool routed = slots.ok() && std::find(op.factor_dims.begin(), op.factor_dims.end(),
                                              *slots) != op.factor_dims.end();
  return routed ? FilledSlots(graph) : 1;
}

// Calls `use(FLOPs)` for each.
template <typename Use>
void ForEachProduct(const ModelGraph& graph, const OpNode& op, const Use& use) {
  const OpWork work = WorkOf(*op.rule, FactorExtents(graph, op, *op.rule), 0,
                             static_cast<int>(op.rule->statements().size()));
  for (const Contraction& c : work.contractions) {
    use(2.0 * static_cast<double>(c.batch) * static_cast<double>(c.m) * static_cast<double>(c.n) *
        static_cast<double>(c.k));
  }
}

// Of the two backward products of each product of an op, how many are not done: both where no
// gradient comes, that of the weights where these are frozen.
double ProductsLeftOut(const Body& body, const OpNode& op, const std::vector<bool>& gradients) {
  if (std::none_of(op.outputs.begin(), op.outputs.end(), [&](int t) { return gradients[t]; })) {
    return 2;
  }
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](int t) { return body.tensors[t].frozen; })
             ? 1
             : 0;
}

}  // namespace

double ForwardFlops(const ModelGraph& bound, const OpNode& op) {
  double flops = 0;
  ForEachProduct(bound, op, [&](double product) { flops += product; });
  return flops;
}

double ForwardFlops(const ModelGraph& bound, const Body& body) {
  double flops = 0;
  for (const OpNode& op : body.ops) flops += ForwardFlops(bound, op) * FilledShare(bound, op);
  return flops;
}

double ModelFlopsPerSample(const ModelGraph& unbound) {
  const ModelGraph graph = unbound.WithBatch(1);
  std::vector<double> repeats(graph.bodies.size());
  for (const Segment& segment : graph.segments) {
    repeats[segment.body] += static_cast<double>(segment.repeat);
  }
  const bool trains = graph.TrainedParameterCount() > 0;
  double flops = 0, untrained = 0;
  for (size_t b = 0; b < graph.bodies.size(); ++b) {
    const std::vector<bool> gradients = TrainsInPart(graph.bodies[b]) || !trains
                                            ? HasGradients(graph.bodies[b])
                                            : std::vector<bool>();
    for (const OpNode& op : graph.bodies[b].ops) {
      const double left_out =
          gradients.empty() ? 0 : ProductsLeftOut(graph.bodies[b], op, gradients);
      const double times = FilledShare(graph, op) * repeats[b];
      ForEachProduct(graph, op, [&](double product) {
        flops += product * times;
        untrained += left_out * product * times;
      });
    }
  }
  return 3 * flops - untrained;
}

bool HasSamples(const ModelGraph& graph) {
  const absl::StatusOr<int> batch = graph.FindDim("batch");
  return batch.ok() && std::any_of(graph.bodies.begin(), graph.bodies.end(), [&](const Body& body) {
           return std::any_of(body.tensors.begin(), body.tensors.end(), [&](const TensorInfo& t) {
             return std::find(t.dims.begin(), t.dims.end(), *batch) != t.dims.end();
           });
         });
}

double HardwareFlops(const ExecutionGraph& graph) {
  std::vector<double> of_block;
  for (const Block& block : graph.blocks) {
    double flops = 0;
    for (int32_t t = 0; t < block.size(); ++t) {
      if (block.kind[t] != TaskKind::kKernel) continue;
      const KernelSpec& kernel = graph.kernels[block.spec[t]];
      if (kernel.family == KernelFamily::kGemm || kernel.family == KernelFamily::kAttention ||
          kernel.family == KernelFamily::kConvolution) {
        flops += kernel.flops;
      }
    }
    of_block.push_back(flops);
  }
  double total = 0, weighted = 0;
  for (const Program& program : graph.programs) {
    double flops = 0;
    for (const Instance& instance : program.instances) {
      flops += of_block[instance.block] * instance.layer_count;
    }
    total += flops;
    weighted += flops * static_cast<double>(graph.DevicesOf(program));
  }
  if (!graph.stage_meshes.empty()) return weighted;
  return total * static_cast<double>(graph.mesh.num_devices()) /
         static_cast<double>(graph.programs.size());
}

}  // namespace plancast
