#include "compiler/finetune/adapter.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

constexpr char kRank[] = "rank";

bool Contains(const std::vector<int>& list, int element) {
  return std::find(list.begin(), list.end(), element) != list.end();
}

// What a product is, as factors of its rule.
struct Product {
  int input = -1;            // tensor
  std::vector<int> kept;     // factors of the input that the outputs have
  std::vector<int> summed;   // and those that are summed over
  std::vector<int> batched;  // of `kept`, those that the weights have too (experts)
};

absl::Status NoProduct(const OpRule& rule) {
  return absl::InvalidArgumentError(absl::StrCat(
      "`", rule.name(), "` is no product of one activation with weights, so it has no adapters."));
}

// The statements that are products of the input with a weight.
absl::StatusOr<Product> FindProduct(const OpRule& rule) {
  Product product;
  for (int t : rule.inputs()) {
    if (rule.tensors()[t].parameter) continue;
    if (product.input >= 0) return NoProduct(rule);
    product.input = t;
  }
  if (product.input < 0 || !HasContraction(rule) || rule.has_ties() || !rule.fused().empty()) {
    return NoProduct(rule);
  }
  bool found = false;
  for (const Statement& statement : rule.statements()) {
    if (statement.reduced.empty()) continue;
    const std::vector<int> read = TensorsOf(statement.value);
    const bool plain = statement.combine == Combine::kSum && statement.where.empty() &&
                       read.size() == 2 && Contains(read, product.input);
    if (!plain) return NoProduct(rule);
    const RuleTensor& weight = rule.tensors()[read[0] == product.input ? read[1] : read[0]];
    if (!weight.parameter || (found && statement.reduced != product.summed)) return NoProduct(rule);
    product.summed = statement.reduced;
    if (found) continue;
    found = true;
    for (int factor : rule.tensors()[product.input].factors) {
      if (Contains(statement.reduced, factor)) continue;
      product.kept.push_back(factor);
      if (Contains(weight.factors, factor)) product.batched.push_back(factor);
    }
  }
  return product;
}

class RuleText {
 public:
  explicit RuleText(const OpRule& rule) : rule_(rule) {}

  // `name[b,s,rank]`
  std::string Element(absl::string_view name, const std::vector<int>& factors,
                      bool ranked = false) const {
    std::vector<std::string> names;
    for (int factor : factors) names.push_back(rule_.factors()[factor]);
    if (ranked) names.emplace_back(kRank);
    return absl::StrCat(name, "[", absl::StrJoin(names, ","), "]");
  }

 private:
  const OpRule& rule_;
};

std::vector<int> Joined(std::vector<int> first, const std::vector<int>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

absl::StatusOr<OpRulePtr> Made(const std::string& text) {
  ASSIGN_OR_RETURN(OpRule rule, OpRule::Parse(text));
  return std::make_shared<const OpRule>(std::move(rule));
}

// The model dim of each factor, by the names that the rules share.
std::vector<int> DimsOf(const OpRule& rule, const OpNode& product, int rank_dim) {
  std::vector<int> dims;
  for (const std::string& factor : rule.factors()) {
    const absl::StatusOr<int> same = product.rule->FindFactor(factor);
    dims.push_back(same.ok() ? product.factor_dims[*same] : rank_dim);
  }
  return dims;
}

// Appends ops to a body with the tensors that they need.
class AdapterWriter {
 public:
  AdapterWriter(const OpNode& product, int rank_dim, Body* body)
      : product_(product), rank_dim_(rank_dim), body_(*body) {}

  int Tensor(std::string name, const OpNode& op, const RuleTensor& like, bool frozen = false) {
    TensorInfo tensor;
    tensor.name = absl::StrCat(op.name, ".", name);
    tensor.kind = like.parameter ? TensorInfo::Kind::kParameter : TensorInfo::Kind::kActivation;
    tensor.dtype = like.dtype;
    for (int factor : like.factors) tensor.dims.push_back(op.factor_dims[factor]);
    tensor.frozen = frozen;
    body_.tensors.push_back(std::move(tensor));
    return static_cast<int>(body_.tensors.size()) - 1;
  }

  OpNode Op(absl::string_view name, OpRulePtr rule) const {
    OpNode op;
    op.name = absl::StrCat(product_.name, ".", name);
    op.factor_dims = DimsOf(*rule, product_, rank_dim_);
    op.rule = std::move(rule);
    op.recompute_group = product_.recompute_group;
    return op;
  }

  // An op on `inputs` and weights of its own; its outputs are new tensors.
  OpNode Call(absl::string_view name, const OpRulePtr& rule, const std::vector<int>& inputs,
              bool trains) {
    OpNode op = Op(name, rule);
    size_t next = 0;
    for (int index : rule->inputs()) {
      const RuleTensor& tensor = rule->tensors()[index];
      op.inputs.push_back(tensor.parameter ? Tensor(tensor.name, op, tensor, !trains)
                                           : inputs[next++]);
    }
    for (int index : rule->outputs()) {
      op.outputs.push_back(Tensor(rule->tensors()[index].name, op, rule->tensors()[index]));
    }
    return op;
  }

 private:
  const OpNode& product_;
  const int rank_dim_;
  Body& body_;
};

// Dropout of a tensor with these factors: what is kept is drawn anew.
std::string DropoutText(const RuleText& text, const std::vector<int>& factors) {
  const std::string x = text.Element("x", factors), mask = text.Element("mask", factors);
  return absl::StrCat("lora_dropout(x) -> (y) {\n  ", mask, ":u8 = step(keep - random())\n  ",
                      text.Element("y", factors), " = ", x, " * ", mask, " / keep\n  save mask\n}");
}

}  // namespace

