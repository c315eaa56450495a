#include "compiler/lower/kernels/product_bias.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "graph/rule/expr.h"
#include "graph/rule/op_rule.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

constexpr char kFusion[] = "product_bias";

bool Has(const std::vector<int>& tensors, int tensor) {
  return std::find(tensors.begin(), tensors.end(), tensor) != tensors.end();
}

// Whether all that a rule does is to add a parameter, along fewer dims, to its first input.
bool AddsParameter(const OpRule& rule) {
  if (rule.statements().size() != 1 || rule.inputs().size() != 2) return false;
  const Statement& sum = rule.statements()[0];
  if (sum.combine != Combine::kAssign || sum.value.kind() != ExprKind::kSum) return false;
  const RuleTensor &x = rule.tensors()[rule.inputs()[0]], &w = rule.tensors()[rule.inputs()[1]];
  return sum.where.empty() && !x.parameter && w.parameter && w.factors.size() < x.factors.size() &&
         x.factors == rule.tensors()[sum.target].factors && TensorsOf(sum.value) == rule.inputs();
}

// A sum over a factor that mesh axes cut has parts on several devices.
bool IsSummedOverDevices(const OpRule& rule, const FactorSplit& split) {
  for (const Statement& statement : rule.statements()) {
    for (const int factor : statement.reduced) {
      if (!split.axes[factor].empty()) return true;
    }
  }
  return false;
}

// The op that makes a tensor which one other op reads and nothing else; -1: it is not such a one.
int MakerOf(const Body& body, int tensor) {
  const auto readers = std::count_if(body.ops.begin(), body.ops.end(),
                                     [&](const OpNode& op) { return Has(op.inputs, tensor); });
  if (readers != 1 || Has(body.out_ports, tensor)) return -1;
  for (size_t i = 0; i < body.ops.size(); ++i) {
    if (Has(body.ops[i].outputs, tensor)) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

bool AddedByProduct(const LowerContext& context, const OpStep& step) {
  if (step.part == Part::kBackward || step.part == Part::kWeightGrad) return false;
  const std::set<std::string>& fusions = context.profile->kernels.fusions;
  if (fusions.count(kFusion) == 0 || !AddsParameter(*step.rule)) return false;
  const Body& body = context.body();
  const OpNode& bias = body.ops[step.op];
  if (fusions.count(bias.fusion) > 0) return false;  // with what comes behind it
  int op = MakerOf(body, bias.inputs[0]);
  // What adapters give is added to a product that has its bias already.
  if (op >= 0 && absl::StartsWith(body.ops[op].rule->name(), kAdapterSum)) {
    op = MakerOf(body, body.ops[op].inputs[0]);
  }
  if (op < 0) return false;
  const OpRule& rule = *body.ops[op].rule;
  return HasContraction(rule) && rule.fused().empty() &&
         !IsSummedOverDevices(rule, context.bound->splits[op]);
}

}  // namespace plancast
