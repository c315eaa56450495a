#include "compiler/lower/body_state.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/bind/vocabulary.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

// Per tensor of the body: a matrix that only products read whose operands may be
// quantised.
std::vector<bool> ProductMatrices(const Body& body, const SoftwareProfile& profile) {
  std::vector<bool> matrices(body.tensors.size()), others(body.tensors.size());
  for (const OpNode& op : body.ops) {
    const bool product = HasContraction(*op.rule) && profile.Quantizes(op.name);
    for (int t : op.inputs) {
      const TensorInfo& tensor = body.tensors[t];
      if (tensor.kind != TensorInfo::Kind::kParameter) continue;
      (product && tensor.dims.size() > 1 ? matrices : others)[t] = true;
    }
  }
  for (size_t t = 0; t < matrices.size(); ++t) matrices[t] = matrices[t] && !others[t];
  return matrices;
}

// Per tensor of the body: how many of its first dims frameworks have as one, the rows of
// a matrix. Those that the results of an op have as well (heads and their width), or
// one.
std::vector<int> RowDims(const Body& body) {
  std::vector<int> rows(body.tensors.size());
  for (size_t t = 0; t < rows.size(); ++t) rows[t] = body.tensors[t].dims.empty() ? 0 : 1;
  for (const OpNode& op : body.ops) {
    const OpRule& rule = *op.rule;
    const auto in_result = [&](int factor) {
      return std::any_of(rule.outputs().begin(), rule.outputs().end(), [&](int out) {
        const auto& factors = rule.tensors()[out].factors;
        return std::find(factors.begin(), factors.end(), factor) != factors.end();
      });
    };
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const int t = op.inputs[i];
      if (body.tensors[t].kind != TensorInfo::Kind::kParameter) continue;
      const auto& factors = rule.tensors()[rule.inputs()[i]].factors;
      int leading = 0;
      while (leading < static_cast<int>(factors.size()) && in_result(factors[leading])) ++leading;
      rows[t] = std::max(rows[t], leading);
    }
  }
  return rows;
}

// Tables and the output layer have such dims, `vocab` and `vocab_3`.
bool HasVocabulary(const ModelGraph& graph, const TensorInfo& tensor) {
  return std::any_of(tensor.dims.begin(), tensor.dims.end(), [&](int dim) {
    return absl::StartsWith(graph.dims[dim].name, kVocabularyDim);
  });
}

// Sets the sizes of parameter `tensor`, of `shape`, as matrices, if all that reads it multiplies
// with it. A dim that the result has is one of rows, or, if the other operand has it as well, there
// is a matrix for each of its points; the others are summed over.
void NoteMatrices(const ModelGraph& graph, const Body& body, int tensor,
                  const std::vector<int64_t>& shape, BodyState::Parameter* parameter) {
  if (shape.size() < 2 || HasVocabulary(graph, body.tensors[tensor])) return;
  int64_t sizes[3] = {0, 0, 0};  // matrices, rows, columns
  for (const OpNode& op : body.ops) {
    const OpRule& rule = *op.rule;
    const auto has = [&](int t, int factor) {
      const std::vector<int>& factors = rule.tensors()[t].factors;
      return std::find(factors.begin(), factors.end(), factor) != factors.end();
    };
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] != tensor) continue;
      if (!HasContraction(rule)) return;
      const std::vector<int>& factors = rule.tensors()[rule.inputs()[i]].factors;
      if (factors.size() != shape.size()) return;
      std::fill(sizes, sizes + 3, 1);
      for (size_t d = 0; d < factors.size(); ++d) {
        const bool results = std::any_of(rule.outputs().begin(), rule.outputs().end(),
                                         [&](int out) { return has(out, factors[d]); });
        const bool shared = std::any_of(rule.inputs().begin(), rule.inputs().end(), [&](int in) {
          return !rule.tensors()[in].parameter && has(in, factors[d]);
        });
        sizes[results ? (shared ? 0 : 1) : 2] *= shape[d];
      }
    }
  }
  if (sizes[1] < 2 || sizes[2] < 2) return;  // vectors
  parameter->matrices = sizes[0];
  parameter->matrix_rows = sizes[1];
  parameter->matrix_columns = sizes[2];
}

