#include "compiler/program/home_reach.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "strategy/nodes/op_path.h"

namespace plancast {

template <typename Use>
void HomeReach::ForEachNodeOver(int segment, const OpNode& op, Use use) const {
  const ZonedModel::Place& place = bound_.places[segment];
  std::string text;
  const ModulePath path =
      PathOf(bound_.graph.segments[segment], op, place.first_layer, place.layers, &text);
  for (const auto& [node, said] : tree_.nodes()) {
    const NodePath& over = tree_.PathOf(node);
    if (over.CoversSomeLayers(path) || over.Covers(path)) use(node, said);
  }
}

void HomeReach::NoteParameter(int segment, const OpNode& op, bool trained, bool in_buckets,
                              const std::function<bool(const std::string& axis)>& shares_out) {
  ForEachNodeOver(segment, op, [&](const std::string& node, const Directives& said) {
    Reach& reach = reach_[node];
    reach.trained = reach.trained || trained;
    reach.buckets = reach.buckets || in_buckets;
    for (const std::optional<Home>& home : said.home.of) {
      if (!home.has_value()) continue;
      for (const std::string& axis : home->axes()) {
        if (shares_out(axis)) reach.shared.insert(axis);
      }
    }
  });
}

void HomeReach::NoteTable(int segment, const OpNode& op) {
  ForEachNodeOver(segment, op,
                  [&](const std::string& node, const Directives&) { tables_.insert(node); });
}

void HomeReach::NoteActivations(int segment, const OpNode& op, const Home& home) {
  ForEachNodeOver(segment, op, [&](const std::string& node, const Directives& said) {
    if (said.home[HomeKind::kActivations] == home) moving_.insert(node);
  });
}

absl::Status HomeReach::Check() const {
  for (const auto& [path, node] : tree_.nodes()) {
    if (path.empty()) continue;  // as the plan's own
    for (const HomeKind kind : {HomeKind::kWeights, HomeKind::kGradients, HomeKind::kState}) {
      if (!node.home[kind].has_value()) continue;
      const std::string said = absl::StrCat("`", path, "`: `", kHomeKindNames[kind], ": ",
                                            PrintHome(kind, *node.home[kind]), "` ");
      const auto known = reach_.find(path);
      if (known == reach_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            said, "is the home of nothing: ",
            tables_.count(path) > 0 ? "tables with sparse gradients stay whole where they are used"
                                    : "there are no parameters below",
            ". Leave it out."));
      }
      if (kind != HomeKind::kWeights && !known->second.trained) {
        return absl::InvalidArgumentError(
            absl::StrCat(said, "is the home of nothing: what is frozen has no gradients and no ",
                         "state, and nothing below is trained. Leave it out."));
      }
      for (const std::string& axis : node.home[kind]->axes()) {
        if (known->second.shared.count(axis) > 0) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            said, "shares out nothing over `", axis, "`: `split` cuts all weights below over ",
            "the ranks of `", axis, "` already, and leaves no copies. Leave it out."));
      }
    }
    const std::optional<Home>& activations = node.home[HomeKind::kActivations];
    const bool moves = activations.has_value() && !(*activations == Home());
    if (moves && moving_.count(path) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", path, "`: `activations: ", PrintHome(HomeKind::kActivations, *activations),
          "` has no effect: nothing below is kept for a backward pass",
          activations->sharded() && !activations->rank.has_value() ? " whole on several ranks of it"
                                                                   : "",
          ". Leave it out."));
    }
    const auto known = reach_.find(path);
    if (!node.bucket_bytes.has_value() || (known != reach_.end() && known->second.buckets)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "`", path, "`: `bucket` has no effect: below are no gradients that are reduced in ",
        "buckets. Sharded ones are reduced module by module; leave it out."));
  }
  return absl::OkStatus();
}

}  // namespace plancast
