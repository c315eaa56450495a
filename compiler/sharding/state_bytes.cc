#include "compiler/sharding/state_bytes.h"

#include <algorithm>
#include <optional>

#include "base/int128.h"
#include "compiler/sharding/shard_axes.h"
#include "graph/model/nf4.h"

namespace plancast {
namespace {

double MixedBytes(double product_bytes, DType type, DType dtype, int64_t parameters,
                  int64_t products) {
  const int64_t others = IsQuantized(type) ? parameters - products : 0;
  return static_cast<double>(parameters - others) * product_bytes +
         static_cast<double>(others) * ElementBytes(StorageType(dtype));
}

}  // namespace

int64_t KeptElements(const DeviceMesh& mesh, const PlanOptions& options, bool sharded,
                     int64_t parameters, const ElementsByAxes& cut) {
  if (!sharded) return parameters;
  int64_t kept = 0;
  for (const auto& [axes, elements] : cut) {
    kept += CeilDiv(elements, ShardAxesOf(mesh, options, axes).shards);
    parameters -= elements;
  }
  return kept + CeilDiv(parameters, options.shard_ranks());
}

int64_t KeptElementsOver(const DeviceMesh& mesh, const PlanOptions& options, const HomeAxes& over,
                         const ElementsByCopies& own) {
  int64_t kept = 0;
  for (const auto& [copies, elements] : own) {
    kept += ShardAxesOver(mesh, options, over, copies).Kept(elements);
  }
  return kept;
}

double ParameterBytes(DType type, DType dtype, int64_t parameters, int64_t products) {
  return MixedBytes(ElementBytes(type), type, dtype, parameters, products);
}

double ParameterWireBytes(DType type, DType dtype, int64_t parameters, int64_t products) {
  return MixedBytes(WireBytes(type), type, dtype, parameters, products);
}

double FrozenBytes(const SoftwareProfile& profile, DType dtype, const FrozenParameters& frozen) {
  const DType type = profile.ParamType(dtype), own = StorageType(dtype);
  return ParameterBytes(ElementBytes(type) < ElementBytes(own) ? type : own, dtype,
                        frozen.elements - frozen.nf4, frozen.products) +
         kNf4ElementBytes * static_cast<double>(frozen.nf4);
}

double FrozenWireBytes(const SoftwareProfile& profile, DType dtype,
                       const FrozenParameters& frozen) {
  return std::min(FrozenBytes(profile, dtype, frozen),
                  ParameterWireBytes(profile.GatherType(dtype), dtype, frozen.elements - frozen.nf4,
                                     frozen.products) +
                      kNf4ElementBytes * static_cast<double>(frozen.nf4));
}

double OptimizerBytes(const SoftwareProfile& profile, DType dtype, int64_t kept, int64_t matrices) {
  const std::optional<DType> master = profile.MasterType(dtype);
  int64_t first = 0, second = 0;  // elements of each moment
  for (const bool matrix : {false, true}) {
    const int moments = Moments(profile.update.type, matrix);
    const int64_t elements = matrix ? matrices : kept - matrices;
    if (moments > 0) first += elements;
    if (moments > 1) second += elements;
  }
  const int64_t bytes = (master.has_value() ? StoredBytes(*master, kept) : 0) +
                        StoredBytes(profile.types.state_dtype, first) +
                        StoredBytes(profile.SecondStateType(), second);
  return static_cast<double>(bytes);
}

StateBytes StateOf(const SoftwareProfile& profile, DType dtype, int64_t parameters, int64_t kept,
                   int64_t products, int64_t matrices) {
  StateBytes bytes;
  bytes.parameters = ParameterBytes(profile.ParamType(dtype), dtype, parameters, products);
  bytes.gradients = static_cast<double>(StoredBytes(profile.types.grad_dtype, parameters));
  bytes.optimizer = OptimizerBytes(profile, dtype, kept, matrices);
  return bytes;
}

}  // namespace plancast
