#include "compiler/sharding/shard_plan.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/sharding/state_bytes.h"
#include "compiler/sharding/synchronise.h"

#include <algorithm>
#include <numeric>

#include "base/int128.h"

namespace plancast {
namespace {

template <typename Of>
int64_t Sum(const std::vector<ShardUnit::Part>& parts, const Of& of) {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [&](int64_t sum, const ShardUnit::Part& part) { return sum + of(part); });
}

}  // namespace

void ShardUnit::Add(const DeviceMesh& mesh, const PlanOptions& options, ShardCut cut,
                    const ParameterHomes& homes,
                    const std::vector<BodyState::Parameter>& parameters, bool trained) {
  const std::vector<int> data = DataAxes(mesh);
  for (const BodyState::Parameter& p : parameters) {
    if (trained && p.frozen) continue;
    const ShardAxes axes = ShardAxesOf(mesh, options, p.cut ? p.copies : data);
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& known) {
      return known.axes == axes && known.zero == homes.zero &&
             known.weights_on_host == homes.weights_on_host &&
             known.state_on_host == homes.state_on_host;
    });
    if (part == parts.end()) {
      part = parts.insert(parts.end(),
                          {axes, homes.zero, homes.weights_on_host, homes.state_on_host, 0, 0});
    }
    part->elements += p.elements;
    if (cut == ShardCut::kUnit) {
      part->padded = CeilDiv(part->elements, axes.shards) * axes.shards;
    } else if (cut == ShardCut::kRows && !p.cut && p.rows > 0) {
      part->padded += CeilDiv(p.rows, axes.shards) * axes.shards * (p.elements / p.rows);
    } else {
      part->padded += CeilDiv(p.elements, axes.shards) * axes.shards;
    }
  }
}

int64_t ShardUnit::elements() const {
  return Sum(parts, [](const Part& part) { return part.elements; });
}
int64_t ShardUnit::padded() const {
  return Sum(parts, [](const Part& part) { return part.padded; });
}
int64_t ShardUnit::shard() const {
  return Sum(parts, [](const Part& part) { return part.shard(); });
}
int64_t ShardUnit::host_weights() const {
  return Sum(parts, [](const Part& part) { return part.weights_on_host ? part.shard() : 0; });
}
int64_t ShardUnit::host_gradients() const {
  return Sum(parts, [](const Part& part) { return part.state_on_host ? part.shard() : 0; });
}
int64_t ShardUnit::secondary() const {
  return Sum(parts, [](const Part& part) { return CeilDiv(part.padded, part.axes.secondaries); });
}
bool ShardUnit::gathers(bool secondary) const {
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
    return (secondary ? part.axes.secondaries : part.axes.shards) > 1 && part.padded > 0;
  });
}

bool RestsAsMaster(const SoftwareProfile& profile, DType dtype) {
  return profile.data_parallel.sharded_master && profile.MasterType(dtype).has_value();
}

bool ShardsBodies(const PlanOptions& options, int zero) {
  return zero >= 2 && options.dp * options.cp > 1;
}

int64_t KeptGradientBytes(const ShardUnit& unit, const ShardTypes& types) {
  return WholeBytes(unit.shard() - unit.host_gradients(), types.kept);
}

ShardTypes ShardTypesOf(const ProgramInputs& in, const StageContents& contents) {
  const SoftwareProfile& profile = *in.profile;
  const FrozenParameters fixed_parameters = contents.TotalFrozen();
  const int64_t frozen = fixed_parameters.elements;
  const int64_t all = std::max<int64_t>(contents.TotalParameters() + frozen, 1);
  const int64_t trained = all - frozen;
  const auto each = [&](double bytes) { return bytes / static_cast<double>(all); };
  const int64_t products = contents.ProductParameters();
  const double fixed = FrozenBytes(profile, in.dtype, fixed_parameters);
  const double fixed_wire = FrozenWireBytes(profile, in.dtype, fixed_parameters);
  ShardTypes types;
  types.gathered =
      each(ParameterBytes(profile.ParamType(in.dtype), in.dtype, trained, products) + fixed);
  types.wire = each(ParameterWireBytes(profile.GatherType(in.dtype), in.dtype, trained, products) +
                    fixed_wire);
  types.gradient = ElementBytes(StorageType(in.dtype));
  types.at_rest = types.gathered;
  if (RestsAsMaster(profile, in.dtype)) {
    const double master = ElementBytes(*profile.MasterType(in.dtype));
    types.at_rest = frozen == 0 ? master : each(static_cast<double>(trained) * master + fixed);
  }
  types.reduced = ElementBytes(profile.types.reduce_dtype);
  types.reduced_wire = WireBytes(profile.types.reduce_dtype);
  types.kept = ElementBytes(profile.types.grad_dtype);
  return types;
}

}  // namespace plancast
