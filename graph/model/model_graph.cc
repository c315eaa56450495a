#include "graph/model/model_graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/suggest.h"

namespace plancast {
namespace {

// `attn.qkv: qkv_linear(x, wq) -> (q, k, v)`
std::string OpToString(const Body& body, const OpNode& op) {
  auto name = [&](std::string* out, int t) { out->append(body.tensors[t].name); };
  std::string text =
      absl::StrCat(op.name, ": ", op.rule->name(), "(", absl::StrJoin(op.inputs, ", ", name),
                   ") -> (", absl::StrJoin(op.outputs, ", ", name), ")");
  if (!op.fusion.empty()) absl::StrAppend(&text, " fusion=", op.fusion);
  if (!op.recompute_group.empty()) absl::StrAppend(&text, " recompute=", op.recompute_group);
  return text;
}

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool SameTensor(const TensorInfo& a, const TensorInfo& b) {
  return a.name == b.name && a.kind == b.kind && a.dtype == b.dtype && a.dims == b.dims &&
         a.frozen == b.frozen && a.sparse == b.sparse && a.at_rest == b.at_rest;
}

bool SameOp(const OpNode& a, const OpNode& b) {
  return a.name == b.name && a.inputs == b.inputs && a.outputs == b.outputs &&
         a.factor_dims == b.factor_dims && a.fusion == b.fusion &&
         a.recompute_group == b.recompute_group &&
         (a.rule == b.rule || a.rule->DebugString() == b.rule->DebugString());
}

}  // namespace

bool SameBody(const Body& a, const Body& b) {
  return a.name == b.name && a.in_ports == b.in_ports && a.out_ports == b.out_ports &&
         a.in_detached == b.in_detached && a.out_detached == b.out_detached &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                    SameTensor) &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), SameOp);
}

absl::StatusOr<int> ModelGraph::FindDim(absl::string_view dim_name) const {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].name == dim_name) return static_cast<int>(d);
  }
  std::vector<std::string> names;
  for (const ModelDim& dim : dims) names.push_back(dim.name);
  return absl::NotFoundError(absl::StrCat("no dim `", dim_name, "` in model `", name, "`; it has ",
                                          JoinQuoted(names), ".", DidYouMean(dim_name, names)));
}

int64_t ModelGraph::Elements(const TensorInfo& tensor) const {
  int64_t elements = 1;
  for (int d : tensor.dims) elements *= dims[d].size;
  return elements;
}

bool ModelGraph::HasLists() const {
  return std::any_of(segments.begin(), segments.end(),
                     [](const Segment& segment) { return segment.in_list(); });
}

int64_t ModelGraph::LayerCount() const {
  const bool lists = HasLists();
  int64_t count = 0;
  for (const Segment& segment : segments) {
    if ((segment.in_list() || !lists) && !segment.continues) count += segment.repeat;
  }
  return count;
}

std::string ModelGraph::PathOf(const Segment& segment) {
  return segment.in_list() ? absl::StrCat(segment.path, ".*") : segment.path;
}

namespace {

// Elements of the parameters that `counts` names, tied ones once.
template <typename Counts>
int64_t CountParameters(const ModelGraph& graph, Counts counts) {
  int64_t count = 0;
  for (const Segment& segment : graph.segments) {
    for (const TensorInfo& tensor : graph.bodies[segment.body].tensors) {
      if (tensor.kind != TensorInfo::Kind::kParameter || !counts(tensor)) continue;
      count += segment.repeat * graph.Elements(tensor);
    }
  }
  for (const TiedParameter& tie : graph.tied) {
    const Body& body = graph.bodies[graph.segments[tie.second_segment].body];
    const TensorInfo& tensor = body.tensors[tie.second_tensor];
    if (counts(tensor)) count -= graph.Elements(tensor);
  }
  return count;
}

// Elements of sparse tables that one sample does not look up.
int64_t UnreadRows(const ModelGraph& graph) {
  int64_t count = 0;
  for (const Segment& segment : graph.segments) {
    const Body& body = graph.bodies[segment.body];
    for (const OpNode& op : body.ops) {
      int64_t looked_up = 1, table = 0, width = 0;
      for (const int t : op.inputs) {
        const TensorInfo& tensor = body.tensors[t];
        if (tensor.sparse) {
          table = graph.Elements(tensor);
          width = graph.dims[tensor.dims.back()].size;
        } else if (tensor.dtype == DType::kInt64) {
          for (const int d : tensor.dims) {
            if (!graph.dims[d].is_bound_by_plan()) looked_up *= graph.dims[d].size;
          }
        }
      }
      count += segment.repeat * std::max<int64_t>(table - looked_up * width, 0);
    }
  }
  return count;
}

}  // namespace

