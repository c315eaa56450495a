#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/int128.h"
#include "base/status_macros.h"
#include "graph/model/model_graph.h"

namespace plancast {
namespace {

bool InRange(int index, size_t size) { return index >= 0 && index < static_cast<int>(size); }

absl::Status Error(absl::string_view message) { return absl::InvalidArgumentError(message); }

// Two dims that may stand for each other: one and the same, or two names of
// one size (`seq` and `kv_seq`).
bool SameDim(const ModelGraph& graph, int a, int b) {
  return a == b || (graph.dims[a].size == graph.dims[b].size && graph.dims[a].size > 0);
}

std::string DimText(const ModelGraph& graph, int dim) {
  return absl::StrCat("`", graph.dims[dim].name, "` (", graph.dims[dim].size, ")");
}

std::string DimsText(const ModelGraph& graph, const TensorInfo& tensor) {
  return absl::StrCat("`", tensor.name, "` [",
                      absl::StrJoin(tensor.dims, ", ",
                                    [&](std::string* out, int d) {
                                      absl::StrAppend(out, graph.dims[d].name, "=",
                                                      graph.dims[d].size);
                                    }),
                      "]");
}

class BodyVerifier {
 public:
  BodyVerifier(const ModelGraph& graph, const Body& body) : graph_(graph), body_(body) {}

