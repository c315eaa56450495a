#include "strategy/nodes/homes.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

// From what is sharded last to what is sharded first.
constexpr HomeKind kSharded[] = {HomeKind::kWeights, HomeKind::kGradients, HomeKind::kState};

std::string Said(HomeKind kind, const Home& home) {
  return absl::StrCat("`", kHomeKindNames[kind], ": ", PrintHome(kind, home), "`");
}

// The axes between the brackets of `shard(...)`, one way to write each set.
absl::StatusOr<std::string> ParseAxes(absl::string_view text, absl::string_view axes) {
  std::vector<std::string> names = absl::StrSplit(axes, ',');
  for (std::string& name : names) name = std::string(absl::StripAsciiWhitespace(name));
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end() && !twice->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` names `", *twice, "` twice. Name each axis once."));
  }
  if (names.front().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text,
                     "` lacks the name of an axis. Write `shard(dp)`, or `shard(dp,tp)` "
                     "for both."));
  }
  return absl::StrJoin(names, ",");
}

// `dp=3`, after `on(`.
absl::StatusOr<Home> ParseRank(absl::string_view text, absl::string_view said) {
  if (absl::StrContains(said, ',')) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` names several axes. A home is on a rank of one: `on(dp=3)`."));
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(said, '=');
  int64_t rank = -1;
  if (parts.size() != 2 || absl::StripAsciiWhitespace(parts[0]).empty() ||
      !absl::SimpleAtoi(parts[1], &rank) || rank < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", text, "` does not say a rank of an axis. Write `on(dp=3)` for rank 3 of `dp`."));
  }
  return Home{std::string(absl::StripAsciiWhitespace(parts[0])), false, rank};
}

bool IsWholeOnHost(const std::optional<Home>& home) {
  return home.has_value() && home->on_host && !home->sharded();
}

}  // namespace

absl::StatusOr<Home> ParseHome(HomeKind kind, absl::string_view text) {
  const bool activations = kind == HomeKind::kActivations;
  if (absl::StartsWith(text, "device(")) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` does not say of which axis the rank is. Write ",
                     activations ? "`on(pp=3)` for stage 3." : "`on(dp=3)` for rank 3 of `dp`."));
  }
  Home home;
  absl::string_view rest = text;
  if (text == (activations ? "device" : "replicate")) return home;
  home.on_host = text == "host" || absl::ConsumeSuffix(&rest, "+host");
  if (text == "host") return home;
  if (absl::ConsumePrefix(&rest, "shard(") && absl::ConsumeSuffix(&rest, ")") && !rest.empty()) {
    ASSIGN_OR_RETURN(home.axis, ParseAxes(text, rest));
    return home;
  }
  if (activations) {
    if (!home.on_host && absl::ConsumePrefix(&rest, "on(") && absl::ConsumeSuffix(&rest, ")")) {
      ASSIGN_OR_RETURN(home, ParseRank(text, rest));
      if (home.axis == "pp") return home;
      return absl::InvalidArgumentError(absl::StrCat(
          "`", text, "` is no home of activations: they wait where they are made, on the host, or ",
          "on another stage. Write `on: {", home.axis, ": ", *home.rank, "}` to run the node on ",
          "rank ", *home.rank, " of `", home.axis, "`, or `activations: on(pp=1)` for stage 1."));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("`", text,
                     "` is no home of activations; there are `device`, `shard(tp)` for an axis "
                     "`tp`, `host`, `shard(tp)+host`, and `on(pp=3)` for stage 3."));
  }
  if (absl::ConsumePrefix(&rest, "on(") && absl::ConsumeSuffix(&rest, ")")) {
    if (!home.on_host) return ParseRank(text, rest);
    return absl::UnimplementedError(
        absl::StrCat("not supported yet: a home on the host of one rank (`", text, "`). Write `on(",
                     rest, ")` or `shard(dp)+host`."));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("`", text, "` is not a home layout. Write `replicate`, `shard(dp)` for an axis ",
                   "`dp`, `on(dp=3)` for its rank 3, `host`, or `shard(dp)+host`."));
}

std::vector<std::string> Home::axes() const {
  if (!sharded()) return {};
  return absl::StrSplit(axis, ',');
}

std::string PrintHome(HomeKind kind, const Home& home) {
  if (kind == HomeKind::kActivations && !home.sharded()) return home.on_host ? "host" : "device";
  if (!home.sharded()) return home.on_host ? "host" : "replicate";
  if (home.rank.has_value()) return absl::StrCat("on(", home.axis, "=", *home.rank, ")");
  return absl::StrCat("shard(", home.axis, ")", home.on_host ? "+host" : "");
}

