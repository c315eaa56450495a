#ifndef PLANCAST_TESTS_GRAPH_RELAYOUT_SIMULATOR_H_
#define PLANCAST_TESTS_GRAPH_RELAYOUT_SIMULATOR_H_

#include <algorithm>
#include <string>
#include <vector>

#include "graph/layout/relayout.h"
#include "tests/graph/evaluator.h"
#include "tests/graph/split_simulator.h"

namespace plancast {

// A tensor laid out over the devices of a mesh, and the steps of a relayout
// executed on it element by element.
class RelayoutSimulator {
 public:
  RelayoutSimulator(const DeviceMesh& mesh, std::vector<int64_t> shape)
      : mesh_(mesh), shape_(std::move(shape)), whole_(Array<Field>::Empty(shape_)) {
    for (size_t e = 0; e < whole_.values.size(); ++e) {
      whole_.values[e] = Field(static_cast<int64_t>(Mix(e) % 1000));
    }
  }

  // The tensor as it is in `devices`, laid out in some way.
  RelayoutSimulator(const DeviceMesh& mesh, std::vector<Array<Field>> devices)
      : mesh_(mesh),
        shape_(devices[0].shape),
        whole_(Array<Field>::Empty(shape_)),
        devices_(std::move(devices)) {}

  const std::vector<Array<Field>>& devices() const { return devices_; }

  // Scatters the tensor over the devices. Partial sums are random numbers that
  // add up to it; of partial maxima one copy is right and the others lower.
  void Place(const Layout& layout) {
    devices_.assign(mesh_.num_devices(), Array<Field>::Empty(shape_));
    for (int d = 0; d < mesh_.num_devices(); ++d) {
      ForEachIndex(shape_, LocalIndices(mesh_, shape_, layout, d),
                   [&](const std::vector<int64_t>&, int64_t e) {
                     devices_[d].present[e] = true;
                     devices_[d].values[e] = whole_.values[e];
                   });
    }
    for (int a = 0; a < mesh_.num_axes(); ++a) {
      if (!layout.placements[a].is_partial()) continue;
      const bool is_max = layout.placements[a].reduction == Reduction::kMax;
      for (const std::vector<int>& group : GroupsAlong(mesh_, {a})) {
        for (size_t e = 0; e < whole_.values.size(); ++e) {
          const size_t keeper = Mix(e + a) % group.size();
          Field rest = devices_[group[0]].values[e];
          for (size_t g = 0; g < group.size(); ++g) {
            Field& value = devices_[group[g]].values[e];
            // A function of what the copies share, so that several partial
            // axes stay consistent.
            const Field noise(static_cast<int64_t>(Mix(e * 64 + a * 8 + g + value.bits()) % 997));
            if (is_max) {
              value = g == keeper ? value : value - Field(1) - noise;
            } else if (g + 1 < group.size()) {
              value = noise;
              rest = rest - noise;
            } else {
              value = rest;
            }
          }
        }
      }
    }
  }

  // "" or what is wrong with the step.
  std::string Execute(const Layout& before, const RelayoutStep& step) {
    if (!step.is_collective) return ExecuteLocal(before, step);
    if (step.kind == CollectiveKind::kAllReduce || step.kind == CollectiveKind::kReduceScatter ||
        step.kind == CollectiveKind::kReduce) {
      for (const std::vector<int>& group : GroupsAlong(mesh_, step.axes)) {
        std::vector<Array<Field>*> arrays;
        for (int d : group) arrays.push_back(&devices_[d]);
        if (!ReduceArrays(arrays, step.reduction)) return "the group's parts differ";
      }
      return Keep(step.after);
    }
    return Gather(step);
  }

  // Every device holds its part of `layout`, and the partial copies combine to
  // the tensor.
  std::string Check(const Layout& layout) {
    std::vector<Array<Field>> devices = devices_;
    for (int a = 0; a < mesh_.num_axes(); ++a) {
      if (!layout.placements[a].is_partial()) continue;
      for (const std::vector<int>& group : GroupsAlong(mesh_, {a})) {
        std::vector<Array<Field>*> arrays;
        for (int d : group) arrays.push_back(&devices[d]);
        if (!ReduceArrays(arrays, layout.placements[a].reduction)) return "uneven partial parts";
      }
    }
    for (int d = 0; d < mesh_.num_devices(); ++d) {
      std::vector<bool> expected(whole_.values.size(), false);
      std::string wrong;
      ForEachIndex(shape_, LocalIndices(mesh_, shape_, layout, d),
                   [&](const std::vector<int64_t>&, int64_t e) {
                     expected[e] = true;
                     if (devices[d].values[e] != whole_.values[e]) wrong = "a value is wrong";
                   });
      if (!wrong.empty()) return wrong;
      if (devices[d].present != expected) return "a device holds the wrong part";
    }
    return "";
  }