int64_t ModelGraph::ParameterCount() const {
  return CountParameters(*this, [](const TensorInfo&) { return true; });
}

int64_t ModelGraph::TrainedParameterCount() const {
  return CountParameters(*this, [](const TensorInfo& tensor) { return !tensor.frozen; });
}

int64_t ModelGraph::ActiveParameterCount() const {
  int64_t count = ParameterCount() - UnreadRows(*this);
  const auto experts = FindDim("experts"), topk = FindDim("topk"), slots = FindDim("slots");
  if (!experts.ok() || !topk.ok() || !slots.ok()) return count;
  for (const Segment& segment : segments) {
    const Body& body = bodies[segment.body];
    for (const OpNode& op : body.ops) {
      if (!Contains(op.factor_dims, *slots)) continue;
      for (int t : op.inputs) {
        const TensorInfo& tensor = body.tensors[t];
        if (tensor.kind != TensorInfo::Kind::kParameter || !Contains(tensor.dims, *experts)) {
          continue;
        }
        const int64_t one = Elements(tensor) / dims[*experts].size;
        count -= segment.repeat * one * (dims[*experts].size - dims[*topk].size);
      }
    }
  }
  return count;
}

ModelGraph ModelGraph::WithBatch(int64_t micro_batch, int64_t replicas) const {
  ModelGraph bound = *this;
  for (ModelDim& dim : bound.dims) {
    if (dim.name == "batch") dim.size = micro_batch;
    if (dim.name == "replicas") dim.size = replicas;
    if (dim.name == "replica_batch") dim.size = micro_batch / replicas;
  }
  return bound;
}

std::string ModelGraph::DebugString() const {
  auto print_dim = [](std::string* out, const ModelDim& dim) {
    absl::StrAppend(out, dim.name, "=", dim.size);
  };
  auto print_tensor = [this](const TensorInfo& tensor) {
    const std::string type =
        tensor.dtype == DType::kCompute ? "" : absl::StrCat(":", DTypeName(tensor.dtype));
    return absl::StrCat(
        tensor.name, type, "[",
        absl::StrJoin(tensor.dims, ",",
                      [this](std::string* out, int d) { out->append(dims[d].name); }),
        "]");
  };
  std::string text =
      absl::StrCat("model ", name, "\ndims ", absl::StrJoin(dims, " ", print_dim), "\n");
  for (const Segment& segment : segments) {
    const Body& body = bodies[segment.body];
    const std::string path = PathOf(segment);
    absl::StrAppend(&text, path, " x ", segment.repeat, " (body ", segment.body, " `", body.name,
                    "`)\n");
    for (const TensorInfo& tensor : body.tensors) {
      if (tensor.kind == TensorInfo::Kind::kActivation) continue;
      absl::StrAppend(&text, "  ",
                      tensor.kind == TensorInfo::Kind::kInput ? "input "
                      : tensor.at_rest == AtRest::kNf4        ? "frozen nf4 "
                      : tensor.frozen                         ? "frozen "
                      : tensor.sparse                         ? "sparse param "
                                                              : "param ",
                      print_tensor(tensor), "\n");
    }
    auto port = [&](std::string* out, int t) { out->append(print_tensor(body.tensors[t])); };
    if (!body.in_ports.empty()) {
      absl::StrAppend(&text, "  in ", absl::StrJoin(body.in_ports, ", ", port), "\n");
    }
    for (const OpNode& op : body.ops) {
      absl::StrAppend(&text, "  ", path, ".", OpToString(body, op), "\n");
    }
    if (!body.out_ports.empty()) {
      absl::StrAppend(&text, "  out ", absl::StrJoin(body.out_ports, ", ", port), "\n");
    }
  }
  for (const TiedParameter& tie : tied) {
    const Segment& first = segments[tie.first_segment];
    const Segment& second = segments[tie.second_segment];
    absl::StrAppend(&text, "tied ", first.path, ".",
                    bodies[first.body].tensors[tie.first_tensor].name, " = ", second.path, ".",
                    bodies[second.body].tensors[tie.second_tensor].name, "\n");
  }
  return text;
}

}  // namespace plancast
