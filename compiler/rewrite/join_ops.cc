#include "compiler/rewrite/join_ops.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "graph/rule/join_rules.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The ops of a body that become one, in order, the last of which is the one it is computed at.
struct Group {
  std::set<int> ops;
  std::string source;
};

class BodyJoiner {
 public:
  explicit BodyJoiner(Body body) : body_(std::move(body)) {}

  // By the op that they are computed at.
  absl::StatusOr<std::map<int, Group>> Groups(const std::string& path, const StrategyTree& tree) {
    std::map<int, Group> groups;
    for (size_t o = 0; o < body_.ops.size(); ++o) {
      ASSIGN_OR_RETURN(const Resolved told,
                       tree.Resolve(absl::StrCat(path, ".", body_.ops[o].name)));
      if (told.compute_at.empty()) continue;
      ASSIGN_OR_RETURN(const int at, Find(told.compute_at, told.compute_at_source));
      Group& group = groups[at];
      group.source = told.compute_at_source;
      group.ops.insert(static_cast<int>(o));
      group.ops.insert(at);
    }
    return groups;
  }

  absl::StatusOr<Body> Run(const std::map<int, Group>& groups) {
    std::set<int> gone;
    for (const auto& [at, group] : groups) {
      const absl::Status joined = Join(at, group);
      if (!joined.ok()) {
        return absl::Status(joined.code(),
                            absl::StrCat("`", group.source, "`: `compute_at: ", body_.ops[at].name,
                                         "`: ", joined.message()));
      }
      for (const int op : group.ops) {
        if (op != at) gone.insert(op);
      }
    }
    std::vector<OpNode> ops;
    for (size_t o = 0; o < body_.ops.size(); ++o) {
      if (gone.count(static_cast<int>(o)) == 0) ops.push_back(std::move(body_.ops[o]));
    }
    body_.ops = std::move(ops);
    DropUnmade();
    return std::move(body_);
  }

 private:
  absl::StatusOr<int> Find(const std::string& name, const std::string& source) const {
    std::vector<std::string> known;
    for (size_t o = 0; o < body_.ops.size(); ++o) {
      known.push_back(body_.ops[o].name);
      if (known.back() == name || absl::EndsWith(known.back(), absl::StrCat(".", name))) {
        return static_cast<int>(o);
      }
    }
    return absl::InvalidArgumentError(absl::StrCat("`", source, "`: `compute_at: ", name,
                                                   "`: no such op in the module.",
                                                   DidYouMean(name, known)));
  }

  // Whether ops outside of the group, or the next module, read a tensor.
  bool ReadOutside(int tensor, const std::set<int>& group) const {
    if (Contains(body_.out_ports, tensor)) return true;
    for (size_t o = 0; o < body_.ops.size(); ++o) {
      if (group.count(static_cast<int>(o)) == 0 && Contains(body_.ops[o].inputs, tensor)) {
        return true;
      }
    }
    return false;
  }

  absl::Status Join(int at, const Group& group) {
    if (*group.ops.rbegin() != at) {
      return absl::InvalidArgumentError(absl::StrCat("`", body_.ops[*group.ops.rbegin()].name,
                                                     "` runs after it. Say it of the last one."));
    }
    OpNode joined = body_.ops[*group.ops.begin()];
    for (auto next = std::next(group.ops.begin()); next != group.ops.end(); ++next) {
      for (int between = *std::prev(next) + 1; between < *next; ++between) {
        for (const int tensor : body_.ops[between].inputs) {
          if (!Contains(joined.outputs, tensor)) continue;
          return absl::InvalidArgumentError(absl::StrCat(
              "`", body_.ops[between].name, "` reads `", body_.tensors[tensor].name,
              "` before all of them have run. Name it too, or leave out what follows it."));
        }
      }
      ASSIGN_OR_RETURN(joined, Together(joined, body_.ops[*next], group.ops));
    }
    body_.ops[at] = std::move(joined);
    return absl::OkStatus();
  }

