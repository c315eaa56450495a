#include <google/protobuf/struct.pb.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "proto/json.h"
#include "strategy/byte_size.h"
#include "strategy/strategy_tree.h"

// The JSON of a strategy tree, read by hand from a generic value: its keys are
// paths and axes, which a message type cannot say.

namespace plancast {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

absl::Status Wrong(absl::string_view place, absl::string_view right) {
  return absl::InvalidArgumentError(absl::StrCat("`", place, "` must be ", right, "."));
}

absl::StatusOr<std::string> Text(const Value& value, absl::string_view place) {
  if (value.kind_case() != Value::kStringValue) return Wrong(place, "a string");
  return value.string_value();
}

absl::StatusOr<const Struct*> Object(const Value& value, absl::string_view place,
                                     absl::string_view example) {
  if (value.kind_case() != Value::kStructValue) {
    return Wrong(place, absl::StrCat("an object, as in ", example));
  }
  return &value.struct_value();
}

absl::Status CheckKeys(const Struct& object, absl::string_view place, const Words& known) {
  for (const auto& [key, value] : object.fields()) {
    const auto& words = known.views();
    if (std::find(words.begin(), words.end(), key) != words.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat("no key `", key, "` ", place, "; the keys are ",
                                                   JoinQuoted(known), ".", DidYouMean(key, known)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Texts(const Value& value, absl::string_view place,
                                               absl::string_view right) {
  if (value.kind_case() == Value::kStringValue) {
    return std::vector<std::string>{value.string_value()};
  }
  if (value.kind_case() != Value::kListValue) {
    return Wrong(place, right);
  }
  std::vector<std::string> texts;
  for (const Value& element : value.list_value().values()) {
    ASSIGN_OR_RETURN(std::string text, Text(element, place));
    texts.push_back(std::move(text));
  }
  return texts;
}

absl::StatusOr<std::vector<std::string>> Dims(const Value& value, absl::string_view place) {
  return Texts(value, place, "a list of dims, as in [\"heads\", \"ffn\"]");
}

// A JSON object has no order: slowest axis of the default mesh first, others
// after it by name.
int AxisRank(absl::string_view axis) {
  const std::vector<absl::string_view> order = {"pp", "dp", "ep", "cp", "tp"};
  return static_cast<int>(std::find(order.begin(), order.end(), axis) - order.begin());
}

absl::Status ReadSplit(const Value& value, absl::string_view place, Directives& node) {
  ASSIGN_OR_RETURN(const Struct* axes, Object(value, place, "{\"tp\": [\"heads\"]}"));
  std::vector<SplitDirective> splits;
  for (const auto& [axis, dims_value] : axes->fields()) {
    const std::string field = absl::StrCat(place, ".", axis);
    ASSIGN_OR_RETURN(const std::vector<std::string> dims, Dims(dims_value, field));
    ASSIGN_OR_RETURN(splits.emplace_back(), SplitDirective::Parse(axis, dims),
                     _ << "`" << field << "`");
  }
  std::sort(splits.begin(), splits.end(), [](const SplitDirective& a, const SplitDirective& b) {
    return std::make_pair(AxisRank(a.axis), a.axis) < std::make_pair(AxisRank(b.axis), b.axis);
  });
  for (SplitDirective& split : splits) node.SetSplit(std::move(split));
  return absl::OkStatus();
}

// Ranks of axes: a number or a part.
absl::Status ReadOn(const Value& value, absl::string_view place, Directives& node) {
  ASSIGN_OR_RETURN(const Struct* axes, Object(value, place, "{\"dp\": 0} or {\"dp\": \"1/2\"}"));
  for (const auto& [axis, said] : axes->fields()) {
    const std::string field = absl::StrCat(place, ".", axis);
    std::string text;
    if (said.kind_case() == Value::kNumberValue) {
      text = absl::StrCat(said.number_value());
    } else {
      ASSIGN_OR_RETURN(text, Text(said, field));
    }
    ASSIGN_OR_RETURN(OnDirective on, ParseOn(axis, text), _ << "`" << field << "`");
    node.SetOn(std::move(on));
  }
  return absl::OkStatus();
}

// A text is the home of the state.
absl::Status ReadHome(const Value& value, absl::string_view place, Directives& node) {
  const auto read = [&](HomeKind kind, const Value& said, absl::string_view where) -> absl::Status {
    ASSIGN_OR_RETURN(const std::string text, Text(said, where));
    ASSIGN_OR_RETURN(node.home[kind], ParseHome(kind, text), _ << "`" << where << "`");
    return absl::OkStatus();
  };
  if (value.kind_case() == Value::kStringValue) return read(HomeKind::kState, value, place);
  ASSIGN_OR_RETURN(const Struct* kinds, Object(value, place, "{\"weights\": \"shard(dp)\"}"));
  if (kinds->fields().count("buffers") > 0) {
    return absl::UnimplementedError(absl::StrCat(
        "not supported yet: a home of `buffers` in `", place, "`: tables and running statistics ",
        "stay on the device. Leave it out; the keys are ", JoinQuoted(kHomeKindNames), "."));
  }
  RETURN_IF_ERROR(CheckKeys(*kinds, absl::StrCat("in `", place, "`"), kHomeKindNames));
  for (const auto& [kind, said] : kinds->fields()) {
    RETURN_IF_ERROR(read(*kHomeKindNames.Find(kind), said, absl::StrCat(place, ".", kind)));
  }
  RETURN_IF_ERROR(node.home.Check()) << "`" << place << "`";
  return absl::OkStatus();
}

absl::StatusOr<double> Number(const Value& value, absl::string_view place) {
  if (value.kind_case() != Value::kNumberValue) return Wrong(place, "a number");
  return value.number_value();
}

absl::StatusOr<int64_t> Count(const Value& value, absl::string_view place) {
  const double number = value.kind_case() == Value::kNumberValue ? value.number_value() : -1;
  if (number < 1 || number > 1e9 || number != static_cast<double>(static_cast<int64_t>(number))) {
    return Wrong(place, "a whole number above 0");
  }
  return static_cast<int64_t>(number);
}

absl::StatusOr<LoraDirective> ReadLora(const Value& value, absl::string_view place) {
  ASSIGN_OR_RETURN(const Struct* object,
                   Object(value, place, "{\"rank\": 16, \"on\": [\"qkv\", \"proj\"]}"));
  RETURN_IF_ERROR(
      CheckKeys(*object, absl::StrCat("in `", place, "`"), {"rank", "on", "dropout", "base"}));
  LoraDirective lora;
  for (const auto& [key, said] : object->fields()) {
    const std::string field = absl::StrCat(place, ".", key);
    if (key == "on") {
      ASSIGN_OR_RETURN(lora.on, Texts(said, field, "a list of ops, as in [\"qkv\", \"proj\"]"));
      continue;
    }
    if (key == "base") {
      ASSIGN_OR_RETURN(lora.base, Text(said, field));
      continue;
    }
    ASSIGN_OR_RETURN(const double number, Number(said, field));
    if (key == "dropout") {
      lora.dropout = number + 0.0;  // -0 is 0
    } else if (number != std::floor(number) || std::abs(number) > 1e9) {
      return Wrong(field, "a whole number");
    } else {
      lora.rank = static_cast<int64_t>(number);
    }
  }
  RETURN_IF_ERROR(lora.Check()) << "`" << place << "`";
  return lora;
}

// A number, or one for each stage.
absl::Status ReadOngoing(const Value& value, const std::string& field, Directives& node) {
  if (value.kind_case() != Value::kListValue) {
    ASSIGN_OR_RETURN(node.pieces.max_ongoing.emplace_back(), Count(value, field));
  }
  for (const Value& element : value.list_value().values()) {
    ASSIGN_OR_RETURN(node.pieces.max_ongoing.emplace_back(), Count(element, field));
  }
  return absl::OkStatus();
}

// By tensor the loop in which its parts come: a factor, or {"at": a factor}.
absl::Status ReadCommunicate(const Value& value, const std::string& place, Directives& node) {
  ASSIGN_OR_RETURN(const Struct* tensors, Object(value, place, "{\"k\": \"t\", \"v\": \"t\"}"));
  for (const auto& [tensor, said] : tensors->fields()) {
    const std::string field = absl::StrCat(place, ".", tensor);
    const Value* at = &said;
    if (said.kind_case() == Value::kStructValue) {
      RETURN_IF_ERROR(CheckKeys(said.struct_value(), absl::StrCat("in `", field, "`"), {"at"}));
      const auto found = said.struct_value().fields().find("at");
      if (found == said.struct_value().fields().end()) return Wrong(field, "{\"at\": LOOP}");
      at = &found->second;
    }
    ASSIGN_OR_RETURN(node.loop.communicate[tensor], Text(*at, field));
  }
  return absl::OkStatus();
}

// By loop the axes over which parts are handed on.
absl::Status ReadRotate(const Value& value, const std::string& place, Directives& node) {
  ASSIGN_OR_RETURN(const Struct* loops, Object(value, place, "{\"t\": \"cp\"}"));
  for (const auto& [loop, said] : loops->fields()) {
    ASSIGN_OR_RETURN(node.loop.rotate[loop], Texts(said, absl::StrCat(place, ".", loop),
                                                   "an axis, or a list of them, as in [\"cp\"]"));
  }
  return absl::OkStatus();
}

// By loop how many pieces it is cut in.
absl::Status ReadPieces(const Value& value, const std::string& place, Directives& node) {
  ASSIGN_OR_RETURN(const Struct* loops, Object(value, place, "{\"s\": 4}"));
  for (const auto& [loop, said] : loops->fields()) {
    ASSIGN_OR_RETURN(node.loop.pieces[loop], Count(said, absl::StrCat(place, ".", loop)));
  }
  return absl::OkStatus();
}

absl::Status ReadRewrites(const Value& value, const std::string& place, Directives& node) {
  ASSIGN_OR_RETURN(const std::vector<std::string> said, Texts(value, place,
                                                              "a rewrite, or a list of them, as in "
                                                              "[\"split(all_reduce)\"]"));
  for (const std::string& text : said) {
    ASSIGN_OR_RETURN(node.rewrites.emplace_back(), ParseRewrite(text), _ << "`" << place << "`");
  }
  return absl::OkStatus();
}

absl::Status ReadNode(const Struct& object, absl::string_view path, Directives& node) {
  const std::string place = absl::StrCat("nodes[\"", path, "\"]");
  RETURN_IF_ERROR(CheckKeys(
      object, absl::StrCat("in ", place),
      {"split", "on", "recompute", "home", "bucket", "unit", "train", "lora", "micro_batches",
       "max_ongoing", "communicate", "rotate", "pieces", "rewrite", "compute_at"}));
  for (const auto& [key, value] : object.fields()) {
    const std::string field = absl::StrCat(place, ".", key);
    if (key == "split") {
      RETURN_IF_ERROR(ReadSplit(value, field, node));
      continue;
    }
    if (key == "on") {
      RETURN_IF_ERROR(ReadOn(value, field, node));
      continue;
    }
    if (key == "train") {
      if (value.kind_case() != Value::kBoolValue) return Wrong(field, "true or false");
      node.train = value.bool_value();
      continue;
    }
    if (key == "lora") {
      ASSIGN_OR_RETURN(node.lora, ReadLora(value, field));
      continue;
    }
    if (key == "unit") {
      ASSIGN_OR_RETURN(node.unit_layers, Count(value, field));
      continue;
    }
    if (key == "micro_batches") {
      ASSIGN_OR_RETURN(node.pieces.micro_batches, Count(value, field));
      continue;
    }
    if (key == "max_ongoing") {
      RETURN_IF_ERROR(ReadOngoing(value, field, node));
      continue;
    }
    if (key == "communicate") {
      RETURN_IF_ERROR(ReadCommunicate(value, field, node));
      continue;
    }
    if (key == "rotate") {
      RETURN_IF_ERROR(ReadRotate(value, field, node));
      continue;
    }
    if (key == "rewrite") {
      RETURN_IF_ERROR(ReadRewrites(value, field, node));
      continue;
    }
    if (key == "pieces") {
      RETURN_IF_ERROR(ReadPieces(value, field, node));
      continue;
    }
    if (key == "home") {
      RETURN_IF_ERROR(ReadHome(value, field, node));
      continue;
    }
    ASSIGN_OR_RETURN(const std::string text, Text(value, field));
    if (key == "compute_at") {
      node.compute_at = text;
    } else if (key == "recompute") {
      RETURN_IF_ERROR(node.SetRecompute(text)) << "`" << field << "`";
    } else {
      ASSIGN_OR_RETURN(node.bucket_bytes, ParseByteSize(text), _ << "`" << field << "`");
    }
  }
  RETURN_IF_ERROR(node.loop.Settle()) << place;
  return absl::OkStatus();
}

absl::Status ReadLoads(const Value& value, StrategyTree& tree) {
  constexpr absl::string_view kExample = "{\"experts\": [1.5, 0.5]}";
  ASSIGN_OR_RETURN(const Struct* dims, Object(value, "load", kExample));
  for (const auto& [dim, list] : dims->fields()) {
    std::vector<double> loads;
    for (const Value& element : list.list_value().values()) {
      if (element.kind_case() == Value::kNumberValue)
        loads.push_back(element.number_value() + 0.0);  // -0 is 0
    }
    if (loads.empty() || static_cast<int>(loads.size()) != list.list_value().values_size()) {
      return Wrong(absl::StrCat("load.", dim), absl::StrCat("a list of numbers, as in ", kExample));
    }
    tree.SetLoad(dim, std::move(loads));
  }
  return absl::OkStatus();
}

// A path, or a list of them.
absl::StatusOr<std::vector<std::string>> Paths(const Value& value, absl::string_view place) {
  if (value.kind_case() == Value::kStringValue) {
    return std::vector<std::string>{value.string_value()};
  }
  if (value.kind_case() != Value::kListValue) {
    return Wrong(place, "a path or a list of paths, as in [\"embedding\", \"layers[0:8]\"]");
  }
  std::vector<std::string> paths;
  for (const Value& element : value.list_value().values()) {
    ASSIGN_OR_RETURN(std::string path, Text(element, place));
    paths.push_back(std::move(path));
  }
  return paths;
}

// `mesh`, `mb` and `devices` of a stage.
absl::StatusOr<StageMeshSpec> ReadPlace(const Struct& stage, absl::string_view place) {
  StageMeshSpec where;
  for (const auto& [key, value] : stage.fields()) {
    const std::string field = absl::StrCat(place, ".", key);
    if (key == "devices") {
      ASSIGN_OR_RETURN(const std::string text, Text(value, field));
      ASSIGN_OR_RETURN(where.devices, DeviceRange::Parse(text), _ << "`" << field << "`");
    } else if (key == "mb") {
      ASSIGN_OR_RETURN(where.micro_batch, Count(value, field));
    } else if (key == "mesh") {
      ASSIGN_OR_RETURN(const Struct* axes, Object(value, field, "{\"dp\": 4, \"tp\": 4}"));
      for (const auto& [axis, size] : axes->fields()) {
        ASSIGN_OR_RETURN(where.mesh[axis], Count(size, absl::StrCat(field, ".", axis)));
      }
    }
  }
  return where;
}

absl::Status ReadStages(const Value& value, StrategyTree& tree) {
  constexpr absl::string_view kExample = "[{\"nodes\": \"layers[0:8]\"}]";
  if (value.kind_case() != Value::kListValue || value.list_value().values().empty()) {
    return Wrong("stages", absl::StrCat("a list of stages, as in ", kExample));
  }
  std::vector<StageNodes> stages;
  for (const Value& element : value.list_value().values()) {
    const std::string place = absl::StrCat("stages[", stages.size(), "]");
    ASSIGN_OR_RETURN(const Struct* stage, Object(element, place, "{\"nodes\": \"layers[0:8]\"}"));
    RETURN_IF_ERROR(
        CheckKeys(*stage, absl::StrCat("in `", place, "`"), {"nodes", "devices", "mesh", "mb"}));
    const auto nodes = stage->fields().find("nodes");
    if (nodes == stage->fields().end()) return Wrong(place, "an object with `nodes`");
    ASSIGN_OR_RETURN(std::vector<std::string> paths,
                     Paths(nodes->second, absl::StrCat(place, ".nodes")));
    ASSIGN_OR_RETURN(StageMeshSpec where, ReadPlace(*stage, place));
    stages.push_back({std::move(paths), std::move(where)});
  }
  return tree.SetStages(std::move(stages));
}

absl::Status ReadIdle(const Value& value, StrategyTree& tree) {
  std::vector<DeviceRange> idle;
  const auto add = [&](const Value& text, absl::string_view place) -> absl::Status {
    ASSIGN_OR_RETURN(const std::string devices, Text(text, place));
    ASSIGN_OR_RETURN(idle.emplace_back(), DeviceRange::Parse(devices), _ << "`" << place << "`");
    return absl::OkStatus();
  };
  if (value.kind_case() != Value::kListValue) {
    RETURN_IF_ERROR(add(value, "idle"));
  } else {
    for (const Value& text : value.list_value().values()) {
      RETURN_IF_ERROR(add(text, absl::StrCat("idle[", idle.size(), "]")));
    }
  }
  return tree.SetIdle(std::move(idle));
}

absl::StatusOr<StrategyTree> ReadTree(const Struct& object) {
  RETURN_IF_ERROR(CheckKeys(object, "in a strategy", {"plan", "nodes", "load", "stages", "idle"}));
  ShortForm form;
  if (const auto plan = object.fields().find("plan"); plan != object.fields().end()) {
    ASSIGN_OR_RETURN(const std::string text, Text(plan->second, "plan"));
    ASSIGN_OR_RETURN(form, ParseShortForm(text));
  }
  StrategyTree tree = StrategyTree::FromShortForm(form);
  if (const auto load = object.fields().find("load"); load != object.fields().end()) {
    RETURN_IF_ERROR(ReadLoads(load->second, tree));
  }
  if (const auto stages = object.fields().find("stages"); stages != object.fields().end()) {
    RETURN_IF_ERROR(ReadStages(stages->second, tree));
  }
  if (const auto idle = object.fields().find("idle"); idle != object.fields().end()) {
    RETURN_IF_ERROR(ReadIdle(idle->second, tree));
  }
  const auto nodes = object.fields().find("nodes");
  if (nodes == object.fields().end()) return tree;
  ASSIGN_OR_RETURN(const Struct* paths, Object(nodes->second, "nodes",
                                               "{\"layers.*.attn\": {\"recompute\": \"full\"}}"));
  for (const auto& [path, value] : paths->fields()) {
    ASSIGN_OR_RETURN(const Struct* said,
                     Object(value, absl::StrCat("nodes[\"", path, "\"]"),
                            "{\"split\": {\"tp\": [\"heads\"]}, \"recompute\": \"full\"}"));
    const size_t before = tree.nodes().size();
    ASSIGN_OR_RETURN(Directives * node, tree.Node(path));
    if (tree.nodes().size() == before) {
      return absl::InvalidArgumentError(absl::StrCat("`nodes` has `", path, "` twice, written in ",
                                                     "two ways. Say all of it at one of them."));
    }
    RETURN_IF_ERROR(ReadNode(*said, path, *node));
  }
  return tree;
}

}  // namespace

absl::StatusOr<StrategyTree> StrategyTree::FromJson(absl::string_view json,
                                                    absl::string_view what) {
  ASSIGN_OR_RETURN(const Struct object, ParseJson<Struct>(json, what));
  ASSIGN_OR_RETURN(StrategyTree tree, ReadTree(object), _ << what);
  return tree;
}

}  // namespace plancast