// Per mesh axis: whether it cuts the samples of what the gradient of parameter `tensor` is
// made from.
std::vector<bool> CutsBatch(const ModelGraph& graph, const DeviceMesh& mesh, const Body& body,
                            const BodyPlan& plan, int tensor) {
  std::vector<bool> cuts(mesh.num_axes(), false);
  const absl::StatusOr<int> batch = graph.FindDim("batch");
  if (!batch.ok()) return cuts;
  const auto note = [&](const Value& value) {
    if (value.ref.op >= 0) return;
    const std::vector<int>& dims = body.tensors[value.ref.tensor].dims;
    for (int a = 0; a < mesh.num_axes(); ++a) {
      const Placement& placement = value.layout.placements[a];
      if (placement.is_shard() && dims[placement.dim] == *batch) cuts[a] = true;
    }
  };
  for (const PlanStep& step : plan.backward) {
    const bool makes = std::any_of(step.outputs.begin(), step.outputs.end(), [&](int v) {
      const TensorRef& ref = plan.values[v].ref;
      return ref.grad && ref.op < 0 && ref.tensor == tensor;
    });
    if (!makes || step.kind != PlanStep::Kind::kOp) continue;
    for (int v : step.inputs) {
      if (v >= 0) note(plan.values[v]);
    }
  }
  return cuts;
}

// Notes where a weight that no gradient tells of has copies, if a data-parallel axis cuts it.
void NoteCopies(const DeviceMesh& mesh, const Layout& weight, BodyState::Parameter* parameter) {
  const std::vector<int> data = DataAxes(mesh), experts_data = mesh.AxesOf("edp");
  const auto single = [&](int a) { return weight.placements[a].has_no_copies(); };
  parameter->cut = std::any_of(data.begin(), data.end(), single);
  if (!parameter->cut) return;
  const auto whole = [&](int a) { return mesh.size(a) > 1 && !single(a); };
  const bool expert =
      !experts_data.empty() && std::all_of(experts_data.begin(), experts_data.end(), whole);
  for (int a : expert ? experts_data : data) {
    if (whole(a)) parameter->copies.push_back(a);
  }
}

bool Has(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// Of a parameter that is whole on `copies`, under a home over `over`. What is not trained is
// gathered with its neighbours: as if its gradient were made on every data-parallel rank.
CopyAxes OwnCopies(const DeviceMesh& mesh, const std::vector<int>& copies,
                   const std::vector<int>& over, const Layout* gradient) {
  CopyAxes own;
  for (int a : copies) {
    const bool summed =
        gradient == nullptr ? IsDataAxis(mesh, a) : gradient->placements[a].is_partial();
    if (summed) {
      own.summed.push_back(a);
    } else if (Has(over, a)) {
      own.alike.push_back(a);
    }
  }
  return own;
}

bool AllCut(const std::vector<int>& axes, const std::vector<bool>& cuts) {
  return std::all_of(axes.begin(), axes.end(), [&](int a) { return cuts[a]; });
}

}  // namespace

std::vector<int> CopiesOf(const DeviceMesh& mesh, const Layout& layout) {
  std::vector<int> copies;
  for (int a = 0; a < mesh.num_axes(); ++a) {
    const bool stages = mesh.root(a) == "pp";
    if (mesh.size(a) > 1 && !stages && !layout.placements[a].has_no_copies()) copies.push_back(a);
  }
  return copies;
}

void AddTimes(const ElementsByAxes& elements, int64_t times, ElementsByAxes* sum) {
  for (const auto& [axes, count] : elements) (*sum)[axes] += count * times;
}

int64_t Total(const ElementsByAxes& elements) {
  int64_t total = 0;
  for (const auto& [axes, count] : elements) total += count;
  return total;
}

