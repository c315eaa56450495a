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

// The virtual stages of a use: those of the runs which have its layer (several where each has a
// part of it; of one copy), else (layers that were joined to those of another segment) the last
// that begins before it.
std::vector<int64_t> VirtualStagesOf(const SharedParameter::Use& use, int64_t depth,
                                     const std::vector<std::vector<StageRun>>& stages) {
  std::vector<int64_t> have;
  int64_t before = 0;
  for (int64_t v = 0; v < depth; ++v) {
    for (const StageRun& run : stages[v]) {
      if (run.segment == use.segment && use.layer >= run.layer_begin &&
          use.layer < run.layer_begin + run.count) {
        have.push_back(v);
      }
      if (run.segment <= use.segment) before = v;
    }
  }
  return have.empty() ? std::vector<int64_t>{before} : have;
}

// Of a parameter that all stages have a part of: each its own, which no other knows of.
void TakeApart(std::vector<SharedParameter>* shared, int64_t depth,
               const std::vector<std::vector<StageRun>>& stages) {
  std::vector<SharedParameter> all;
  for (const SharedParameter& parameter : *shared) {
    const size_t parts = VirtualStagesOf(parameter.uses[0], depth, stages).size();
    for (size_t part = 0; part < parts; ++part) {
      SharedParameter own = parameter;
      for (SharedParameter::Use& use : own.uses) {
        const std::vector<int64_t> have = VirtualStagesOf(use, depth, stages);
        use.part = have[std::min(part, have.size() - 1)];
      }
      all.push_back(std::move(own));
    }
  }
  *shared = std::move(all);
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
  const bool listed = uses[use].listed;
  for (size_t other = 0; other < uses.size(); ++other) {
    if (other == use || uses[other].stage != uses[use].stage) continue;
    const bool comes_first = listed ? other < use : other > use;
    if (uses[other].listed == listed ? comes_first : listed) return true;
  }
  return false;
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
      SharedParameter::Use& use = shared.back().uses.emplace_back();
      use.segment = segment;
      use.repeat = repeat;
      use.tensor = tensor;
      use.listed = graph.segments[segment].in_list();
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
    }
  }
  TakeApart(shared, placement.depth(), *stages);
  for (SharedParameter& parameter : *shared) {
    for (SharedParameter::Use& use : parameter.uses) use.stage = placement.StageOf(use.part);
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
