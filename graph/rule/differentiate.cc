#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/rule/backward_values.h"
#include "graph/rule/derivative.h"
#include "graph/rule/linearity.h"
#include "graph/rule/op_rule.h"
#include "graph/rule/recurrence.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool IsInteger(DType type) { return type == DType::kInt64 || type == DType::kUint8; }

// Which tensors carry a gradient back to `sources`.
std::vector<bool> ActiveTensors(const OpRule& rule, const std::vector<int>& sources) {
  std::vector<bool> active(rule.tensors().size());
  for (int t : sources) active[t] = true;
  for (const Statement& s : rule.statements()) {
    const RuleTensor& target = rule.tensors()[s.target];
    const bool shift = s.combine == Combine::kMax && target.role != RuleTensor::Role::kOutput;
    if (IsInteger(target.dtype) || shift) continue;
    VisitExpr(s.value, [&](const Expr& e) {
      if (e.kind() == ExprKind::kElement && active[e.tensor()]) active[s.target] = true;
    });
  }
  return active;
}

// One share of a tensor's gradient, to be summed over the factors that the
// tensor lacks.
struct Share {
  Expr value;
  std::vector<int> reduced;  // sorted
  std::vector<Condition> where;
  bool contraction = false;  // kept apart from other shares, so that it stays a matmul
};

class Differentiator {
 public:
  Differentiator(const OpRule& rule, std::vector<int> wrt)
      : rule_(rule), wrt_(std::move(wrt)), active_(ActiveTensors(rule, wrt_)) {
    tensors_ = rule.tensors();
    const size_t n = tensors_.size();
    shares_.resize(n);
    gradient_.assign(n, -1);
  }

