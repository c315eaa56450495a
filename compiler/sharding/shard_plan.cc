#include "compiler/sharding/shard_plan.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/sharding/state_bytes.h"
#include "compiler/sharding/synchronise.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/int128.h"

namespace plancast {
namespace {

template <typename Of>
int64_t Sum(const std::vector<ShardUnit::Part>& parts, const Of& of) {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [&](int64_t sum, const ShardUnit::Part& part) { return sum + of(part); });
}

// The parameters that bytes of an element are taken of.
struct Counted {
  int64_t trained = 0, products = 0;
  FrozenParameters frozen;
  bool some = false;  // not all of the stage
};

// All of a stage. Where some of it is frozen and nodes say homes, those whose weights are sharded:
// others in other types do not travel with them.
Counted CountedIn(const ProgramInputs& in, const StageContents& contents) {
  const Counted all{contents.TotalParameters(), contents.ProductParameters(),
                    contents.TotalFrozen(), /*some=*/false};
  if (in.homes == nullptr || all.frozen.elements == 0) return all;
  Counted sharded;
  contents.ForEachRun([&](const StageRun& run) {
    contents.ForEachPart(run, [&](const HomePart& part) {
      if (part.homes.zero < 3) return;
      const int64_t trained = contents.Parameters(run, part);
      sharded.trained += trained * run.count;
      sharded.products += std::min(part.state->product_parameters, trained) * run.count;
      contents.AddFrozen(run, part, &sharded.frozen);
    });
  });
  const int64_t elements = sharded.trained + sharded.frozen.elements;
  sharded.some = elements < all.trained + all.frozen.elements;
  return elements > 0 ? sharded : all;
}

// Those between whose forward pass and backward pass, in a backward pass that recomputes each of
// `layers` by itself, modules of at least `reuse` elements run: the rest of the layer, forth and
// back.
std::vector<bool> UsedLater(const std::vector<BodyState::Parameter>& parameters, int layers,
                            int64_t reuse) {
  std::vector<bool> later(parameters.size(), false);
  if (layers == 0 || reuse == 0) return later;
  const size_t each = CeilDiv<size_t>(parameters.size(), layers);
  int64_t behind = 0;
  for (size_t i = parameters.size(); i-- > 0;) {
    if ((i + 1) % each == 0) behind = 0;
    later[i] = 2 * behind >= reuse;
    behind += parameters[i].elements;
  }
  return later;
}

}  // namespace

void ShardUnit::Add(const DeviceMesh& mesh, const PlanOptions& options,
                    const SoftwareProfile::DataParallel& style, const ParameterHomes& homes,
                    const std::vector<BodyState::Parameter>& parameters, int layers, bool trained) {
  const std::vector<int> data = DataAxes(mesh);
  const ShardCut cut = style.shard_cut;
  const ParameterHomes of_any_bucket = homes.OfAnyBucket();
  const auto part_on = [&](const ShardAxes& axes) {
    const auto known = std::find_if(parts.begin(), parts.end(), [&](const Part& other) {
      return other.axes == axes && other.homes == of_any_bucket;
    });
    const auto at = static_cast<size_t>(known - parts.begin());
    if (at == parts.size()) parts.push_back({axes, of_any_bucket, 0, 0, 0, 0, std::nullopt, 0, {}});
    return at;
  };
  const std::vector<bool> again = UsedLater(parameters, layers, style.reuse_elements);
  std::optional<size_t> common;  // the part of what is on all data-parallel ranks
  for (size_t i = 0; i < parameters.size(); ++i) {
    const BodyState::Parameter& p = parameters[i];
    if (trained && p.frozen) continue;
    size_t at = 0;
    if (p.own.has_value()) {
      at = part_on(ShardAxesOver(mesh, options, *homes.over, *p.own));
    } else if (p.cut) {
      at = part_on(ShardAxesOf(mesh, options, p.copies));
    } else {
      if (!common.has_value()) common = part_on(ShardAxesOf(mesh, options, data));
      at = *common;
    }
    Part* const part = &parts[at];
    const ShardAxes& axes = part->axes;
    part->elements += p.elements;
    ++part->count;
    const int64_t before = part->padded;
    if (cut == ShardCut::kUnit) {
      part->padded = CeilDiv(part->elements, axes.shards) * axes.shards;
    } else if (cut == ShardCut::kRows && !p.cut && p.rows > 0) {
      part->padded += CeilDiv(p.rows, axes.shards) * axes.shards * (p.elements / p.rows);
    } else {
      part->padded += CeilDiv(p.elements, axes.shards) * axes.shards;
    }
    part->to_reduce = part->padded / axes.sliced(mesh);
    if (style.lists && !axes.rooted && p.elements > style.lists_above) {
      if (!part->lists.has_value()) part->lists.emplace();
      part->lists->push_back(part->padded - before);
      if (again[i]) part->lists_again.push_back(part->padded - before);
    }
    if (again[i]) part->again += part->padded - before;
  }
}

