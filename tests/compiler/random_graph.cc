#include "tests/compiler/random_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "graph/rule/op_rule.h"

namespace plancast {
namespace {

bool IsNumber(DType type) { return type != DType::kInt64 && type != DType::kUint8; }

absl::string_view TypeText(DType type) { return type == DType::kFp32 ? ":f32" : ""; }

class Drawing {
 public:
  Drawing(ModelGraph* graph, std::mt19937& random) : graph_(*graph), random_(random) {
    graph_.dims = {{"batch", 0}, {"seq", 8}, {"hidden", 12}};
    stream_dims_ = {0, 1, 2};
  }

  Body Layer(const std::vector<std::string>& rules) {
    body_ = Body();
    body_.name = "layer";
    stream_ = AddTensor("x", TensorInfo::Kind::kActivation, DType::kCompute, stream_dims_);
    body_.in_ports = {stream_};
    for (size_t i = 0; i < rules.size(); ++i) AddOp(absl::StrCat("op", i), **FindRule(rules[i]));
    body_.out_ports = {stream_};
    return std::move(body_);
  }

 private:
  uint32_t Below(size_t n) { return static_cast<uint32_t>(random_() % n); }

  int AddTensor(std::string name, TensorInfo::Kind kind, DType dtype, std::vector<int> dims) {
    body_.tensors.push_back({std::move(name), kind, dtype, std::move(dims)});
    return static_cast<int>(body_.tensors.size()) - 1;
  }

  // A dim of this size that is not in `taken`.
  int DimOfSize(int64_t size, const std::vector<int>& taken) {
    for (size_t d = 1; d < graph_.dims.size(); ++d) {
      const int dim = static_cast<int>(d);
      const bool free = std::find(taken.begin(), taken.end(), dim) == taken.end();
      if (graph_.dims[d].size == size && free) return dim;
    }
    graph_.dims.push_back({absl::StrCat("n", size, "_", graph_.dims.size()), size});
    return static_cast<int>(graph_.dims.size()) - 1;
  }

  // The factor that is the samples: `b`, the outermost of an argument.
  static int BatchFactor(const OpRule& rule) {
    for (int t : rule.inputs()) {
      const RuleTensor& tensor = rule.tensors()[t];
      if (tensor.parameter || tensor.factors.empty()) continue;
      if (rule.factors()[tensor.factors[0]] == "b") return tensor.factors[0];
    }
    return -1;
  }

  std::vector<int> FactorDims(const OpRule& rule) {
    std::vector<int64_t> sizes(rule.factors().size(), 0);
    const int batch = BatchFactor(rule);
    const int64_t drawn[] = {4, 8, 12, 16, 24};
    std::set<int> left;  // of maps
    for (const Statement& s : rule.statements()) {
      for (const Condition& c : s.where) {
        if (!c.is_map()) continue;
        left.insert(c.left);
        for (const AffineTerm& term : c.terms) {
          const bool window = term.factor >= 0 && term.factor != c.tied() && !c.is_radix();
          if (window) sizes[term.factor] = 3;
        }
      }
    }
    for (size_t f = 0; f < sizes.size(); ++f) {
      if (sizes[f] == 0 && left.count(static_cast<int>(f)) == 0) sizes[f] = drawn[Below(5)];
    }
    // As far as the maps reach, at most; each may need those of others first.
    for (size_t round = 0; round < 1 + left.size(); ++round) {
      for (const Statement& s : rule.statements()) {
        for (const Condition& c : s.where) {
          if (!c.is_map() || sizes[c.left] > 0) continue;
          int64_t size = c.is_radix() ? 1 : 0;
          bool known = true;
          for (const AffineTerm& term : c.terms) {
            if (term.factor < 0) continue;
            known = known && sizes[term.factor] > 0;
            if (c.is_radix()) size *= sizes[term.factor];
            if (!c.is_radix() && term.factor == c.tied()) {
              size = sizes[term.factor] * std::max<int64_t>(1, term.Coefficient(sizes));
            }
          }
          if (known) sizes[c.left] = std::max<int64_t>(size, 4);
        }
      }
    }
    std::vector<int> dims(sizes.size());
    for (size_t f = 0; f < sizes.size(); ++f) {
      dims[f] =
          static_cast<int>(f) == batch ? 0 : DimOfSize(sizes[f], {dims.begin(), dims.begin() + f});
    }
    return dims;
  }

  static std::string Index(const std::vector<int>& dims) {
    return absl::StrJoin(dims, ",", [](std::string* out, int d) { absl::StrAppend(out, "f", d); });
  }

  // Some function of `from`, with these dims, apart for each sample.
  int Adapt(const std::string& name, int from, const std::vector<int>& dims, DType dtype) {
    const TensorInfo& source = body_.tensors[from];
    auto has_batch = [](const std::vector<int>& list) {
      return std::find(list.begin(), list.end(), 0) != list.end();
    };
    const std::string apart = has_batch(dims) && has_batch(source.dims) ? "f0" : "";
    const absl::StatusOr<OpRule> rule = OpRule::Parse(
        absl::StrCat("adapt(x", TypeText(source.dtype), ") -> (y", TypeText(dtype), ") { y[",
                     Index(dims), "] opaque(", apart, ")= x[", Index(source.dims), "]; save x }"));
    PLANCAST_CHECK_OK(rule);
    OpNode op;
    op.name = name;
    op.rule = std::make_shared<const OpRule>(*rule);
    for (const std::string& factor : rule->factors()) {
      op.factor_dims.push_back(std::stoi(factor.substr(1)));
    }
    op.inputs = {from};
    op.outputs = {AddTensor(name + ".y", TensorInfo::Kind::kActivation, dtype, dims)};
    body_.ops.push_back(op);
    return op.outputs[0];
  }

