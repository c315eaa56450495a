#include "compiler/sharding/stage_state.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/int128.h"
#include "compiler/activations/parking_plan.h"
#include "compiler/lower/kernels/sum_fusion.h"
#include "compiler/sharding/optimizer/newton_schulz.h"
#include "compiler/sharding/shard_axes.h"
#include "compiler/sharding/shard_plan.h"
#include "compiler/sharding/state_bytes.h"

namespace plancast {
namespace {

// Parameters of a stage that are not trained, by their homes.
struct FrozenGroup {
  ParameterHomes homes;  // of any bucket
  FrozenParameters frozen = {};
};

// Of `groups` the one with these homes, which is new if there is none.
template <typename Group>
Group& GroupWith(const ParameterHomes& with, std::vector<Group>* groups) {
  const ParameterHomes homes = with.OfAnyBucket();
  const auto known = std::find_if(groups->begin(), groups->end(),
                                  [&](const Group& group) { return group.homes == homes; });
  return known != groups->end() ? *known : *groups->insert(known, Group{homes});
}

std::vector<FrozenGroup> FrozenGroupsOf(const StageContents& contents) {
  std::vector<FrozenGroup> groups;
  contents.ForEachRun([&](const StageRun& run) {
    contents.ForEachPart(run, [&](const HomePart& part) {
      if (part.state->frozen.elements == 0) return;
      contents.AddFrozen(run, part, &GroupWith(part.homes, &groups).frozen);
    });
  });
  const auto empty = [](const FrozenGroup& group) { return group.frozen.elements == 0; };
  groups.erase(std::remove_if(groups.begin(), groups.end(), empty), groups.end());
  return groups;
}

// Of how many equal parts a device keeps one of a parameter's state; 0: it keeps none.
int64_t SharesOf(const ProgramInputs& in, const StateGroup& group,
                 const BodyState::Parameter& parameter) {
  if (parameter.elements == 0) return 1;
  if (group.homes.over.has_value() && parameter.own.has_value()) {
    const int64_t kept = KeptElementsOver(*in.mesh, *in.options, *group.homes.over,
                                          {{*parameter.own, parameter.elements}});
    return kept == 0 ? 0 : std::max<int64_t>(parameter.elements / kept, 1);
  }
  if (group.homes.zero < 1) return 1;
  return parameter.cut ? ShardAxesOf(*in.mesh, *in.options, parameter.copies).shards
                       : in.options->shard_ranks();
}

// Whole matrices are dealt to the ranks that share the optimizer, the most expensive first; all
// ranks stand for the first, which gets the most.
void AddMatrices(const ProgramInputs& in, const StageContents& contents,
                 std::vector<StateGroup>* groups) {
  using Shape = std::tuple<double, int64_t, int64_t>;  // less its cost, rows, columns
  std::vector<std::map<int64_t, std::map<Shape, int64_t>>> dealt(groups->size());
  contents.ForEachRun([&](const StageRun& run) {
    contents.ForEachPart(run, [&](const HomePart& part) {
      const auto group = std::find_if(groups->begin(), groups->end(),
                                      [&](const StateGroup& g) { return g.Takes(part.homes); });
      if (group == groups->end()) return;
      for (const BodyState::Parameter& each : part.state->each) {
        const int64_t shares = SharesOf(in, *group, each);
        if (each.frozen || each.matrices == 0 || shares == 0) continue;
        const auto [least, most] = std::minmax(each.matrix_rows, each.matrix_columns);
        const double cost = NewtonSchulzFlops(least, most);
        dealt[group - groups->begin()][shares][{-cost, each.matrix_rows, each.matrix_columns}] +=
            each.matrices * run.count;
        group->matrices.elements += CeilDiv(each.elements * run.count, shares);
      }
    });
  });
  for (size_t g = 0; g < groups->size(); ++g) {
    KeptMatrices& matrices = (*groups)[g].matrices;
    matrices.elements = std::min(matrices.elements, (*groups)[g].kept);
    std::map<std::pair<int64_t, int64_t>, int64_t> counts;
    for (const auto& [shares, shapes] : dealt[g]) {
      int64_t at = 0;  // in the order in which they are dealt
      for (const auto& [shape, count] : shapes) {
        counts[{std::get<1>(shape), std::get<2>(shape)}] +=
            CeilDiv(at + count, shares) - CeilDiv(at, shares);
        at += count;
      }
    }
    for (const auto& [shape, count] : counts) {
      if (count > 0) matrices.shapes.push_back({count, shape.first, shape.second});
    }
  }
}

// Of a profile that casts gradients behind the pass that makes them: those of the pass, and the
// largest as it is cast.
double PassGradientBytes(const ProgramInputs& in, const StageContents& contents,
                         const StateGroup& group) {
  if (!CastsGradients(*in.profile, in.dtype)) return 0;
  int64_t largest = 0;
  contents.ForEachRun([&](const StageRun& run) {
    contents.ForEachPart(run, [&](const HomePart& part) {
      if (!group.Takes(part.homes)) return;
      for (const BodyState::Parameter& each : part.state->each) {
        if (!each.frozen) largest = std::max(largest, each.elements);
      }
    });
  });
  return ElementBytes(StorageType(in.dtype)) * static_cast<double>(group.parameters) +
         ElementBytes(in.profile->types.grad_dtype) * static_cast<double>(largest);
}

}  // namespace

bool InBodies(const ParameterHomes& homes, const ShardedStage* sharded) {
  return sharded != nullptr && sharded->Takes(homes);
}

int64_t WholeParameters(const StageContents& contents, const StageRun& run,
                        const ShardedStage* sharded) {
  int64_t parameters = 0;
  contents.ForEachPart(run, [&](const HomePart& part) {
    if (!InBodies(part.homes, sharded)) parameters += contents.Parameters(run, part);
  });
  return parameters;
}

std::vector<StateGroup> StateGroupsOf(const ProgramInputs& inputs, const StageContents& contents,
                                      const ShardedStage* sharded) {
  std::vector<StateGroup> groups;
  contents.ForEachRun([&](const StageRun& run) {
    contents.ForEachPart(run, [&](const HomePart& part) {
      StateGroup& group = GroupWith(part.homes, &groups);
      const int64_t parameters = contents.Parameters(run, part);
      group.parameters += parameters * run.count;
      group.products += std::min(part.state->product_parameters, parameters) * run.count;
      AddTimes(part.state->cut_parameters, run.count, &group.cut);
      for (const auto& [copies, elements] : part.state->own) {
        group.own[copies] += elements * run.count;
      }
    });
  });
  // Bodies without parameters have no say.
  const auto empty = [](const StateGroup& group) { return group.parameters == 0; };
  if (!std::all_of(groups.begin(), groups.end(), empty)) {
    groups.erase(std::remove_if(groups.begin(), groups.end(), empty), groups.end());
  }
  for (StateGroup& group : groups) {
    const std::optional<HomeAxes>& over = group.homes.over;
    group.kept = InBodies(group.homes, sharded) ? sharded->ShardElements(group.homes)
                 : over.has_value()
                     ? KeptElementsOver(*inputs.mesh, *inputs.options, *over, group.own)
                     : KeptElements(*inputs.mesh, *inputs.options, group.homes.zero >= 1,
                                    group.parameters, group.cut);
  }
  if (inputs.profile->update.type == OptimizerType::kMuon) AddMatrices(inputs, contents, &groups);
  return groups;
}

void FillStaticBytes(const ProgramInputs& inputs, int64_t stage, Program* program) {
  const StageContents contents(inputs, stage);
  std::optional<ShardedStage> sharded;
  if (ShardsBodies(*inputs.options, contents)) sharded.emplace(inputs, contents);
  FillStaticBytes(inputs, contents, sharded.has_value() ? &*sharded : nullptr, program);
}

void FillStaticBytes(const ProgramInputs& inputs, const StageContents& contents,
                     const ShardedStage* bodies, Program* program) {
  const PlanOptions& options = *inputs.options;
  const SoftwareProfile& profile = *inputs.profile;
  StateBytes total;
  double host = 0;
  for (const StateGroup& group : StateGroupsOf(inputs, contents, bodies)) {
    const ParameterHomes& homes = group.homes;
    StateBytes bytes;
    if (InBodies(homes, bodies)) {
      const bool shards = homes.zero == 3;
      const int64_t ranks = homes.over.has_value() ? std::max<int64_t>(group.parameters, 1) /
                                                         std::max<int64_t>(group.kept, 1)
                                                   : options.shard_ranks();
      const int64_t products = group.products / (shards ? ranks : 1);
      bytes = StateOf(profile, inputs.dtype, shards ? group.kept : group.parameters, group.kept,
                      shards && homes.elsewhere() ? 0 : products, group.matrices.elements);
      bytes.gradients = 0;  // below
      if (shards && RestsAsMaster(profile, inputs.dtype)) {
        // The master's shard, counted with the optimizer elsewhere, is the parameter.
        bytes.parameters =
            static_cast<double>(StoredBytes(*profile.MasterType(inputs.dtype), group.kept));
        bytes.optimizer -= bytes.parameters;
      }
    } else {
      bytes = StateOf(profile, inputs.dtype, group.parameters, group.kept, group.products,
                      group.matrices.elements);
      if (profile.update.fresh_gradients) bytes.gradients = 0;
      bytes.gradients += PassGradientBytes(inputs, contents, group);
    }
    // What lives on the host: state and the gradients that it is updated with, in fp32, and
    // parameters.
    if (homes.state_on_host) {
      host += std::exchange(bytes.optimizer, 0) + 4 * static_cast<double>(group.kept);
      if (homes.zero >= 2) bytes.gradients = 0;
    }
    if (homes.weights_on_host) host += std::exchange(bytes.parameters, 0);
    total.parameters += bytes.parameters;
    total.gradients += bytes.gradients;
    total.optimizer += bytes.optimizer;
  }
  if (bodies != nullptr && profile.update.zero_grad) {
    total.gradients += static_cast<double>(bodies->GradientBytes(ShardTypesOf(inputs, contents)));
  }
  for (const FrozenGroup& group : FrozenGroupsOf(contents)) {
    double fixed = FrozenBytes(profile, inputs.dtype, group.frozen);
    if (InBodies(group.homes, bodies) && group.homes.zero == 3) {
      fixed *= static_cast<double>(bodies->FrozenShards(group.homes)) /
               static_cast<double>(group.frozen.elements);
    }
    (group.homes.weights_on_host ? host : total.parameters) += fixed;
  }
  int64_t sparse = 0;
  contents.ForEachRun([&](const StageRun& run) {
    sparse += contents.BodyOf(run).state.sparse_parameters * run.count;
  });
  total.parameters +=
      ParameterBytes(profile.ParamType(inputs.dtype), inputs.dtype, sparse, /*products=*/0);
  total.optimizer += OptimizerBytes(profile, inputs.dtype, sparse);
  program->host_bytes = static_cast<int64_t>(host);
  auto set = [program](MemoryKind kind, double value) {
    program->static_bytes[static_cast<int>(kind)] = static_cast<int64_t>(value);
  };
  set(MemoryKind::kParameters, total.parameters);
  set(MemoryKind::kGradients, total.gradients);
  set(MemoryKind::kOptimizer, total.optimizer);
  program->static_bytes[static_cast<int>(MemoryKind::kWorkspace)] = contents.HeldBytes();
  if (inputs.parking != nullptr) {
    program->static_bytes[static_cast<int>(MemoryKind::kActivations)] =
        inputs.parking->HostedBytes(contents.stage());
  }
}

}  // namespace plancast