bool HomeDirective::empty() const {
  return std::none_of(of.begin(), of.end(), [](const auto& home) { return home.has_value(); });
}

std::optional<Home> HomeDirective::SharingOf(HomeKind kind) const {
  const std::optional<Home>& said = (*this)[kind];
  const auto shared = [](const Home& home) { return Home{home.axis, false, home.rank}; };
  if (said.has_value() || kind == HomeKind::kActivations) {
    return said.has_value() ? std::optional<Home>(shared(*said)) : std::nullopt;
  }
  // What the sharded ones above it ask for, then what the whole ones below do.
  for (const HomeKind other : kSharded) {
    const std::optional<Home>& home = (*this)[other];
    if (!home.has_value()) continue;
    if (other < kind && (home->sharded() || IsWholeOnHost(home))) return shared(*home);
    if (other > kind && !home->sharded()) return Home();
  }
  return std::nullopt;
}

std::optional<std::string> HomeDirective::AxisOf(HomeKind kind) const {
  const std::optional<Home> sharing = SharingOf(kind);
  return sharing.has_value() ? std::optional<std::string>(sharing->axis) : std::nullopt;
}

std::optional<bool> HomeDirective::OnHost(HomeKind kind) const {
  const std::optional<Home>& said = (*this)[kind];
  if (said.has_value()) return said->on_host;
  if (kind == HomeKind::kActivations) return std::nullopt;
  for (const HomeKind other : kSharded) {
    if (other < kind && IsWholeOnHost((*this)[other])) return true;
  }
  return std::nullopt;
}

std::string HomeDirective::DebugString() const {
  std::vector<std::string> said;
  for (const HomeKind kind : kHomeKindNames.Values()) {
    const std::optional<Home>& home = (*this)[kind];
    if (!home.has_value()) continue;
    said.push_back(absl::StrCat(kHomeKindNames[kind], " ", PrintHome(kind, *home)));
  }
  const std::optional<Home>& state = (*this)[HomeKind::kState];
  if (said.size() == 1 && state.has_value()) return PrintHome(HomeKind::kState, *state);
  return absl::StrJoin(said, ", ");
}

absl::Status HomeDirective::Check() const {
  for (const HomeKind above : kSharded) {
    for (const HomeKind below : kSharded) {
      const std::optional<Home>&a = (*this)[above], &b = (*this)[below];
      if (above >= below || !a.has_value() || !b.has_value()) continue;
      if (IsWholeOnHost(a) && !IsWholeOnHost(b)) {
        return absl::InvalidArgumentError(absl::StrCat(
            Said(above, *a), " and ", Said(below, *b), " contradict each other: the host updates ",
            "what it keeps. Write `", kHomeKindNames[below], ": host`, or leave it out, and it ",
            "follows; or `", kHomeKindNames[above], ": shard(dp)+host`, which shares it out."));
      }
      if (!a->sharded() || a->SharedAs(*b)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          Said(above, *a), " and ", Said(below, *b), " contradict each other: a device updates ",
          "the shard that it keeps, and needs no more of gradients and state. Write ",
          Said(below, {a->axis, false, a->rank}), ", or leave it out, and it follows."));
    }
  }
  const std::optional<Home>&gradients = (*this)[HomeKind::kGradients],
        &state = (*this)[HomeKind::kState];
  if (gradients.has_value() && gradients->on_host && gradients->sharded() &&
      (!state.has_value() || !state->on_host)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Said(HomeKind::kGradients, *gradients),
        " without the state on the host: gradients are where the update is. Write `state: shard(",
        gradients->axis, ")+host`, and gradients follow."));
  }
  return absl::OkStatus();
}

HomeDirective Merged(const HomeDirective& base, const HomeDirective& over) {
  HomeDirective merged;
  for (int k = 0; k < kNumHomeKinds; ++k) {
    const auto kind = static_cast<HomeKind>(k);
    const std::optional<Home> sharing = over.SharingOf(kind);
    if (over[kind].has_value()) {
      merged[kind] = over[kind];
    } else if (sharing.has_value()) {
      const bool follows = over.OnHost(kind).value_or(false);
      merged[kind] = sharing;
      merged[kind]->on_host = follows || base.OnHost(kind).value_or(false);
    } else {
      merged[kind] = base[kind];
    }
  }
  return merged;
}

int TensorHomes::zero() const {
  int level = 0;
  for (const HomeKind kind : kSharded) level += (*this)[kind].sharded() ? 1 : 0;
  return level;
}

void SettlePlaces(TensorHomes* homes) {
  Home& gradients = (*homes)[HomeKind::kGradients];
  if (gradients.sharded()) gradients.on_host = (*homes)[HomeKind::kState].on_host;
}

}  // namespace plancast
