#ifndef PLANCAST_TESTS_GRAPH_SPLIT_SIMULATOR_H_
#define PLANCAST_TESTS_GRAPH_SPLIT_SIMULATOR_H_

#include <map>
#include <string>
#include <vector>

#include "graph/rule/op_rule.h"
#include "graph/split/op_split.h"
#include "tests/graph/evaluator.h"

namespace plancast {

// The devices of `mesh` in groups that differ only along `axes`.
inline std::vector<std::vector<int>> GroupsAlong(const DeviceMesh& mesh,
                                                 const std::vector<int>& axes) {
  std::map<int64_t, std::vector<int>> groups;
  for (int device = 0; device < mesh.num_devices(); ++device) {
    int64_t key = device;
    for (int a : axes) key -= mesh.Coordinate(device, a) * mesh.stride(a);
    groups[key].push_back(device);
  }
  std::vector<std::vector<int>> list;
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  return list;
}

// Combines copies of an array elementwise into all of them. False if they do
// not hold the same elements.
template <typename T>
bool ReduceArrays(const std::vector<Array<T>*>& arrays, Reduction reduction) {
  std::vector<T> result = arrays[0]->values;
  for (size_t i = 1; i < arrays.size(); ++i) {
    if (arrays[i]->present != arrays[0]->present) return false;
    for (size_t e = 0; e < result.size(); ++e) {
      result[e] = reduction == Reduction::kMax ? Numbers<T>::Max(result[e], arrays[i]->values[e])
                                               : result[e] + arrays[i]->values[e];
    }
  }
  for (Array<T>* array : arrays) array->values = result;
  return true;
}

// Runs a rule on every device of a mesh as its partition says, and compares
// the outputs with the unsplit op.
template <typename T>
class SplitSimulator {
 public:
  SplitSimulator(const OpRule& rule, const DeviceMesh& mesh, const FactorSplit& split,
                 const std::vector<int64_t>& extents)
      : rule_(rule), mesh_(mesh), split_(split), extents_(extents) {}

  // What differs, "" if nothing does. `whole`: the unsplit op's tensors.
  std::string Compare(const OpPartition& partition, const std::vector<Array<T>>& whole) {
    std::vector<Evaluator<T>> devices;
    for (int d = 0; d < mesh_.num_devices(); ++d) {
      devices.emplace_back(rule_, extents_);
      for (int t : rule_.inputs()) {
        Array<T>& array = devices.back().array(t);
        ForEachIndex(array.shape, LocalIndices(mesh_, array.shape, partition.tensors[t], d),
                     [&](const std::vector<int64_t>&, int64_t flat) {
                       array.values[flat] = whole[t].values[flat];
                       array.present[flat] = true;
                     });
      }
    }
    const std::string wrong = Run(partition, std::vector<bool>(devices.size(), true), &devices);
    if (!wrong.empty()) return wrong;
    for (int t : rule_.outputs()) {
      const std::string difference = CompareOutput(t, partition.tensors[t], whole[t], &devices);
      if (!difference.empty()) return difference;
    }
    return "";
  }

  // All statements, and the reductions between them, on devices that hold their inputs. `runs`:
  // who takes part.
  std::string Run(const OpPartition& partition, const std::vector<bool>& runs,
                  std::vector<Evaluator<T>>* devices) {
    size_t next = 0;
    for (int i = 0; i < static_cast<int>(rule_.statements().size()); ++i) {
      for (int d = 0; d < mesh_.num_devices(); ++d) {
        if (!runs[d]) continue;
        Evaluator<T>& device = (*devices)[d];
        device.Run(i, StatementIndices(partition, split_, mesh_, extents_, i, d));
        if (!device.error().empty()) return device.error();
      }
      for (; next < partition.reductions.size() && partition.reductions[next].after == i; ++next) {
        if (!Reduce(partition, partition.reductions[next], devices)) return "uneven reduction";
      }
    }
    return next == partition.reductions.size() ? "" : "a reduction comes too early";
  }

 private:
  bool Reduce(const OpPartition& partition, const InnerReduction& r,
              std::vector<Evaluator<T>>* devices) {
    const bool online_softmax = r.combiner == InnerReduction::Combiner::kOnlineSoftmax;
    for (const std::vector<int>& group : GroupsAlong(mesh_, r.axes)) {
      if (r.combiner == InnerReduction::Combiner::kScan) {
        for (int tensor : r.tensors) CombineScan(partition, tensor, group, devices);
        continue;
      }
      if (online_softmax) RescaleToCommonMaximum(r, group, devices);
      for (size_t k = online_softmax ? 1 : 0; k < r.tensors.size(); ++k) {
        std::vector<Array<T>*> arrays;
        for (int d : group) arrays.push_back(&(*devices)[d].array(r.tensors[k]));
        if (!ReduceArrays(arrays, r.reduction)) return false;
      }
    }
    return true;
  }