  int Argument(const std::string& name, const RuleTensor& tensor, const std::vector<int>& dims) {
    if (tensor.parameter) {
      return AddTensor(name, TensorInfo::Kind::kParameter, tensor.dtype, dims);
    }
    if (!IsNumber(tensor.dtype)) {
      return AddTensor(name, TensorInfo::Kind::kInput, tensor.dtype, dims);
    }
    std::vector<int> fitting;
    for (size_t t = 0; t < body_.tensors.size(); ++t) {
      const TensorInfo& made = body_.tensors[t];
      if (made.kind == TensorInfo::Kind::kActivation && made.dims == dims &&
          made.dtype == tensor.dtype) {
        fitting.push_back(static_cast<int>(t));
      }
    }
    if (!fitting.empty() && Below(4) > 0) return fitting[Below(fitting.size())];
    return Adapt(name + "_from", stream_, dims, tensor.dtype);
  }

  void AddOp(const std::string& name, const OpRule& rule) {
    OpNode op;
    op.name = name;
    op.rule = std::make_shared<const OpRule>(rule);
    op.factor_dims = FactorDims(rule);
    auto dims_of = [&](const RuleTensor& tensor) {
      std::vector<int> dims;
      for (int f : tensor.factors) dims.push_back(op.factor_dims[f]);
      return dims;
    };
    for (int t : rule.inputs()) {
      const RuleTensor& tensor = rule.tensors()[t];
      op.inputs.push_back(Argument(absl::StrCat(name, ".", tensor.name), tensor, dims_of(tensor)));
    }
    int back = -1;
    for (int t : rule.outputs()) {
      const RuleTensor& tensor = rule.tensors()[t];
      op.outputs.push_back(AddTensor(absl::StrCat(name, ".", tensor.name),
                                     TensorInfo::Kind::kActivation, tensor.dtype, dims_of(tensor)));
      if (IsNumber(tensor.dtype)) back = op.outputs.back();
    }
    body_.ops.push_back(op);
    if (back < 0) return;
    OpNode add;
    add.name = name + ".add";
    add.rule = *FindRule("residual_add");
    add.factor_dims = stream_dims_;
    add.inputs = {Adapt(name + "_back", back, stream_dims_, DType::kCompute), stream_};
    stream_ =
        AddTensor(name + ".sum", TensorInfo::Kind::kActivation, DType::kCompute, stream_dims_);
    add.outputs = {stream_};
    body_.ops.push_back(add);
  }

  ModelGraph& graph_;
  std::mt19937& random_;
  Body body_;
  int stream_ = -1;
  std::vector<int> stream_dims_;
};

}  // namespace

const std::vector<std::string>& TrainableRules() {
  static const auto* const trainable = [] {
    auto* names = new std::vector<std::string>;
    for (const std::string& name : RuleNames()) {
      const OpRule& rule = **FindRule(name);
      const std::vector<std::string> inputs = DifferentiableInputs(rule);
      const bool all = std::all_of(inputs.begin(), inputs.end(), [&](const std::string& input) {
        return Differentiate(rule, {input}).ok();
      });
      if (!inputs.empty() && all) names->push_back(name);
    }
    return names;
  }();
  return *trainable;
}

ModelGraph RandomGraph(const std::vector<std::string>& rules, int64_t layers,
                       std::mt19937& random) {
  ModelGraph graph;
  graph.name = "drawn";
  Drawing drawing(&graph, random);
  // The stream begins as data that went through a kernel.
  Body data;
  data.name = "data";
  data.tensors = {{"ids", TensorInfo::Kind::kInput, DType::kInt64, {0, 1}},
                  {"table", TensorInfo::Kind::kParameter, DType::kCompute, {2, 2}},
                  {"x", TensorInfo::Kind::kActivation, DType::kCompute, {0, 1, 2}}};
  OpNode lookup;
  lookup.name = "lookup";
  lookup.rule = *FindRule("embedding");
  graph.dims.push_back({"vocab", 16});
  data.tensors[1].dims[0] = 3;
  for (const std::string& factor : lookup.rule->factors()) {
    lookup.factor_dims.push_back(factor == "b" ? 0 : factor == "s" ? 1 : factor == "h" ? 2 : 3);
  }
  lookup.inputs = {0, 1};
  lookup.outputs = {2};
  data.ops = {lookup};
  data.out_ports = {2};
  graph.bodies = {data, drawing.Layer(rules)};
  graph.segments = {{"data", 0, 1, false}, {"layers", 1, layers, true}};
  graph.bodies[0].tensors[1].sparse = random() % 4 == 0;
  PLANCAST_CHECK_OK(graph.Verify());
  return graph;
}

}  // namespace plancast