BodyState SummariseState(const ModelGraph& graph, const DeviceMesh& mesh, const Body& body,
                         const BodyPlan& plan, const SoftwareProfile& profile,
                         const std::vector<bool>* only, const std::vector<int>* over) {
  BodyState state;
  const auto left_out = [&](int tensor) {
    return (only != nullptr && !(*only)[tensor]) ||
           !plan.place.Holds(plan.parameter_layouts[tensor]);
  };
  auto local = [&](int tensor, const Layout& layout) {
    const TensorFacts facts = FactsOf(graph, body, {tensor, -1, false, false});
    return static_cast<int64_t>(layout.LocalElements(mesh, facts.shape));
  };
  const std::vector<bool> matrices = ProductMatrices(body, profile);
  const std::vector<int> row_dims = RowDims(body);
  std::vector<int> place(body.tensors.size(), -1);  // of a tensor in state.each
  for (size_t t = 0; t < body.tensors.size(); ++t) {
    const int tensor = static_cast<int>(t);
    if (body.tensors[t].kind == TensorInfo::Kind::kParameter && !left_out(tensor)) {
      const TensorFacts facts = FactsOf(graph, body, {tensor, -1, false, false});
      if (body.tensors[t].sparse && !body.tensors[t].frozen) {
        state.sparse_parameters += local(tensor, plan.parameter_layouts[t]);
        continue;
      }
      const std::vector<int64_t> shape = plan.parameter_layouts[t].LocalShape(mesh, facts.shape);
      BodyState::Parameter parameter;
      const int dims = row_dims[t];
      for (int d = 0; d < dims; ++d) parameter.rows *= shape[d];
      parameter.elements = local(tensor, plan.parameter_layouts[t]);
      parameter.frozen = body.tensors[t].frozen;
      NoteMatrices(graph, body, tensor, shape, &parameter);
      if (parameter.frozen) NoteCopies(mesh, plan.parameter_layouts[t], &parameter);
      if (over != nullptr) {
        parameter.own =
            OwnCopies(mesh, CopiesOf(mesh, plan.parameter_layouts[t]), *over, /*gradient=*/nullptr);
      }
      (parameter.frozen ? state.frozen.elements : state.parameters) += parameter.elements;
      if (body.tensors[t].at_rest == AtRest::kNf4) {
        state.frozen.nf4 += parameter.elements;
      } else if (matrices[t]) {
        (parameter.frozen ? state.frozen.products : state.product_parameters) += parameter.elements;
      }
      place[t] = static_cast<int>(state.each.size());
      state.each.push_back(std::move(parameter));
    }
  }
  const std::vector<int> all_data = DataAxes(mesh), experts_data = mesh.AxesOf("edp");
  std::set<int> counted;
  for (const BodyPlan::ParameterGrad& grad : plan.parameter_grads) {
    if (left_out(grad.tensor) || body.tensors[grad.tensor].sparse) continue;
    if (!counted.insert(grad.tensor).second) continue;
    std::vector<int> data, others;
    for (int a = 0; a < mesh.num_axes(); ++a) {
      if (!grad.layout.placements[a].is_partial() || mesh.size(a) == 1) continue;
      (IsDataAxis(mesh, a) ? data : others).push_back(a);
    }
    const int64_t elements = local(grad.tensor, grad.layout);
    // A weight that some data-parallel axis cuts is reduced over the rest by
    // itself: the common buckets run over all of them.
    const Layout& weight = plan.parameter_layouts[grad.tensor];
    if (over != nullptr) {
      CopyAxes own = OwnCopies(mesh, CopiesOf(mesh, weight), *over, &grad.layout);
      state.own[own] += elements;
      state.each[place[grad.tensor]].own = std::move(own);
      continue;
    }
    const bool cut = std::any_of(all_data.begin(), all_data.end(),
                                 [&](int a) { return weight.placements[a].has_no_copies(); });
    if (cut) {
      std::vector<int> both = data;
      both.insert(both.end(), others.begin(), others.end());
      std::sort(both.begin(), both.end());
      if (!data.empty() && both == experts_data) {
        data = std::move(both);
        others.clear();
      }
      state.cut_parameters[data] += elements;
      const bool placed = std::any_of(all_data.begin(), all_data.end(),
                                      [&](int a) { return weight.placements[a].is_on(); });
      if (placed) state.placed_parameters += elements;
      if (placed && !data.empty()) state.placed_gradients += elements;
      state.each[place[grad.tensor]].cut = true;
      state.each[place[grad.tensor]].copies = data;
      if (!data.empty()) state.cut_gradients[data] += elements;
    } else if (!others.empty() && (data.empty() || data == all_data) &&
               AllCut(others, CutsBatch(graph, mesh, body, plan, grad.tensor))) {
      data.insert(data.end(), others.begin(), others.end());
      std::sort(data.begin(), data.end());
      state.reduced_over_batch[data] += elements;
      continue;
    } else if (!data.empty()) {
      (data == all_data ? state.reduced_over_data : state.reduced_over_others[data]) += elements;
    }
    if (!others.empty()) state.reduced_over_others[others] += elements;
  }
  return state;
}

std::string BodyState::DebugString(const DeviceMesh& mesh) const {
  std::string out =
      absl::StrCat("parameters ", parameters,
                   frozen.elements > 0 ? absl::StrCat(" and ", frozen.elements, " frozen") : "",
                   sparse_parameters > 0 ? absl::StrCat(" and ", sparse_parameters, " sparse") : "",
                   ", gradients reduced over data ", reduced_over_data);
  const auto over = [&](const std::vector<int>& axes) {
    return absl::StrJoin(axes, "*",
                         [&](std::string* s, int a) { absl::StrAppend(s, mesh.axis(a).name); });
  };
  for (const ElementsByAxes* list : {&cut_gradients, &reduced_over_batch, &reduced_over_others}) {
    for (const auto& [axes, elements] : *list) {
      absl::StrAppend(&out, ", over ", over(axes), " ", elements);
    }
  }
  for (const auto& [axes, elements] : cut_parameters) {
    absl::StrAppend(&out, "; parameters ", axes.empty() ? "without copies" : "copied over ",
                    over(axes), " ", elements);
  }
  return out;
}

}  // namespace plancast
