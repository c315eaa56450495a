#include "compiler/program/shared_parameters.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace plancast {
namespace {

using LayerPlace = std::tuple<int, int64_t, int>;  // segment, repeat, tensor: in model order

// Where the layers of each segment begin, as runs count them.
std::map<int, int64_t> FirstLayers(const std::vector<std::vector<StageRun>>& stages) {
  std::map<int, int64_t> first;
  for (const std::vector<StageRun>& runs : stages) {
    for (const StageRun& run : runs) {
      const auto [known, fresh] = first.try_emplace(run.segment, run.layer_begin);
      if (!fresh) known->second = std::min(known->second, run.layer_begin);
    }
  }
  return first;
}

// The virtual stage of a use: that of the run which has its layer, else (layers that were joined
// to those of another segment) the last that begins before it.
int64_t VirtualStageOf(const SharedParameter::Use& use,
                       const std::vector<std::vector<StageRun>>& stages) {
  int64_t before = 0;
  for (size_t v = 0; v < stages.size(); ++v) {
    for (const StageRun& run : stages[v]) {
      if (run.segment == use.segment && use.layer >= run.layer_begin &&
          use.layer < run.layer_begin + run.count) {
        return static_cast<int64_t>(v);
      }
      if (run.segment <= use.segment) before = static_cast<int64_t>(v);
    }
  }
  return before;
}

bool EquallyFarApart(const std::vector<int64_t>& stages) {
  for (size_t i = 2; i < stages.size(); ++i) {
    if (stages[i] - stages[i - 1] != stages[1] - stages[0]) return false;
  }
  return true;
}

// By segment and layer: what is borrowed there.
std::map<std::pair<int, int64_t>, int64_t> Borrowed(const std::vector<SharedParameter>& shared) {
  std::map<std::pair<int, int64_t>, int64_t> borrowed;
  for (const SharedParameter& parameter : shared) {
    for (size_t u = 0; u < parameter.uses.size(); ++u) {
      const SharedParameter::Use& use = parameter.uses[u];
      if (parameter.IsBorrowed(u)) borrowed[{use.segment, use.layer}] += parameter.elements;
    }
  }
  return borrowed;
}

void SplitRuns(const std::vector<SharedParameter>& shared,
               std::vector<std::vector<StageRun>>* stages) {
  const std::map<std::pair<int, int64_t>, int64_t> borrowed = Borrowed(shared);
  if (borrowed.empty()) return;
  const auto at = [&](int segment, int64_t layer) {
    const auto found = borrowed.find({segment, layer});
    return found == borrowed.end() ? 0 : found->second;
  };
  for (std::vector<StageRun>& runs : *stages) {
    std::vector<StageRun> split;
    for (const StageRun& run : runs) {
      split.push_back(run);
      split.back().count = 1;
      for (int64_t layer = run.layer_begin + 1; layer < run.layer_begin + run.count; ++layer) {
        if (at(run.segment, layer) == at(run.segment, layer - 1)) {
          ++split.back().count;
        } else {
          split.push_back({run.segment, run.bound_body, layer, 1, run.joined});
        }
      }
    }
    runs = std::move(split);
  }
}

}  // namespace

bool SharedParameter::IsBorrowed(size_t use) const {
  return std::any_of(uses.begin() + static_cast<std::ptrdiff_t>(use) + 1, uses.end(),
                     [&](const Use& later) { return later.stage == uses[use].stage; });
}

std::vector<int64_t> SharedParameter::Stages() const {
  std::set<int64_t> stages;
  for (const Use& use : uses) stages.insert(use.stage);
  return {stages.begin(), stages.end()};
}

std::vector<SharedParameter> SharedParametersOf(const ModelGraph& graph) {
  std::vector<std::set<LayerPlace>> groups;
  for (const TiedParameter& tie : graph.tied) {
    std::set<LayerPlace> joined = {{tie.first_segment, tie.first_repeat, tie.first_tensor},
                                   {tie.second_segment, tie.second_repeat, tie.second_tensor}};
    for (std::set<LayerPlace>& group : groups) {
      const bool same = std::any_of(joined.begin(), joined.end(), [&](const LayerPlace& place) {
        return group.count(place) > 0;
      });
      if (same) joined.merge(std::exchange(group, {}));
    }
    groups.push_back(std::move(joined));
  }
  std::vector<SharedParameter> shared;
  for (const std::set<LayerPlace>& group : groups) {
    if (group.size() < 2) continue;
    shared.emplace_back();
    for (const auto& [segment, repeat, tensor] : group) {
      shared.back().uses.push_back({segment, repeat, tensor});
    }
  }
  return shared;
}

void PlaceSharedParameters(const StagePlacement& placement, std::vector<SharedParameter>* shared,
                           std::vector<std::vector<StageRun>>* stages) {
  if (shared->empty()) return;
  const std::map<int, int64_t> first = FirstLayers(*stages);
  for (SharedParameter& parameter : *shared) {
    for (SharedParameter::Use& use : parameter.uses) {
      const auto known = first.find(use.segment);
      use.layer = (known == first.end() ? 0 : known->second) + use.repeat;
      use.part = VirtualStageOf(use, *stages);
      use.stage = placement.StageOf(use.part);
    }
    const std::vector<SharedParameter::Use> of_one = parameter.uses;
    for (int64_t copy = 1; copy < placement.copies(); ++copy) {
      for (SharedParameter::Use use : of_one) {
        use.stage = placement.StageOf(copy * placement.depth() + use.part);
        parameter.uses.push_back(use);
      }
    }
  }
  SplitRuns(*shared, stages);
}

std::vector<SharedGradients> SharedGradientsOf(const std::vector<SharedParameter>& shared,
                                               ElementsByStages others) {
  ElementsByStages elements = std::move(others);
  for (const SharedParameter& parameter : shared) {
    std::vector<int64_t> stages = parameter.Stages();
    if (stages.size() > 1 && !parameter.frozen) elements[std::move(stages)] += parameter.elements;
  }
  std::vector<SharedGradients> gradients;
  for (const auto& [stages, count] : elements) {
    if (EquallyFarApart(stages)) {
      gradients.push_back({stages, count});
      continue;
    }
    // The first has the sum after a swap with each of the others, and the last one too.
    const size_t swaps = stages.size() - 1;
    for (size_t i = 0; i < 2 * swaps - 1; ++i) {
      gradients.push_back({{stages[0], stages[1 + i % swaps]}, count});
    }
  }
  return gradients;
}

}  // namespace plancast