  // From the decays and last states of the parts alone every device gets the state
  // that its own part begins with.
  void CombineScan(const OpPartition& partition, int tensor, std::vector<int> group,
                   std::vector<Evaluator<T>>* devices) {
    int statement = 0;
    while (rule_.statements()[statement].target != tensor) ++statement;
    if (rule_.statements()[statement].scan.reversed) std::reverse(group.begin(), group.end());
    std::vector<T> start;
    for (int d : group) {
      const std::vector<IndexSet> sets =
          StatementIndices(partition, split_, mesh_, extents_, statement, d);
      const typename Evaluator<T>::Carry own = (*devices)[d].RunScan(statement, sets, {});
      (*devices)[d].RunScan(statement, sets, start);
      if (start.empty()) start.assign(own.state.size(), T(0));
      for (size_t e = 0; e < start.size(); ++e) start[e] = own.decay[e] * start[e] + own.state[e];
    }
  }

  // m := max of all m; every sum is multiplied by exp(old m - m).
  void RescaleToCommonMaximum(const InnerReduction& r, const std::vector<int>& group,
                              std::vector<Evaluator<T>>* devices) {
    const int maximum = r.tensors[0];
    std::vector<Array<T>*> arrays;
    std::vector<std::vector<T>> old;
    for (int d : group) {
      arrays.push_back(&(*devices)[d].array(maximum));
      old.push_back(arrays.back()->values);
    }
    ReduceArrays(arrays, Reduction::kMax);
    const std::vector<int>& m_dims = rule_.tensors()[maximum].factors;
    for (size_t g = 0; g < group.size(); ++g) {
      for (size_t k = 1; k < r.tensors.size(); ++k) {
        Array<T>& sum = (*devices)[group[g]].array(r.tensors[k]);
        const std::vector<int>& dims = rule_.tensors()[r.tensors[k]].factors;
        ForEachIndex(sum.shape, AllOf(sum.shape), [&](const std::vector<int64_t>& i, int64_t e) {
          int64_t flat = 0;
          for (int f : m_dims) {
            size_t d = 0;
            while (dims[d] != f) ++d;
            flat = flat * extents_[f] + i[d];
          }
          sum.values[e] = sum.values[e] *
                          Numbers<T>::Apply(Function::kExp, old[g][flat] - arrays[g]->values[flat]);
        });
      }
    }
  }

  std::string CompareOutput(int tensor, const Layout& layout, const Array<T>& whole,
                            std::vector<Evaluator<T>>* devices) {
    const std::string& name = rule_.tensors()[tensor].name;
    // What a later statement read beyond the block does not leave the op.
    for (int d = 0; d < mesh_.num_devices(); ++d) {
      Array<T>& array = (*devices)[d].array(tensor);
      std::vector<bool> left(array.present.size(), false);
      ForEachIndex(array.shape, LocalIndices(mesh_, array.shape, layout, d),
                   [&](const std::vector<int64_t>&, int64_t e) { left[e] = array.present[e]; });
      array.present = left;
    }
    for (int a = 0; a < mesh_.num_axes(); ++a) {
      if (!layout.placements[a].is_partial()) continue;
      for (const std::vector<int>& group : GroupsAlong(mesh_, {a})) {
        std::vector<Array<T>*> arrays;
        for (int d : group) arrays.push_back(&(*devices)[d].array(tensor));
        if (!ReduceArrays(arrays, layout.placements[a].reduction)) return "uneven partial output";
      }
    }
    for (int d = 0; d < mesh_.num_devices(); ++d) {
      const Array<T>& array = (*devices)[d].array(tensor);
      std::vector<bool> expected(array.values.size(), false);
      std::string difference;
      ForEachIndex(array.shape, LocalIndices(mesh_, array.shape, layout, d),
                   [&](const std::vector<int64_t>&, int64_t flat) {
                     expected[flat] = true;
                     if (array.values[flat] != whole.values[flat]) {
                       difference = absl::StrCat("`", name, "` differs on device ", d);
                     }
                   });
      if (!difference.empty()) return difference;
      if (array.present != expected) {
        return absl::StrCat("device ", d, " does not hold what the layout of `", name, "` says");
      }
    }
    return "";
  }

  const OpRule& rule_;
  const DeviceMesh& mesh_;
  const FactorSplit& split_;
  const std::vector<int64_t>& extents_;
};

}  // namespace plancast

#endif  // PLANCAST_TESTS_GRAPH_SPLIT_SIMULATOR_H_
