#ifndef PLANCAST_TESTS_GRAPH_RANDOM_RULE_H_
#define PLANCAST_TESTS_GRAPH_RANDOM_RULE_H_

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// Makes op rules at random: up to four factors, up to five statements over
// inputs and earlier results, conditions, indicators, sometimes a routing
// table or an online softmax. Everything is saved, so every rule is differentiable.
class RandomRules {
 public:
  explicit RandomRules(uint64_t seed, bool smooth) : random_(seed), smooth_(smooth) {}

  OpRule Next() {
    while (true) {
      absl::StatusOr<OpRule> rule = Draw();
      if (rule.ok()) return *std::move(rule);
    }
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % n); }

  std::vector<int> SomeFactors(int least) {
    std::vector<int> factors;
    while (static_cast<int>(factors.size()) < least) {
      factors.clear();
      for (int f = 0; f < num_factors_; ++f) {
        if (Below(2)) factors.push_back(f);
      }
    }
    std::shuffle(factors.begin(), factors.end(), random_);
    return factors;
  }

  Expr Leaf() {
    switch (Below(8)) {
      case 0:
        return Expr::Number(Below(5) - 2);
      case 1:
        return Expr::Attribute("alpha");
      case 2:
        return Expr::Size(Below(num_factors_));
      case 3:
        return Expr::FactorsEqual(Below(num_factors_), Below(num_factors_));
      default:
        return Expr::Element(Below(static_cast<int>(tensors_.size())));
    }
  }
  Expr Draw(int depth) {
    if (depth == 0) return Leaf();
    switch (Below(9)) {
      case 0:
        return Expr::Binary(ExprKind::kSum, Draw(depth - 1), Draw(depth - 1));
      case 1:
        return Expr::Binary(ExprKind::kDifference, Draw(depth - 1), Draw(depth - 1));
      case 2:
        return Expr::Negate(Draw(depth - 1));
      case 3: {
        // Safe to divide by: 3 + x * x.
        const Expr x = Draw(depth - 1);
        return Expr::Binary(
            ExprKind::kQuotient, Draw(depth - 1),
            Expr::Binary(ExprKind::kSum, Expr::Number(3), Expr::Binary(ExprKind::kProduct, x, x)));
      }
      case 4: {
        const Function smooth[] = {Function::kTanh, Function::kSigmoid, Function::kSin,
                                   Function::kCos, Function::kErf};
        return Expr::Apply(smooth[Below(5)], Draw(depth - 1));
      }
      default:
        return Expr::Binary(ExprKind::kProduct, Draw(depth - 1), Draw(depth - 1));
    }
  }

  absl::StatusOr<OpRule> Draw() {
    num_factors_ = 2 + Below(3);
    tensors_.clear();
    std::vector<std::string> factors;
    for (int f = 0; f < num_factors_; ++f) factors.push_back(std::string(1, "ijkl"[f]));
    std::vector<int> inputs, outputs, saves;
    for (int t = 0; t < 2 + Below(2); ++t) {
      tensors_.push_back(
          {absl::StrCat("x", t), RuleTensor::Role::kInput, false, DType::kCompute, SomeFactors(1)});
      inputs.push_back(t);
    }
    int table = -1;
    if (!smooth_ && Below(2)) {
      table = AddTensor("at", {Below(num_factors_)});
      tensors_[table].role = RuleTensor::Role::kInput;
      tensors_[table].dtype = DType::kInt64;
      inputs.push_back(table);
    }
    std::vector<Statement> statements;
    const int count = 1 + Below(5);
    const bool fused = !smooth_ && Below(2);
    if (fused) AddOnlineSoftmax(&statements);
    for (int i = 0; i < count; ++i) {
      Statement s;
      s.value = Draw(1 + Below(3));
      const int kind = Below(smooth_ ? 5 : 7);
      s.combine = kind <= 1   ? Combine::kSum
                  : kind <= 3 ? Combine::kAssign
                  : kind == 4 ? Combine::kScan
                  : kind == 5 ? Combine::kMax
                              : Combine::kOpaque;
      if (s.combine == Combine::kScan) {
        s.value = Expr::Binary(ExprKind::kSum, Draw(1),
                               Expr::Binary(ExprKind::kProduct, s.value, Expr::Previous()));
      }
      std::vector<int> box;
      VisitExpr(s.value, [&](const Expr& e) {
        if (e.kind() == ExprKind::kIndicator) {
          box.push_back(e.factor());
          box.push_back(e.other_factor());
        }
        if (e.kind() != ExprKind::kElement) return;
        const std::vector<int>& dims = tensors_[e.tensor()].factors;
        box.insert(box.end(), dims.begin(), dims.end());
      });
      std::sort(box.begin(), box.end());
      box.erase(std::unique(box.begin(), box.end()), box.end());
      std::vector<int> dims;
      for (int f : box) {
        const bool all = s.combine == Combine::kAssign || s.combine == Combine::kScan;
        if (all || Below(2)) dims.push_back(f);
      }
      if (s.combine == Combine::kScan) {
        if (dims.empty()) continue;
        s.scan = {dims[Below(static_cast<int>(dims.size()))], Below(2) == 0, Below(2) == 0};
      }
      for (int f : dims) {
        if (s.combine == Combine::kOpaque && Below(2)) s.pointwise.push_back(f);
      }
      const bool plain = s.combine != Combine::kScan && s.combine != Combine::kOpaque;
      if (plain && box.size() >= 2 && Below(4) == 0) {
        Condition c = Condition::Pair(box[Below(static_cast<int>(box.size()))],
                                      static_cast<Condition::Relation>(Below(3)),
                                      box[Below(static_cast<int>(box.size()))], Below(3) - 1);
        c.terms[0].number = 1 + Below(2);
        if (Below(2)) c.terms.push_back({1, {}, box[Below(static_cast<int>(box.size()))]});
        if (Below(4) == 0) c.terms[0].sizes.push_back(Below(num_factors_));
        s.where.push_back(c);
      }
      if (table >= 0 && s.combine == Combine::kSum && Below(3) == 0) Route(table, &s, &dims);
      s.target = static_cast<int>(tensors_.size());
      tensors_.push_back(
          {absl::StrCat("u", i), RuleTensor::Role::kIntermediate, false, DType::kCompute, dims});
      statements.push_back(std::move(s));
    }
    for (int t = 0; t < static_cast<int>(tensors_.size()); ++t) {
      RuleTensor& tensor = tensors_[t];
      const bool last = t + 1 == static_cast<int>(tensors_.size());
      if (tensor.role == RuleTensor::Role::kIntermediate && (last || Below(3) == 0)) {
        tensor.role = RuleTensor::Role::kOutput;
        outputs.push_back(t);
      }
      if (tensor.role == RuleTensor::Role::kInput || Below(2)) saves.push_back(t);
    }
    return OpRule::Create("drawn", factors, tensors_, inputs, outputs, statements, saves,
                          fused ? "attention" : "");
  }

  // u[..., r] += value * [s == at[r]] where r follows s; dims may lose s.
  void Route(int table, Statement* s, std::vector<int>* dims) {
    const int slot = tensors_[table].factors[0], token = Below(num_factors_);
    if (slot == token) return;
    s->value = Expr::Binary(ExprKind::kProduct, s->value, Expr::Indicator(token, table));
    s->where.push_back(Condition::Pair(slot, Condition::Relation::kFollows, token));
    if (Below(3)) dims->erase(std::remove(dims->begin(), dims->end(), token), dims->end());
  }

  // m max= x0; p = exp(x0 - m); z += p * x1
  void AddOnlineSoftmax(std::vector<Statement>* statements) {
    std::vector<int> rest = tensors_[0].factors;
    rest.pop_back();
    const int m = AddTensor("m", rest), p = AddTensor("p", tensors_[0].factors),
              z = AddTensor("z", rest);
    Statement s;
    s.target = m;
    s.combine = Combine::kMax;
    s.value = Expr::Element(0);
    statements->push_back(s);
    s.target = p;
    s.combine = Combine::kAssign;
    s.value = Expr::Apply(Function::kExp,
                          Expr::Binary(ExprKind::kDifference, Expr::Element(0), Expr::Element(m)));
    statements->push_back(s);
    s.target = z;
    s.combine = Combine::kSum;
    s.value = Expr::Element(p);
    statements->push_back(s);
  }
  int AddTensor(absl::string_view name, std::vector<int> dims) {
    tensors_.push_back({std::string(name), RuleTensor::Role::kIntermediate, false, DType::kCompute,
                        std::move(dims)});
    return static_cast<int>(tensors_.size()) - 1;
  }

  std::mt19937_64 random_;
  const bool smooth_;  // no max, nothing that breaks a finite difference
  int num_factors_ = 0;
  std::vector<RuleTensor> tensors_;
};

}  // namespace plancast

#endif  // PLANCAST_TESTS_GRAPH_RANDOM_RULE_H_
