#ifndef PLANCAST_TESTS_GRAPH_EVALUATOR_H_
#define PLANCAST_TESTS_GRAPH_EVALUATOR_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/layout/redistribution.h"
#include "graph/rule/op_rule.h"
#include "graph/rule/recurrence.h"
#include "tests/graph/array.h"
#include "tests/graph/field.h"
#include "tests/graph/ordered_maps.h"

namespace plancast {

// Runs statements of a rule on one device. Reading an element that is not
// there is reported in `error`.
template <typename T>
class Evaluator {
 public:
  Evaluator(const OpRule& rule, std::vector<int64_t> extents)
      : rule_(rule), extents_(std::move(extents)), point_(extents_.size()) {
    for (const RuleTensor& tensor : rule.tensors()) {
      arrays_.push_back(Array<T>::Empty(ShapeOf(tensor, extents_)));
    }
  }

  Array<T>& array(int tensor) { return arrays_[tensor]; }
  const std::string& error() const { return error_; }

  // `sets`: the indices of each factor that this device works on.
  void Run(int statement, const std::vector<IndexSet>& sets) {
    using N = Numbers<T>;
    const Statement& s = rule_.statements()[statement];
    if (s.combine == Combine::kScan) {
      RunScan(statement, sets, {});
      return;
    }
    statement_ = statement;
    Array<T>& target = arrays_[s.target];
    const std::vector<int>& dims = rule_.tensors()[s.target].factors;
    std::vector<IndexSet> local;
    for (int f : dims) local.push_back(sets[f]);
    ForEachIndex(target.shape, local, [&](const std::vector<int64_t>&, int64_t flat) {
      target.values[flat] = s.combine == Combine::kMax ? N::Lowest() : T(0);
      target.present[flat] = true;
    });
    if (s.combine == Combine::kOpaque) return RunOpaque(s, sets);
    // Factors that a map fixes are computed from the others, in the order of
    // the maps' dependence.
    std::vector<int64_t> box_shape;
    std::vector<IndexSet> box;
    std::vector<int> walked;
    for (int f : s.factors) {
      if (MapOf(f, s.where) != nullptr) continue;
      walked.push_back(f);
      box_shape.push_back(extents_[f]);
      box.push_back(sets[f]);
    }
    const std::vector<const Condition*> maps = OrderedMaps(s);
    ForEachIndex(box_shape, box, [&](const std::vector<int64_t>& index, int64_t) {
      for (size_t i = 0; i < walked.size(); ++i) point_[walked[i]] = index[i];
      for (const Condition* map : maps) {
        const int64_t at = map->RightSide(point_, extents_);
        if (CountCommon(sets[map->left], IndexSet{{at, at + 1}}) == 0) return;
        point_[map->left] = at;
      }
      for (const Condition& c : s.where) {
        if (!c.Holds(point_, extents_)) return;
      }
      const T value = Value(s.value);
      T& element = target.values[Flat(s.target)];
      if (s.combine == Combine::kAssign) element = value;
      if (s.combine == Combine::kSum) element = element + value;
      if (s.combine == Combine::kMax) element = N::Max(element, value);
    });
  }

  // What the states of a part owe those before it: by element of the target at index
  // 0 of the scan's factor, the product of the decays and the state at the end.
  struct Carry {
    std::vector<T> decay, state;
  };
  // The recurrence over this device's part, from `start` (zero if empty).
  Carry RunScan(int statement, const std::vector<IndexSet>& sets, const std::vector<T>& start) {
    const Statement& s = rule_.statements()[statement];
    statement_ = statement;
    const Recurrence step = *AsRecurrence(s.value);
    Array<T>& target = arrays_[s.target];
    const std::vector<int>& dims = rule_.tensors()[s.target].factors;
    std::vector<int64_t> steps;
    for (const IndexRange& range : sets[s.scan.factor]) {
      for (int64_t i = range.begin; i < range.end; ++i) steps.push_back(i);
    }
    if (s.scan.reversed) std::reverse(steps.begin(), steps.end());
    std::vector<IndexSet> lines;
    for (int f : dims) lines.push_back(f == s.scan.factor ? IndexSet{{0, 1}} : sets[f]);
    Carry carry{std::vector<T>(target.values.size(), T(1)),
                std::vector<T>(target.values.size(), T(0))};
    if (!start.empty()) carry.state = start;
    ForEachIndex(target.shape, lines, [&](const std::vector<int64_t>& index, int64_t line) {
      for (size_t d = 0; d < dims.size(); ++d) point_[dims[d]] = index[d];
      for (int64_t at : steps) {
        point_[s.scan.factor] = at;
        const int64_t flat = Flat(s.target);
        target.present[flat] = true;
        if (s.scan.before) target.values[flat] = carry.state[line];
        const T decay = Value(step.decay);
        carry.state[line] = decay * carry.state[line] + Value(step.input);
        carry.decay[line] = decay * carry.decay[line];
        if (!s.scan.before) target.values[flat] = carry.state[line];
      }
    });
    return carry;
  }