  absl::StatusOr<OpRule> Run() {
    for (int output : rule_.outputs()) {
      if (active_[output]) {
        seeds_.push_back(
            AddTensor(absl::StrCat("d_", tensors_[output].name), output, RuleTensor::Role::kInput));
        AddShare(output, Expr::Element(seeds_.back()), tensors_[output].factors, {});
      }
    }
    for (size_t i = rule_.statements().size(); i-- > 0;) {
      const Statement& s = rule_.statements()[i];
      if (!active_[s.target] || shares_[s.target].empty()) continue;
      const int gradient = Gather(s.target);
      if (s.combine == Combine::kScan) {
        ReverseScan(s, gradient);
        continue;
      }
      if (s.combine == Combine::kOpaque) {
        ReverseOpaque(s, gradient);
        continue;
      }
      std::optional<Expr> known;
      if (s.combine == Combine::kAssign) known = Expr::Element(s.target);
      Expr upstream = Expr::Element(gradient);
      if (s.combine == Combine::kMax) {
        // To the values that are the maximum.
        const Expr below = Subtract(Expr::Element(s.target), s.value);
        upstream = Multiply(std::move(upstream),
                            Subtract(Expr::Number(1), Expr::Apply(Function::kStep, below)));
      }
      BackPropagate(s.value, upstream, known, active_,
                    [&](int t, const Expr& share) { AddShare(t, share, s.factors, s.where); });
    }
    for (int t : wrt_) {
      if (shares_[t].empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "no gradient of op `", rule_.name(), "` flows to its input `", tensors_[t].name, "`."));
      }
      Gather(t);
    }
    return Assemble();
  }

 private:
  // A new tensor with the dims of forward tensor `like`.
  int AddTensor(std::string name, int like, RuleTensor::Role role) {
    RuleTensor tensor = rule_.tensors()[like];
    tensor.name = std::move(name);
    tensor.role = role;
    tensor.parameter = false;
    tensors_.push_back(std::move(tensor));
    return static_cast<int>(tensors_.size()) - 1;
  }

  void AddShare(int tensor, Expr value, const std::vector<int>& box,
                const std::vector<Condition>& where) {
    if (value.is_number(0)) return;
    const std::vector<int>& dims = tensors_[tensor].factors;
    Share share;
    share.where = where;
    std::vector<int> present;
    VisitExpr(value, [&](const Expr& e) {
      if (e.kind() == ExprKind::kIndicator) {
        present.push_back(e.factor());
        if (e.tensor() < 0) present.push_back(e.other_factor());
      }
      const bool reads = e.kind() == ExprKind::kElement || e.kind() == ExprKind::kIndicator;
      if (!reads || e.tensor() < 0) return;
      const std::vector<int>& factors = tensors_[e.tensor()].factors;
      present.insert(present.end(), factors.begin(), factors.end());
    });
    for (int f : box) {
      if (Contains(dims, f)) continue;
      const bool conditional = std::any_of(where.begin(), where.end(),
                                           [&](const Condition& c) { return c.Mentions(f); });
      if (!Contains(present, f) && !conditional) {
        // The share is the same at every point of f.
        value = Multiply(Expr::Size(f), value);
        continue;
      }
      share.reduced.push_back(f);
    }
    std::sort(share.reduced.begin(), share.reduced.end());
    share.contraction = !share.reduced.empty() && !ProductOfTwo(value).empty();
    share.value = std::move(value);
    shares_[tensor].push_back(std::move(share));
  }

  // h_t = a_t h_(t-1) + u_t. What later steps send to state t is a recurrence the
  // other way, with the same decays: l_t = a_(t+1) (d_(t+1) + l_(t+1)).
  void ReverseScan(const Statement& s, int gradient) {
    const std::string name = tensors_[s.target].name;
    auto add_scan = [&](const std::string& tensor, const Expr& value, bool reversed) {
      Statement scan;
      scan.target = AddTensor(tensor, s.target, RuleTensor::Role::kIntermediate);
      scan.combine = Combine::kScan;
      scan.scan = {s.scan.factor, reversed, /*before=*/true};
      scan.value = value;
      statements_.push_back(scan);
      return scan.target;
    };
    const Recurrence step = *AsRecurrence(s.value);
    const Expr given = Expr::Element(gradient);
    const int later = add_scan(absl::StrCat("d_", name, "_later"),
                               s.scan.before ? Add(Multiply(step.decay, Expr::Previous()), given)
                                             : Multiply(step.decay, Add(Expr::Previous(), given)),
                               !s.scan.reversed);
    // The states that the steps came from, if a decay has a gradient.
    Expr previous = Expr::Number(0);
    const std::vector<int> decays = TensorsOf(step.decay);
    if (std::any_of(decays.begin(), decays.end(), [&](int t) { return active_[t]; })) {
      previous = Expr::Element(
          s.scan.before ? s.target
                        : add_scan(absl::StrCat(name, "_before"), s.value, s.scan.reversed));
    }
    int upstream = later;  // the gradient of the state that a step makes
    if (!s.scan.before) {
      upstream =
          AddTensor(absl::StrCat("d_", name, "_state"), s.target, RuleTensor::Role::kIntermediate);
      Emit(upstream, Add(given, Expr::Element(later)), {}, {});
    }
    std::vector<bool> active = active_;
    active.resize(tensors_.size());
    active[s.target] = false;
    BackPropagate(ReplacePrevious(s.value, previous), Expr::Element(upstream), std::nullopt, active,
                  [&](int t, const Expr& share) { AddShare(t, share, s.factors, {}); });
  }

  // The gradient of every tensor read is some function of all of them, one for each
  // index of the pointwise factors; a tensor without those has the sum.
  void ReverseOpaque(const Statement& s, int gradient) {
    const std::vector<int> read = TensorsOf(s.value);
    Expr all = Expr::Element(gradient);
    for (int t : read) all = Multiply(all, Expr::Element(t));
    for (int t : read) {
      if (!active_[t]) continue;
      const int share =
          AddTensor(absl::StrCat("d_", tensors_[t].name, "_by_", tensors_[s.target].name), t,
                    RuleTensor::Role::kIntermediate);
      std::vector<int>& dims = tensors_[share].factors;
      for (size_t p = s.pointwise.size(); p-- > 0;) {
        if (!Contains(dims, s.pointwise[p])) dims.insert(dims.begin(), s.pointwise[p]);
      }
      Statement statement;
      statement.target = share;
      statement.combine = Combine::kOpaque;
      statement.pointwise = s.pointwise;
      statement.value = all;
      statements_.push_back(std::move(statement));
      AddShare(t, Expr::Element(share), tensors_[share].factors, {});
    }
  }

  // Shares that one statement can hold, added up; equal ones counted.
  std::vector<Share> MergedShares(int tensor) const {
    std::vector<Share> groups;
    std::vector<std::pair<Expr, int>> terms;
    std::vector<int> group_of;
    for (const Share& share : shares_[tensor]) {
      size_t g = 0;
      while (g < groups.size() &&
             (groups[g].reduced != share.reduced || !(groups[g].where == share.where) ||
              ((groups[g].contraction || share.contraction) && groups[g].value != share.value))) {
        ++g;
      }
      if (g == groups.size()) groups.push_back(share);
      bool counted = false;
      for (size_t i = 0; i < terms.size() && !counted; ++i) {
        if (group_of[i] == static_cast<int>(g) && terms[i].first == share.value) {
          ++terms[i].second;
          counted = true;
        }
      }
      if (!counted) {
        terms.emplace_back(share.value, 1);
        group_of.push_back(static_cast<int>(g));
      }
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      groups[g].value = Expr::Number(0);
      for (size_t i = 0; i < terms.size(); ++i) {
        if (group_of[i] != static_cast<int>(g)) continue;
        groups[g].value =
            Add(groups[g].value, Multiply(Expr::Number(terms[i].second), terms[i].first));
      }
    }
    return groups;
  }

  void Emit(int target, Expr value, std::vector<Condition> where, const std::vector<int>& reduced) {
    Statement s;
    s.target = target;
    for (int f : reduced) {
      if (!IsFixed(f, tensors_[target].factors, where)) s.combine = Combine::kSum;
    }
    s.value = std::move(value);
    s.where = std::move(where);
    statements_.push_back(std::move(s));
  }

  // Writes the gradient of `tensor` from its shares; returns the new tensor.
  int Gather(int tensor) {
    if (gradient_[tensor] >= 0) return gradient_[tensor];
    const bool is_output = Contains(wrt_, tensor);
    std::vector<Share> groups = MergedShares(tensor);
    const bool single = groups.size() == 1;
    if (single && !is_output && groups[0].where.empty() &&
        groups[0].value.kind() == ExprKind::kElement &&
        tensors_[groups[0].value.tensor()].factors == tensors_[tensor].factors) {
      return gradient_[tensor] = groups[0].value.tensor();
    }
    // An output that is read inside the op has a gradient besides the given one.
    const bool seeded = Contains(rule_.outputs(), tensor);
    const std::string name = absl::StrCat("d_", tensors_[tensor].name, seeded ? "_total" : "");
    if (single) {
      const int target = AddGradient(name, tensor, is_output);
      Emit(target, groups[0].value, groups[0].where, groups[0].reduced);
      return target;
    }
    // Parts that are reduced get a statement of their own first; the rest can
    // stand in the sum if its condition is that of all.
    const bool same_where = std::all_of(groups.begin(), groups.end(),
                                        [&](const Share& g) { return g.where == groups[0].where; });
    Expr sum = Expr::Number(0);
    int part = 0;
    for (const Share& group : groups) {
      if (group.reduced.empty() && same_where) {
        sum = Add(sum, group.value);
        continue;
      }
      const int temporary =
          AddTensor(absl::StrCat(name, "_", ++part), tensor, RuleTensor::Role::kIntermediate);
      Emit(temporary, group.value, group.where, group.reduced);
      sum = Add(sum, Expr::Element(temporary));
    }
    const std::vector<Condition>& where = groups[0].where;
    const bool inside = std::all_of(where.begin(), where.end(), [&](const Condition& c) {
      const std::vector<int> factors = c.Factors();
      return std::all_of(factors.begin(), factors.end(),
                         [&](int f) { return Contains(tensors_[tensor].factors, f); });
    });
    const int target = AddGradient(name, tensor, is_output);
    Emit(target, sum, same_where && inside ? where : std::vector<Condition>(), {});
    return target;
  }

  int AddGradient(const std::string& name, int tensor, bool is_output) {
    gradient_[tensor] = AddTensor(
        name, tensor, is_output ? RuleTensor::Role::kOutput : RuleTensor::Role::kIntermediate);
    return gradient_[tensor];
  }

  // Adds what has to be recomputed, orders the tensors and drops what is not
  // read.
  absl::StatusOr<OpRule> Assemble() {
    BackwardValues values(rule_);
    for (const Statement& s : statements_) {
      for (int t : TensorsOf(s.value)) {
        if (t < static_cast<int>(rule_.tensors().size())) {
          RETURN_IF_ERROR(values.Need(t));
        }
      }
    }
    std::vector<Statement> statements = values.statements();
    statements.insert(statements.end(), statements_.begin(), statements_.end());

    std::vector<bool> used(tensors_.size());
    for (const Statement& s : statements) {
      used[s.target] = true;
      for (int t : TensorsOf(s.value)) used[t] = true;
    }
    std::vector<int> inputs, outputs, order;
    for (int t : seeds_) {
      if (used[t]) inputs.push_back(t);
    }
    for (int t : rule_.saves()) {
      if (used[t] && values.IsSaved(t)) inputs.push_back(t);
    }
    for (int t : wrt_) outputs.push_back(gradient_[t]);
    order = inputs;
    order.insert(order.end(), outputs.begin(), outputs.end());
    for (const Statement& s : statements) {
      if (!Contains(order, s.target)) order.push_back(s.target);
    }

    std::vector<int> renumbered(tensors_.size(), -1);
    std::vector<RuleTensor> tensors;
    for (int t : order) {
      renumbered[t] = static_cast<int>(tensors.size());
      RuleTensor tensor = tensors_[t];
      tensor.role = Contains(inputs, t)    ? RuleTensor::Role::kInput
                    : Contains(outputs, t) ? RuleTensor::Role::kOutput
                                           : RuleTensor::Role::kIntermediate;
      tensor.parameter = tensor.parameter && tensor.role == RuleTensor::Role::kInput;
      tensors.push_back(std::move(tensor));
    }
    for (int& t : inputs) t = renumbered[t];
    for (int& t : outputs) t = renumbered[t];
    for (Statement& s : statements) {
      s.target = renumbered[s.target];
      s.value = RenameTensors(s.value, renumbered);
    }
    std::string name = absl::StrCat(rule_.name(), ".bwd");
    if (wrt_.size() < DifferentiableInputs(rule_).size()) {
      for (int t : wrt_) absl::StrAppend(&name, ".", rule_.tensors()[t].name);
    }
    return OpRule::Create(std::move(name), rule_.factors(), std::move(tensors), std::move(inputs),
                          std::move(outputs), std::move(statements), {}, rule_.fused());
  }

  const OpRule& rule_;
  const std::vector<int> wrt_;
  const std::vector<bool> active_;   // by forward tensor
  std::vector<RuleTensor> tensors_;  // the forward ones, then gradients
  std::vector<std::vector<Share>> shares_;
  std::vector<int> gradient_;  // by forward tensor, -1: not written yet
  std::vector<int> seeds_;     // the given gradients of the outputs
  std::vector<Statement> statements_;
};

}  // namespace

