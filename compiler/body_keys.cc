#include "compiler/body_keys.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {

std::string BodyText(const Body& body) {
  std::string text;
  for (const TensorInfo& t : body.tensors) {
    absl::StrAppend(&text, "|", t.name, static_cast<int>(t.kind), static_cast<int>(t.dtype), ":",
                    absl::StrJoin(t.dims, ","), t.frozen ? "frozen" : "", t.sparse ? "sparse" : "",
                    t.at_rest == AtRest::kNf4 ? " nf4" : "");
  }
  for (const OpNode& op : body.ops) {
    absl::StrAppend(&text, "|", op.name, "/", op.rule->DebugString(), absl::StrJoin(op.inputs, ","),
                    ">", absl::StrJoin(op.outputs, ","), "@", absl::StrJoin(op.factor_dims, ","),
                    op.fusion, ";", op.recompute_group);
  }
  const auto add_ports = [&](const std::vector<int>& ports, const std::vector<bool>& detached) {
    absl::StrAppend(&text, "|", absl::StrJoin(ports, ","), "!", absl::StrJoin(detached, ""));
  };
  add_ports(body.in_ports, body.in_detached);
  add_ports(body.out_ports, body.out_detached);
  return text;
}

std::string StepsKey(const BoundBody& body, const CompileRequest& request,
                     const std::string& text) {
  std::string key = absl::StrCat("steps|", request.profile->StructureKey(), "|");
  for (const OpReplay& replay : body.replays) absl::StrAppend(&key, replay.DebugString(), ",");
  return absl::StrCat(key, text);
}

bool OverlapsProducts(const PlanOptions& options) {
  return options.overlap.count(Overlap::kTp) > 0 && options.tp > 1 && options.sp;
}

bool DelaysExperts(const PlanOptions& options) { return options.overlap.count(Overlap::kEp) > 0; }

bool HidesContext(const PlanOptions& options) {
  return options.overlap.count(Overlap::kCp) > 0 && options.cp > 1;
}

std::string DealKey(const ModelGraph& graph, const PlanOptions& o) {
  if (graph.documents.empty()) return "";
  return absl::StrCat("documents:", absl::StrJoin(graph.documents, "+"), "/", o.dp, "/", o.cp, "/",
                      o.micro_batch, "/", o.micro_batches, "/", kCpTypeNames[o.cp_type], ",");
}

std::string BodyKey(const BoundModel& bound, const BoundBody& body, const CompileRequest& request,
                    bool any_dp, const std::string& text) {
  const ModelGraph& graph = bound.graph;
  std::string key =
      absl::StrCat("body|", DTypeName(request.dtype), "|", request.profile->StructureKey(), "|");
  for (const MeshAxis& axis : bound.mesh.axes()) {
    const bool cuts = axis.name == "pp" && request.options->spreads_vocabulary();
    const bool shared = (axis.name == "pp" && !cuts) || (axis.name == "dp" && any_dp);
    absl::StrAppend(&key, axis.name, "=");
    if (shared) {
      absl::StrAppend(&key, axis.size > 1 ? "many," : "1,");
    } else {
      absl::StrAppend(&key, axis.size, ",");
    }
  }
  absl::StrAppend(&key, request.options->ep, ",", request.options->expert_tp(), ",",
                  OverlapsProducts(*request.options), DelaysExperts(*request.options), ",",
                  HidesContext(*request.options) ? "cp," : "",
                  request.options->splits_backward() ? "split," : "",
                  request.options->spreads_vocabulary()
                      ? kVocabParallelNames[request.options->vocab_parallel]
                      : "");
  absl::StrAppend(&key, absl::StrJoin(bound.load.skew.loads, "+"), ",");
  absl::StrAppend(&key, DealKey(graph, *request.options));
  const int64_t dp = std::max<int64_t>(request.options->dp, 1);
  for (const ModelDim& dim : graph.dims) {
    absl::StrAppend(&key, dim.name, ":", dim.name == "batch" ? dim.size / dp : dim.size, ",");
  }
  for (size_t o = 0; o < body.splits.size(); ++o) {
    absl::StrAppend(&key, ";", body.replays[o].DebugString());
    for (const std::vector<int>& axes : body.splits[o].axes) {
      absl::StrAppend(&key, "/", absl::StrJoin(axes, ","));
    }
    for (const ShardPattern pattern : body.splits[o].patterns) {
      absl::StrAppend(&key, pattern == ShardPattern::kMirrored ? "z" : "b");
    }
    for (const auto& [axis, coordinate] : body.OnOf(static_cast<int>(o))) {
      absl::StrAppend(&key, "@", axis, ":", coordinate);
    }
  }
  for (const PieceRun& run : body.pieces) absl::StrAppend(&key, ";", run.DebugString());
  for (const auto& [loop, source] : body.loops) absl::StrAppend(&key, ";", loop.DebugString());
  for (const BoundRewrite& rewrite : body.rewrites) {
    absl::StrAppend(&key, ";", rewrite.op, ":", rewrite.said.DebugString());
  }
  return absl::StrCat(key, text);
}

std::string LayoutsKey(const std::vector<Layout>& layouts, const DeviceMesh& mesh) {
  return absl::StrJoin(layouts, ";", [&](std::string* out, const Layout& layout) {
    absl::StrAppend(out, layout.DebugString(mesh));
  });
}

}  // namespace plancast