absl::StatusOr<AdapterRules> AdapterOf(const OpRule& product) {
  ASSIGN_OR_RETURN(const Product found, FindProduct(product));
  const RuleText text(product);
  const std::string x = text.Element("x", product.tensors()[found.input].factors);
  std::vector<std::string> weight;
  for (int factor : found.batched) weight.push_back(product.factors()[factor]);
  weight.emplace_back(kRank);
  for (int factor : found.summed) weight.push_back(product.factors()[factor]);
  AdapterRules rules;
  const auto& inputs = product.inputs();
  rules.input =
      static_cast<int>(std::find(inputs.begin(), inputs.end(), found.input) - inputs.begin());
  const std::string a = text.Element("a", found.kept, /*ranked=*/true);
  ASSIGN_OR_RETURN(rules.a,
                   Made(absl::StrCat("lora_a(x, param w) -> (a) {\n  ", a, " += ", x, " * w[",
                                     absl::StrJoin(weight, ","), "]\n  save x, w\n}")));
  std::string weights, outputs, products, saves, bases, parts, sums, results;
  for (int index : product.outputs()) {
    const RuleTensor& output = product.tensors()[index];
    const std::string& y = output.name;
    std::vector<int> own = found.batched;
    for (int factor : output.factors) {
      if (!Contains(found.kept, factor)) own.push_back(factor);
    }
    const char* comma = outputs.empty() ? "" : ", ";
    absl::StrAppend(&weights, ", param w_", y);
    absl::StrAppend(&saves, ", w_", y);
    absl::StrAppend(&outputs, comma, y);
    absl::StrAppend(&products, "  ", text.Element(y, output.factors), " += ", a, " * ",
                    text.Element("w_" + y, own, /*ranked=*/true), "\n");
    absl::StrAppend(&bases, comma, "base_", y);
    absl::StrAppend(&parts, ", ", y);
    absl::StrAppend(&results, comma, "sum_", y);
    absl::StrAppend(&sums, "  ", text.Element("sum_" + y, output.factors), " = ",
                    text.Element("base_" + y, output.factors), " + scale * ",
                    text.Element(y, output.factors), "\n");
  }
  ASSIGN_OR_RETURN(rules.b, Made(absl::StrCat("lora_b(a", weights, ") -> (", outputs, ") {\n",
                                              products, "  save a", saves, "\n}")));
  ASSIGN_OR_RETURN(rules.add, Made(absl::StrCat("lora_add(", bases, parts, ") -> (", results,
                                                ") {\n", sums, "}")));
  return rules;
}

absl::Status AddAdapter(int op, const AdapterOptions& options, Body* body) {
  const OpNode product = body->ops[op];
  ASSIGN_OR_RETURN(const AdapterRules rules, AdapterOf(*product.rule));
  AdapterWriter writer(product, options.rank_dim, body);
  std::vector<OpNode> ops;
  int x = product.inputs[rules.input];
  if (options.dropout) {
    const RuleTensor& input = product.rule->tensors()[product.rule->inputs()[rules.input]];
    ASSIGN_OR_RETURN(OpRulePtr rule, Made(DropoutText(RuleText(*product.rule), input.factors)));
    ops.push_back(writer.Call("lora_dropout", rule, {x}, true));
    x = ops.back().outputs[0];
  }
  ops.push_back(writer.Call("lora_a", rules.a, {x}, options.trains_a));
  ops.push_back(writer.Call("lora_b", rules.b, {ops.back().outputs[0]}, options.trains_b));
  // What read the product's results reads the sums; the product has new results.
  OpNode add = writer.Op("lora_add", rules.add);
  add.outputs = product.outputs;
  const std::vector<int> parts = ops.back().outputs;
  for (size_t i = 0; i < product.outputs.size(); ++i) {
    const RuleTensor& output = product.rule->tensors()[product.rule->outputs()[i]];
    body->ops[op].outputs[i] = writer.Tensor("base_" + output.name, product, output);
  }
  add.inputs = Joined(body->ops[op].outputs, parts);
  ops.push_back(std::move(add));
  body->ops.insert(body->ops.begin() + op + 1, ops.begin(), ops.end());
  return absl::OkStatus();
}

}  // namespace plancast