absl::StatusOr<OpRule> Differentiate(const OpRule& rule, absl::Span<const std::string> wrt) {
  std::vector<int> sources;
  for (const std::string& name : wrt) {
    ASSIGN_OR_RETURN(const int tensor, rule.FindTensor(name));
    const RuleTensor& t = rule.tensors()[tensor];
    if (t.role != RuleTensor::Role::kInput || IsInteger(t.dtype)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "op `", rule.name(), "` has no gradient by `", name, "`; it is differentiable by `",
          absl::StrJoin(DifferentiableInputs(rule), "`, `"), "`."));
    }
    if (Contains(sources, tensor)) {
      return absl::InvalidArgumentError(absl::StrCat("`", name, "` is named twice."));
    }
    sources.push_back(tensor);
  }
  if (sources.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("op `", rule.name(), "`: name at least one input to differentiate by."));
  }
  return Differentiator(rule, std::move(sources)).Run();
}

std::vector<std::string> DifferentiableInputs(const OpRule& rule) {
  std::vector<std::string> names;
  for (int t : rule.inputs()) {
    if (IsInteger(rule.tensors()[t].dtype)) continue;
    const std::vector<bool> active = ActiveTensors(rule, {t});
    if (std::any_of(rule.outputs().begin(), rule.outputs().end(),
                    [&](int o) { return active[o]; })) {
      names.push_back(rule.tensors()[t].name);
    }
  }
  return names;
}

}  // namespace plancast