 private:
  // A hash of everything read at the same index of the pointwise factors.
  void RunOpaque(const Statement& s, const std::vector<IndexSet>& sets) {
    const std::vector<int>& dims = rule_.tensors()[s.target].factors;
    std::vector<IndexSet> local;
    for (int f : dims) local.push_back(sets[f]);
    auto is_pointwise = [&](int f) {
      return std::find(s.pointwise.begin(), s.pointwise.end(), f) != s.pointwise.end();
    };
    Array<T>& target = arrays_[s.target];
    ForEachIndex(target.shape, local, [&](const std::vector<int64_t>& index, int64_t flat) {
      uint64_t hash = Mix(static_cast<uint64_t>(statement_) + 101);
      for (size_t d = 0; d < dims.size(); ++d) {
        point_[dims[d]] = index[d];
        if (!is_pointwise(dims[d])) hash = Mix(hash ^ static_cast<uint64_t>(index[d]));
      }
      const std::vector<int64_t> kept = point_;
      for (int t : TensorsOf(s.value)) {
        std::vector<IndexSet> whole;
        const std::vector<int>& read = rule_.tensors()[t].factors;
        for (int f : read) {
          whole.push_back(is_pointwise(f) ? IndexSet{{kept[f], kept[f] + 1}}
                                          : IndexSet{{0, extents_[f]}});
        }
        ForEachIndex(arrays_[t].shape, whole, [&](const std::vector<int64_t>& at, int64_t) {
          for (size_t d = 0; d < read.size(); ++d) point_[read[d]] = at[d];
          hash = Mix(hash ^ static_cast<uint64_t>(Numbers<T>::ToIndex(Read(t))));
        });
      }
      target.values[flat] = Numbers<T>::Random(hash);
    });
  }

  int64_t Flat(int tensor) const {
    int64_t flat = 0;
    for (int f : rule_.tensors()[tensor].factors) flat = flat * extents_[f] + point_[f];
    return flat;
  }
  T Read(int tensor) {
    const int64_t flat = Flat(tensor);
    if (!arrays_[tensor].present[flat] && error_.empty()) {
      error_ = absl::StrCat("statement ", statement_, " reads an element of `",
                            rule_.tensors()[tensor].name, "` that is not there");
    }
    return arrays_[tensor].values[flat];
  }
  T Value(const Expr& e) {
    using N = Numbers<T>;
    switch (e.kind()) {
      case ExprKind::kNumber:
        return N::FromDouble(e.number());
      case ExprKind::kAttribute:
        return N::Attribute(e.attribute());
      case ExprKind::kSize:
        return T(extents_[e.factor()]);
      case ExprKind::kElement:
        return Read(e.tensor());
      case ExprKind::kIndicator: {
        const int64_t right =
            e.tensor() >= 0 ? N::ToIndex(Read(e.tensor())) : point_[e.other_factor()];
        return T(point_[e.factor()] == right ? 1 : 0);
      }
      case ExprKind::kRandom: {
        // A function of the global point, as a counter-based generator is.
        uint64_t hash = Mix(static_cast<uint64_t>(statement_) + 1);
        for (int f : rule_.statements()[statement_].factors) {
          hash = Mix(hash ^ static_cast<uint64_t>(point_[f]));
        }
        return N::Random(hash);
      }
      case ExprKind::kPrevious:  // recurrences are taken apart
        return T(0);
      case ExprKind::kFunction:
        return N::Apply(e.function(), Value(e.operand(0)));
      case ExprKind::kNegate:
        return T(0) - Value(e.operand(0));
      case ExprKind::kSum:
        return Value(e.operand(0)) + Value(e.operand(1));
      case ExprKind::kDifference:
        return Value(e.operand(0)) - Value(e.operand(1));
      case ExprKind::kProduct:
        return Value(e.operand(0)) * Value(e.operand(1));
      case ExprKind::kQuotient:
        return Value(e.operand(0)) / Value(e.operand(1));
    }
    return T(0);
  }

  const OpRule& rule_;
  const std::vector<int64_t> extents_;
  std::vector<Array<T>> arrays_;
  std::vector<int64_t> point_;  // by factor
  int statement_ = 0;
  std::string error_;
};

// The whole rule on one device. `inputs` in argument order; the result is
// indexed like rule.tensors().
template <typename T>
std::vector<Array<T>> EvaluateWhole(const OpRule& rule, const std::vector<int64_t>& extents,
                                    const std::vector<Array<T>>& inputs) {
  Evaluator<T> evaluator(rule, extents);
  for (size_t i = 0; i < inputs.size(); ++i) evaluator.array(rule.inputs()[i]) = inputs[i];
  for (size_t i = 0; i < rule.statements().size(); ++i) {
    evaluator.Run(static_cast<int>(i), AllOf(extents));
  }
  std::vector<Array<T>> arrays;
  for (size_t t = 0; t < rule.tensors().size(); ++t) {
    arrays.push_back(evaluator.array(static_cast<int>(t)));
  }
  return arrays;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_GRAPH_EVALUATOR_H_
