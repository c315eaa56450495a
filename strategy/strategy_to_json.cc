#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "strategy/byte_size.h"
#include "strategy/plan_names.h"
#include "strategy/strategy_tree.h"

// A tree as JSON.

namespace plancast {
namespace {

std::string Quote(absl::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", c);
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string StagesJson(const std::vector<StageNodes>& stages) {
  if (stages.empty()) return "";
  std::vector<std::string> lines;
  for (const StageNodes& stage : stages) {
    std::vector<std::string> nodes;
    for (const std::string& node : stage.nodes) nodes.push_back(Quote(node));
    std::string line = absl::StrCat("    {\"nodes\": [", absl::StrJoin(nodes, ", "), "]");
    if (const auto& devices = stage.place.devices; devices.has_value()) {
      absl::StrAppend(&line, ", \"devices\": ", Quote(devices->DebugString()));
    }
    if (!stage.place.mesh.empty()) {
      std::vector<std::string> axes;
      for (const auto& [axis, size] : stage.place.mesh) {
        axes.push_back(absl::StrCat(Quote(axis), ": ", size));
      }
      absl::StrAppend(&line, ", \"mesh\": {", absl::StrJoin(axes, ", "), "}");
    }
    if (const auto mb = stage.place.micro_batch) absl::StrAppend(&line, ", \"mb\": ", *mb);
    lines.push_back(line + "}");
  }
  return absl::StrCat(",\n  \"stages\": [\n", absl::StrJoin(lines, ",\n"), "\n  ]");
}

std::string HomeJson(const HomeDirective& home) {
  std::vector<std::string> kinds;
  for (const HomeKind kind : kHomeKindNames.Values()) {
    if (!home[kind].has_value()) continue;
    const std::string said = Quote(PrintHome(kind, *home[kind]));
    kinds.push_back(absl::StrCat(Quote(kHomeKindNames[kind]), ": ", said));
  }
  const std::optional<Home>& state = home[HomeKind::kState];
  if (kinds.size() == 1 && state.has_value()) return Quote(PrintHome(HomeKind::kState, *state));
  return absl::StrCat("{", absl::StrJoin(kinds, ", "), "}");
}

// `communicate`, `rotate` and `pieces`.
void AddLoop(const LoopDirective& loop, std::vector<std::string>* fields) {
  std::vector<std::string> tensors, turns;
  for (const auto& [tensor, at] : loop.communicate) {
    tensors.push_back(absl::StrCat(Quote(tensor), ": ", Quote(at)));
  }
  for (const auto& [at, axes] : loop.rotate) {
    std::vector<std::string> over;
    for (const std::string& axis : axes) over.push_back(Quote(axis));
    turns.push_back(absl::StrCat(Quote(at), ": [", absl::StrJoin(over, ", "), "]"));
  }
  if (!tensors.empty()) {
    fields->push_back(absl::StrCat("\"communicate\": {", absl::StrJoin(tensors, ", "), "}"));
  }
  std::vector<std::string> pieces;
  for (const auto& [at, count] : loop.pieces) {
    pieces.push_back(absl::StrCat(Quote(at), ": ", count));
  }
  if (!pieces.empty()) {
    fields->push_back(absl::StrCat("\"pieces\": {", absl::StrJoin(pieces, ", "), "}"));
  }
  if (!turns.empty()) {
    fields->push_back(absl::StrCat("\"rotate\": {", absl::StrJoin(turns, ", "), "}"));
  }
}

std::string NodeJson(const Directives& node) {
  std::vector<std::string> fields;
  if (!node.split.empty()) {
    std::vector<std::string> splits;
    for (const SplitDirective& split : node.split) {
      std::vector<std::string> dims;
      for (const std::string& dim : split.Entries()) dims.push_back(Quote(dim));
      splits.push_back(absl::StrCat(Quote(split.axis), ": [", absl::StrJoin(dims, ", "), "]"));
    }
    fields.push_back(absl::StrCat("\"split\": {", absl::StrJoin(splits, ", "), "}"));
  }
  if (!node.on.empty()) {
    std::vector<std::string> axes;
    for (const OnDirective& on : node.on) {
      const std::string ranks = on.parts == 0 ? PrintOn(on) : Quote(PrintOn(on));
      axes.push_back(absl::StrCat(Quote(on.axis), ": ", ranks));
    }
    fields.push_back(absl::StrCat("\"on\": {", absl::StrJoin(axes, ", "), "}"));
  }
  if (node.recompute.has_value()) {
    fields.push_back(absl::StrCat("\"recompute\": ",
                                  Quote(PrintRecompute(*node.recompute, node.recompute_ops))));
  }
  if (const int64_t count = node.pieces.micro_batches; count > 0) {
    fields.push_back(absl::StrCat("\"micro_batches\": ", count));
  }
  if (const auto& most = node.pieces.max_ongoing; !most.empty()) {
    const std::string list = absl::StrJoin(most, ", ");
    fields.push_back(
        absl::StrCat("\"max_ongoing\": ", most.size() > 1 ? absl::StrCat("[", list, "]") : list));
  }
  AddLoop(node.loop, &fields);
  if (!node.compute_at.empty()) {
    fields.push_back(absl::StrCat("\"compute_at\": ", Quote(node.compute_at)));
  }
  if (!node.rewrites.empty()) {
    std::vector<std::string> said;
    for (const Rewrite& rewrite : node.rewrites) said.push_back(Quote(rewrite.DebugString()));
    fields.push_back(absl::StrCat("\"rewrite\": [", absl::StrJoin(said, ", "), "]"));
  }
  if (!node.home.empty()) fields.push_back(absl::StrCat("\"home\": ", HomeJson(node.home)));
  if (node.bucket_bytes.has_value()) {
    fields.push_back(absl::StrCat("\"bucket\": ", Quote(PrintByteSize(*node.bucket_bytes))));
  }
  if (node.unit_layers.has_value()) {
    fields.push_back(absl::StrCat("\"unit\": ", *node.unit_layers));
  }
  if (node.train.has_value()) {
    fields.push_back(absl::StrCat("\"train\": ", *node.train ? "true" : "false"));
  }
  if (node.lora.has_value()) {
    std::vector<std::string> on;
    for (const std::string& op : node.lora->on) on.push_back(Quote(op));
    std::string lora = absl::StrCat("\"lora\": {\"rank\": ", node.lora->rank, ", \"on\": [",
                                    absl::StrJoin(on, ", "), "]");
    if (node.lora->dropout > 0) {
      absl::StrAppendFormat(&lora, ", \"dropout\": %.17g", node.lora->dropout);
    }
    if (!node.lora->base.empty()) {
      absl::StrAppend(&lora, ", \"base\": ", Quote(node.lora->base));
    }
    fields.push_back(lora + "}");
  }
  return absl::StrCat("{", absl::StrJoin(fields, ", "), "}");
}

std::string IdleJson(const std::vector<DeviceRange>& idle) {
  if (idle.empty()) return "";
  std::vector<std::string> ranges;
  for (const DeviceRange& range : idle) ranges.push_back(Quote(range.DebugString()));
  return absl::StrCat(",\n  \"idle\": ", idle.size() == 1 ? "" : "[", absl::StrJoin(ranges, ", "),
                      idle.size() == 1 ? "" : "]");
}

}  // namespace

std::string StrategyTree::ToJson() const {
  std::vector<std::string> nodes;
  for (const auto& [path, node] : nodes_) {
    nodes.push_back(absl::StrCat("    ", Quote(path), ": ", NodeJson(node)));
  }
  std::vector<std::string> loads;
  for (const auto& [dim, numbers] : loads_) {
    loads.push_back(absl::StrCat(Quote(dim), ": [",
                                 absl::StrJoin(numbers, ", ",
                                               [](std::string* out, double number) {
                                                 absl::StrAppendFormat(out, "%.17g", number);
                                               }),
                                 "]"));
  }
  return absl::StrCat(
      "{\n  \"plan\": ", Quote(PrintShortForm(plan_)), ",\n  \"nodes\": {",
      nodes.empty() ? "" : absl::StrCat("\n", absl::StrJoin(nodes, ",\n"), "\n  "), "}",
      loads.empty() ? "" : absl::StrCat(",\n  \"load\": {", absl::StrJoin(loads, ", "), "}"),
      StagesJson(stages_), IdleJson(idle_), "\n}\n");
}

}  // namespace plancast