  absl::StatusOr<OpNode> Together(const OpNode& first, const OpNode& second,
                                  const std::set<int>& group) const {
    RuleJoin join;
    for (size_t i = 0; i < second.inputs.size(); ++i) {
      const auto made = std::find(first.outputs.begin(), first.outputs.end(), second.inputs[i]);
      if (made == first.outputs.end()) continue;
      const int output = static_cast<int>(made - first.outputs.begin());
      join.links.emplace_back(output, static_cast<int>(i));
      if (ReadOutside(second.inputs[i], group) || ReadLater(second, second.inputs[i], group)) {
        join.kept.push_back(output);
      }
    }
    if (join.links.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", second.name, "` reads nothing of what `", first.name, "` makes."));
    }
    ASSIGN_OR_RETURN(OpRule rule, JoinRules(*first.rule, *second.rule, join));
    OpNode joined = second;
    joined.inputs = first.inputs;
    joined.outputs.clear();
    std::set<int> linked_outputs, linked_inputs;
    for (const auto& [output, input] : join.links) {
      linked_outputs.insert(output);
      linked_inputs.insert(input);
    }
    for (size_t o = 0; o < first.outputs.size(); ++o) {
      const int output = static_cast<int>(o);
      if (linked_outputs.count(output) == 0 || Contains(join.kept, output)) {
        joined.outputs.push_back(first.outputs[o]);
      }
    }
    for (size_t i = 0; i < second.inputs.size(); ++i) {
      if (linked_inputs.count(static_cast<int>(i)) == 0) joined.inputs.push_back(second.inputs[i]);
    }
    joined.outputs.insert(joined.outputs.end(), second.outputs.begin(), second.outputs.end());
    // The factors of the second come first, then those of the first that are no dims between.
    for (size_t f = 0; f < first.factor_dims.size(); ++f) {
      if (IsLinked(first, static_cast<int>(f), join)) continue;
      joined.factor_dims.push_back(first.factor_dims[f]);
    }
    joined.rule = std::make_shared<const OpRule>(std::move(rule));
    return joined;
  }

  // Whether ops of the group behind `now` read the tensor.
  bool ReadLater(const OpNode& now, int tensor, const std::set<int>& group) const {
    bool behind = false;
    for (const int op : group) {
      if (behind && Contains(body_.ops[op].inputs, tensor)) return true;
      behind = behind || body_.ops[op].name == now.name;
    }
    return false;
  }

  static bool IsLinked(const OpNode& first, int factor, const RuleJoin& join) {
    return std::any_of(join.links.begin(), join.links.end(), [&](const auto& link) {
      const OpRule& rule = *first.rule;
      return Contains(rule.tensors()[rule.outputs()[link.first]].factors, factor);
    });
  }

  // Tensors that are made inside of a rule now.
  void DropUnmade() {
    std::vector<int> numbers(body_.tensors.size(), -1);
    std::vector<bool> used(body_.tensors.size(), false);
    for (const OpNode& op : body_.ops) {
      for (const int tensor : op.inputs) used[tensor] = true;
      for (const int tensor : op.outputs) used[tensor] = true;
    }
    for (const std::vector<int>* ports : {&body_.in_ports, &body_.out_ports}) {
      for (const int tensor : *ports) used[tensor] = true;
    }
    std::vector<TensorInfo> tensors;
    for (size_t t = 0; t < numbers.size(); ++t) {
      if (!used[t]) continue;
      numbers[t] = static_cast<int>(tensors.size());
      tensors.push_back(std::move(body_.tensors[t]));
    }
    body_.tensors = std::move(tensors);
    for (OpNode& op : body_.ops) {
      for (int& tensor : op.inputs) tensor = numbers[tensor];
      for (int& tensor : op.outputs) tensor = numbers[tensor];
    }
    for (std::vector<int>* ports : {&body_.in_ports, &body_.out_ports}) {
      for (int& tensor : *ports) tensor = numbers[tensor];
    }
  }

  Body body_;
};

}  // namespace

absl::StatusOr<ModelGraph> JoinedOps(const ModelGraph& graph, const StrategyTree& tree) {
  ModelGraph out = graph;
  out.bodies.clear();
  std::map<int, int> as_it_was;  // bodies in which nothing is joined
  for (Segment& segment : out.segments) {
    BodyJoiner joiner(graph.bodies[segment.body]);
    ASSIGN_OR_RETURN(const auto groups, joiner.Groups(ModelGraph::PathOf(segment), tree));
    if (groups.empty()) {
      const auto [known, added] =
          as_it_was.try_emplace(segment.body, static_cast<int>(out.bodies.size()));
      if (added) out.bodies.push_back(graph.bodies[segment.body]);
      segment.body = known->second;
      continue;
    }
    if (!graph.tied.empty()) {
      return absl::UnimplementedError(
          "`compute_at` of models whose modules share parameters is not supported yet.");
    }
    ASSIGN_OR_RETURN(Body body, joiner.Run(groups));
    segment.body = static_cast<int>(out.bodies.size());
    out.bodies.push_back(std::move(body));
  }
  if (as_it_was.size() == out.bodies.size()) {
    return absl::InvalidArgumentError(
        "`compute_at` is said of no op of the model. `explain` says which ops are below a node.");
  }
  RETURN_IF_ERROR(out.Verify());
  return out;
}

std::string JoinKey(const StrategyTree& tree) {
  std::string key;
  for (const auto& [path, node] : tree.nodes()) {
    if (!node.compute_at.empty()) absl::StrAppend(&key, path, ":", node.compute_at, ";");
  }
  return key;
}

}  // namespace plancast