int64_t ShardUnit::elements() const {
  return Sum(parts, [](const Part& part) { return part.elements; });
}
int64_t ShardUnit::count() const {
  return Sum(parts, [](const Part& part) { return part.count; });
}
int64_t ShardUnit::padded() const {
  return Sum(parts, [](const Part& part) { return part.padded; });
}
int64_t ShardUnit::shard() const {
  return Sum(parts, [](const Part& part) { return part.shard(); });
}
int64_t ShardUnit::kept_whole() const {
  return Sum(parts, [](const Part& part) { return part.axes.rooted ? part.shard() : 0; });
}
int64_t ShardUnit::alone() const {
  return Sum(parts, [](const Part& part) { return part.is_alone() ? part.elements : 0; });
}
int64_t ShardUnit::host_weights() const {
  return Sum(parts, [](const Part& part) { return part.homes.weights_on_host ? part.shard() : 0; });
}
int64_t ShardUnit::host_gradients() const {
  return Sum(parts, [](const Part& part) { return part.homes.state_on_host ? part.shard() : 0; });
}
int64_t ShardUnit::whole_on_host() const {
  return Sum(parts, [](const Part& part) {
    return part.homes.weights_on_host && part.is_fetched() ? part.padded : 0;
  });
}
int64_t ShardUnit::secondary() const {
  return Sum(parts, [](const Part& part) { return CeilDiv(part.padded, part.axes.secondaries); });
}
bool ShardUnit::gathers(bool secondary) const {
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
    const bool fetched = !secondary && part.homes.weights_on_host && part.is_fetched();
    const bool comes =
        secondary ? part.axes.secondaries > 1 : part.axes.shards > 1 || part.axes.rooted;
    return (fetched || comes) && part.padded > 0;
  });
}

int64_t ShardUnit::gathered_over(bool secondary) const {
  int64_t ranks = 1;
  for (const Part& part : parts) {
    if (part.padded == 0 || part.axes.rooted) continue;
    ranks = std::max(ranks, secondary ? part.axes.secondaries : part.axes.shards);
  }
  return ranks;
}
bool ShardUnit::by_lists() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.lists.has_value(); });
}

bool RestsAsMaster(const SoftwareProfile& profile, DType dtype) {
  return profile.data_parallel.sharded_master && profile.MasterType(dtype).has_value();
}

bool ShardsBodies(const PlanOptions& options, const ParameterHomes& homes) {
  return homes.zero >= 2 && (homes.over.has_value() || options.dp * options.cp > 1);
}

bool ShardsBodies(const PlanOptions& options, const StageContents& contents) {
  bool shards = false;
  contents.ForEachHome(
      [&](const ParameterHomes& homes) { shards = shards || ShardsBodies(options, homes); });
  return shards;
}

int64_t KeptGradientBytes(const ShardUnit& unit, const ShardTypes& types) {
  return WholeBytes(unit.shard() - unit.host_gradients(), types.kept);
}

ShardTypes ShardTypesOf(const ProgramInputs& in, const StageContents& contents) {
  const SoftwareProfile& profile = *in.profile;
  const Counted counted = CountedIn(in, contents);
  const int64_t frozen = counted.frozen.elements, trained = counted.trained;
  const int64_t all = std::max<int64_t>(trained + frozen, 1);
  const auto each = [&](double bytes) { return bytes / static_cast<double>(all); };
  const int64_t products = counted.products;
  const double fixed = FrozenBytes(profile, in.dtype, counted.frozen);
  const double fixed_wire = FrozenWireBytes(profile, in.dtype, counted.frozen);
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
  types.updated =
      counted.some ? ElementBytes(StorageType(profile.ParamType(in.dtype))) : types.at_rest;
  types.reduced = ElementBytes(profile.types.reduce_dtype);
  types.reduced_wire = WireBytes(profile.types.reduce_dtype);
  types.kept = ElementBytes(profile.types.grad_dtype);
  return types;
}

}  // namespace plancast