  absl::Status Run() {
    RETURN_IF_ERROR(CheckTensors());
    for (const OpNode& op : body_.ops) {
      RETURN_IF_ERROR(CheckOp(op)) << "body `" << body_.name << "`, op `" << op.name << "`";
    }
    for (int port : body_.out_ports) {
      if (!written_[port]) {
        return Error(absl::StrCat("body `", body_.name, "`: out port `", body_.tensors[port].name,
                                  "` is never written."));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckTensors() {
    absl::flat_hash_set<std::string> names;
    written_.resize(body_.tensors.size());
    for (size_t t = 0; t < body_.tensors.size(); ++t) {
      const TensorInfo& tensor = body_.tensors[t];
      if (tensor.name.empty() || !names.insert(tensor.name).second) {
        return Error(absl::StrCat("body `", body_.name, "`: tensor names must be unique; `",
                                  tensor.name, "` is not."));
      }
      double elements = 1;
      for (int d : tensor.dims) {
        if (!InRange(d, graph_.dims.size())) {
          return Error(absl::StrCat("body `", body_.name, "`: tensor `", tensor.name,
                                    "` names a dim that is not there."));
        }
        elements *= static_cast<double>(graph_.dims[d].size);
      }
      if (elements > 4e18) {
        return Error(absl::StrCat("body `", body_.name, "`: tensor ", DimsText(graph_, tensor),
                                  " has more than 4e18 elements."));
      }
      written_[t] = tensor.kind != TensorInfo::Kind::kActivation;
    }
    for (const std::vector<int>* ports : {&body_.in_ports, &body_.out_ports}) {
      for (int port : *ports) {
        if (!InRange(port, body_.tensors.size())) {
          return Error(absl::StrCat("body `", body_.name, "`: a port names no tensor."));
        }
      }
    }
    for (int port : body_.in_ports) written_[port] = true;
    return absl::OkStatus();
  }

  // A gradient has few rows where an op looks rows up, and one op knows which.
  absl::Status CheckLookups(const OpNode& op) {
    for (const int input : op.inputs) {
      if (!InRange(input, body_.tensors.size()) || !body_.tensors[input].sparse) continue;
      const TensorInfo& table = body_.tensors[input];
      const auto& inputs = op.rule->inputs();
      const bool looks_up = std::any_of(inputs.begin(), inputs.end(), [&](int t) {
        return op.rule->tensors()[t].dtype == DType::kInt64;
      });
      if (table.kind != TensorInfo::Kind::kParameter || table.dims.size() < 2 || !looks_up) {
        return Error(absl::StrCat("`", table.name, "` is `sparse`, and `", op.rule->name(),
                                  "` looks up no rows of it. Use it in an embedding, or leave ",
                                  "`sparse` out."));
      }
      if (!tables_.insert(input).second) {
        return Error(absl::StrCat("`", table.name, "` is `sparse` and is read twice. Leave ",
                                  "`sparse` out."));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckOp(const OpNode& op) {
    if (op.rule == nullptr) return Error("it has no rule.");
    if (op.name.empty() || !op_names_.insert(op.name).second) {
      return Error("op names must be unique in a body.");
    }
    if (op.inputs.size() != op.rule->inputs().size() ||
        op.outputs.size() != op.rule->outputs().size()) {
      return Error(absl::StrCat("`", op.rule->name(), "` takes ", op.rule->inputs().size(),
                                " tensors and gives ", op.rule->outputs().size(), "; here are ",
                                op.inputs.size(), " and ", op.outputs.size(), "."));
    }
    if (op.factor_dims.size() != op.rule->factors().size()) {
      return Error(absl::StrCat("`", op.rule->name(), "` has ", op.rule->factors().size(),
                                " factors; here are dims for ", op.factor_dims.size(), "."));
    }
    for (int d : op.factor_dims) {
      if (!InRange(d, graph_.dims.size())) return Error("a factor names a dim that is not there.");
    }
    RETURN_IF_ERROR(CheckLookups(op));
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      RETURN_IF_ERROR(CheckArgument(op, op.rule->inputs()[i], op.inputs[i]));
      if (written_[op.inputs[i]]) continue;
      return Error(
          absl::StrCat("it reads `", body_.tensors[op.inputs[i]].name, "` before it is written."));
    }
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      RETURN_IF_ERROR(CheckArgument(op, op.rule->outputs()[i], op.outputs[i]));
      if (written_[op.outputs[i]]) {
        return Error(absl::StrCat("it writes `", body_.tensors[op.outputs[i]].name,
                                  "`, which has a value already."));
      }
      written_[op.outputs[i]] = true;
    }
    for (const Statement& s : op.rule->statements()) {
      for (const Condition& c : s.where) {
        if (c.is_radix() && c.terms.size() > 1) {
          RETURN_IF_ERROR(CheckMergedDim(op, c));
        }
      }
    }
    return absl::OkStatus();
  }

  // A merged dim has as many elements as its parts have points.
  absl::Status CheckMergedDim(const OpNode& op, const Condition& map) const {
    int64_t points = 1;
    std::vector<std::string> parts;
    for (const AffineTerm& term : map.terms) {
      const int dim = op.factor_dims[term.factor];
      if (graph_.dims[dim].size == 0) return absl::OkStatus();  // set by the plan
      points = SaturateToInt64(int128{points} * graph_.dims[dim].size);
      parts.push_back(
          absl::StrCat("`", op.rule->factors()[term.factor], "` ", DimText(graph_, dim)));
    }
    const int merged = op.factor_dims[map.left];
    if (graph_.dims[merged].size == 0 || graph_.dims[merged].size == points) {
      return absl::OkStatus();
    }
    return Error(absl::StrCat("factor `", op.rule->factors()[map.left], "` of `", op.rule->name(),
                              "` is ", DimText(graph_, merged), ", but its parts ",
                              absl::StrJoin(parts, ", "), " have ", points, " points."));
  }

  absl::Status CheckArgument(const OpNode& op, int rule_tensor, int tensor) const {
    const RuleTensor& wanted = op.rule->tensors()[rule_tensor];
    if (!InRange(tensor, body_.tensors.size())) {
      return Error(absl::StrCat("argument `", wanted.name, "` names no tensor."));
    }
    const TensorInfo& given = body_.tensors[tensor];
    if (given.dims.size() != wanted.factors.size()) {
      return Error(absl::StrCat("`", op.rule->name(), "` wants `", wanted.name, "` with ",
                                wanted.factors.size(), " dims; ", DimsText(graph_, given), " has ",
                                given.dims.size(), "."));
    }
    for (size_t d = 0; d < given.dims.size(); ++d) {
      const int dim = op.factor_dims[wanted.factors[d]];
      if (SameDim(graph_, given.dims[d], dim)) continue;
      return Error(absl::StrCat("factor `", op.rule->factors()[wanted.factors[d]], "` of `",
                                op.rule->name(), "` is ", DimText(graph_, dim), ", but dim ", d,
                                " of ", DimsText(graph_, given), " is ",
                                DimText(graph_, given.dims[d]), "."));
    }
    return absl::OkStatus();
  }

  const ModelGraph& graph_;
  const Body& body_;
  std::vector<bool> written_;
  absl::flat_hash_set<std::string> op_names_;
  absl::flat_hash_set<int> tables_;  // sparse ones that some op reads
};

// The tensors that leave `from` must fit those that enter `to`.
absl::Status CheckPorts(const ModelGraph& graph, const Segment& from, const Segment& to) {
  const Body& a = graph.bodies[from.body];
  const Body& b = graph.bodies[to.body];
  const std::string place = absl::StrCat("from `", from.path, "` to `", to.path, "`: ");
  if (a.out_ports.size() != b.in_ports.size()) {
    return Error(absl::StrCat(place, a.out_ports.size(), " tensors leave and ", b.in_ports.size(),
                              " enter."));
  }
  for (size_t i = 0; i < a.out_ports.size(); ++i) {
    const TensorInfo& out = a.tensors[a.out_ports[i]];
    const TensorInfo& in = b.tensors[b.in_ports[i]];
    bool fits = out.dims.size() == in.dims.size() && out.dtype == in.dtype &&
                a.OutDetached(i) == b.InDetached(i);
    for (size_t d = 0; fits && d < out.dims.size(); ++d) {
      fits = SameDim(graph, out.dims[d], in.dims[d]);
    }
    if (fits) continue;
    return Error(absl::StrCat(place, DimsText(graph, out), " leaves where ", DimsText(graph, in),
                              " enters."));
  }
  return absl::OkStatus();
}

absl::Status CheckTie(const ModelGraph& graph, const TiedParameter& tie) {
  int64_t elements[2] = {0, 0};
  const std::pair<int, int> ends[2] = {{tie.first_segment, tie.first_tensor},
                                       {tie.second_segment, tie.second_tensor}};
  for (int i = 0; i < 2; ++i) {
    if (!InRange(ends[i].first, graph.segments.size())) {
      return Error("a tied parameter names no segment.");
    }
    const Body& body = graph.bodies[graph.segments[ends[i].first].body];
    if (!InRange(ends[i].second, body.tensors.size()) ||
        body.tensors[ends[i].second].kind != TensorInfo::Kind::kParameter) {
      return Error(
          absl::StrCat("a tie names no parameter of `", graph.segments[ends[i].first].path, "`."));
    }
    const int64_t repeat = i == 0 ? tie.first_repeat : tie.second_repeat;
    if (repeat < 0 || repeat >= graph.segments[ends[i].first].repeat) {
      return Error(absl::StrCat("a tie names repeat ", repeat, " of `",
                                graph.segments[ends[i].first].path, "`, which has ",
                                graph.segments[ends[i].first].repeat, "."));
    }
    const TensorInfo& tensor = body.tensors[ends[i].second];
    if (tensor.sparse) {
      return Error(absl::StrCat("`", tensor.name, "` is `sparse` and tied: its other user has ",
                                "gradients of all rows. Leave `sparse` out."));
    }
    elements[i] = graph.Elements(tensor);
  }
  if (elements[0] == elements[1]) return absl::OkStatus();
  return Error(absl::StrCat("tied parameters have ", elements[0], " and ", elements[1],
                            " elements; one parameter has one size."));
}

}  // namespace

absl::Status ModelGraph::Verify() const {
  absl::flat_hash_set<std::string> names;
  for (const ModelDim& dim : dims) {
    if (dim.name.empty() || !names.insert(dim.name).second) {
      return Error(absl::StrCat("dim names must be unique; `", dim.name, "` is not."));
    }
    if (dim.size < 0 || (dim.size == 0 && !dim.is_bound_by_plan())) {
      return Error(absl::StrCat("dim `", dim.name, "` has size ", dim.size, "; sizes start at 1."));
    }
  }
  for (const Body& body : bodies) {
    RETURN_IF_ERROR(BodyVerifier(*this, body).Run());
  }
  names.clear();
  for (size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    // Runs of a list whose modules differ follow one another, and so do pieces of a module.
    const bool same_path = i > 0 && segments[i - 1].path == segment.path;
    const bool goes_on =
        same_path && (segment.continues || (segment.in_list() && segments[i - 1].in_list()));
    if (segment.continues && (!same_path || segment.repeat > 1)) {
      return Error(absl::StrCat("`", segment.path, "` continues no module."));
    }
    if (segment.path.empty() || (!names.insert(segment.path).second && !goes_on)) {
      return Error(absl::StrCat("module paths must be unique; `", segment.path, "` is not."));
    }
    if (!InRange(segment.body, bodies.size())) {
      return Error(absl::StrCat("module `", segment.path, "` has no body."));
    }
    if (segment.repeat < 1) {
      return Error(absl::StrCat("module `", segment.path, "` is repeated ", segment.repeat,
                                " times; once is the least."));
    }
    if (segment.repeat > 1) {
      RETURN_IF_ERROR(CheckPorts(*this, segment, segment));
    }
    if (i > 0) {
      RETURN_IF_ERROR(CheckPorts(*this, segments[i - 1], segment));
    }
  }
  if (!segments.empty() && !bodies[segments[0].body].in_ports.empty()) {
    return Error(
        absl::StrCat("module `", segments[0].path, "` comes first, but tensors enter it."));
  }
  for (const TiedParameter& tie : tied) {
    RETURN_IF_ERROR(CheckTie(*this, tie));
  }
  return absl::OkStatus();
}

}  // namespace plancast