  // Elements that the busiest device lacks: no way around receiving them.
  int64_t Missing(const Layout& source, const Layout& target) const {
    int64_t most = 0;
    for (int d = 0; d < mesh_.num_devices(); ++d) {
      std::vector<bool> held(whole_.values.size(), false);
      ForEachIndex(shape_, LocalIndices(mesh_, shape_, source, d),
                   [&](const std::vector<int64_t>&, int64_t e) { held[e] = true; });
      int64_t missing = 0;
      ForEachIndex(shape_, LocalIndices(mesh_, shape_, target, d),
                   [&](const std::vector<int64_t>&, int64_t e) { missing += !held[e]; });
      most = std::max(most, missing);
    }
    return most;
  }

 private:
  std::string Keep(const Layout& layout) {
    for (int d = 0; d < mesh_.num_devices(); ++d) {
      std::vector<bool> kept(whole_.values.size(), false);
      std::string missing;
      ForEachIndex(shape_, LocalIndices(mesh_, shape_, layout, d),
                   [&](const std::vector<int64_t>&, int64_t e) {
                     kept[e] = true;
                     if (!devices_[d].present[e]) missing = "a kept element is not there";
                   });
      if (!missing.empty()) return missing;
      devices_[d].present = kept;
    }
    return "";
  }

  std::string ExecuteLocal(const Layout& before, const RelayoutStep& step) {
    for (int a : step.axes) {
      const Placement &from = before.placements[a], &to = step.after.placements[a];
      if (!to.is_partial() || from == to) continue;
      if (from.is_partial()) return "a reduction cannot change locally";
      for (int d = 0; d < mesh_.num_devices(); ++d) {
        Array<Field>& array = devices_[d];
        if (from.is_replicate()) {
          // Every copy but the first becomes the neutral element of a sum.
          if (to.reduction == Reduction::kMax || mesh_.Coordinate(d, a) == 0) continue;
          std::fill(array.values.begin(), array.values.end(), Field(0));
        } else {
          ForEachIndex(shape_, LocalIndices(mesh_, shape_, step.after, d),
                       [&](const std::vector<int64_t>&, int64_t e) {
                         if (!array.present[e]) array.values[e] = Field(0);
                         array.present[e] = true;
                       });
        }
      }
    }
    return Keep(step.after);
  }

  // Each device fetches what it lacks from others of its group.
  std::string Gather(const RelayoutStep& step) {
    const std::vector<Array<Field>> old = devices_;
    int64_t most = 0;
    std::string wrong;
    for (const std::vector<int>& group : GroupsAlong(mesh_, step.axes)) {
      for (int d : group) {
        int64_t received = 0;
        ForEachIndex(shape_, LocalIndices(mesh_, shape_, step.after, d),
                     [&](const std::vector<int64_t>&, int64_t e) {
                       if (old[d].present[e]) return;
                       ++received;
                       auto source = std::find_if(group.begin(), group.end(),
                                                  [&](int s) { return old[s].present[e]; });
                       if (source == group.end()) {
                         wrong = "an element is nowhere in the group";
                         return;
                       }
                       devices_[d].values[e] = old[*source].values[e];
                       devices_[d].present[e] = true;
                     });
        most = std::max(most, received);
      }
    }
    if (!wrong.empty()) return wrong;
    if (most > step.received) {
      return absl::StrCat("a device receives ", most, ", the step says ", step.received);
    }
    return Keep(step.after);
  }

  const DeviceMesh& mesh_;
  const std::vector<int64_t> shape_;
  Array<Field> whole_;
  std::vector<Array<Field>> devices_;
};

}  // namespace plancast

#endif  // PLANCAST_TESTS_GRAPH_RELAYOUT_SIMULATOR_H_
