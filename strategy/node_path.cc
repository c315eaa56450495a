#include "strategy/node_path.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

constexpr int64_t kMostLayers = 1'000'000;
constexpr size_t kMostSlices = 10'000;

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

absl::Status Malformed(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("`", path, "` ", what, " Write paths as in `layers.*.attn`, `layers.3` or ",
                   "`layers[0:8].mlp`."));
}

absl::StatusOr<int64_t> Index(absl::string_view text, absl::string_view path) {
  int64_t index = 0;
  if (!absl::SimpleAtoi(text, &index) || index > kMostLayers || index < -kMostLayers) {
    return Malformed(path, absl::StrCat("has `", text, "` where the number of a layer belongs."));
  }
  return index;
}

}  // namespace

ModulePath ModulePath::Of(absl::string_view text) {
  ModulePath path;
  if (text.empty()) return path;
  path.parts = absl::StrSplit(text, '.');
  auto part = std::find(path.parts.begin(), path.parts.end(), "*");
  if (part == path.parts.end()) part = std::find_if(path.parts.begin(), path.parts.end(), IsNumber);
  if (part == path.parts.end()) return path;
  path.list = static_cast<int>(part - path.parts.begin());
  if (*part != "*" && !absl::SimpleAtoi(*part, &path.index)) path.index = -1;
  return path;
}

absl::StatusOr<NodePath::Slice> NodePath::ParseSlice(absl::string_view text,
                                                     absl::string_view path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  Slice slice;
  slice.single = parts.size() == 1;
  if (parts.size() > 3 || (slice.single && parts[0].empty())) {
    return Malformed(path, absl::StrCat("has `[", text, "]`, which names no layers."));
  }
  if (!parts[0].empty()) {
    ASSIGN_OR_RETURN(slice.begin, Index(parts[0], path));
  }
  if (parts.size() > 1 && !parts[1].empty()) {
    ASSIGN_OR_RETURN(slice.end, Index(parts[1], path));
  }
  if (parts.size() > 2 && !parts[2].empty()) {
    ASSIGN_OR_RETURN(slice.step, Index(parts[2], path));
  }
  if (slice.step < 1) {
    return Malformed(path, absl::StrCat("has a step of ", slice.step, "; steps are above 0."));
  }
  return slice;
}

absl::Status NodePath::AddLayers(absl::string_view text, absl::string_view path) {
  Component layers;
  layers.kind = Component::Kind::kLayers;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(const Slice slice, ParseSlice(absl::StripAsciiWhitespace(part), path));
    const bool all =
        !slice.single && slice.begin.value_or(0) == 0 && !slice.end.has_value() && slice.step == 1;
    if (all) layers.kind = Component::Kind::kAny;
    layers.slices.push_back(slice);
    if (layers.slices.size() > kMostSlices) {
      return Malformed(path, absl::StrCat("lists more than ", kMostSlices, " layers and slices."));
    }
  }
  if (layers.kind == Component::Kind::kAny) {
    layers.slices.clear();
  } else if (layers.slices.size() == 1 && layers.slices[0].single && *layers.slices[0].begin >= 0) {
    layers.name = absl::StrCat(*layers.slices[0].begin);
  }
  components_.push_back(std::move(layers));
  return absl::OkStatus();
}

absl::StatusOr<NodePath> NodePath::Parse(absl::string_view text) {
  NodePath path;
  if (text.empty()) return path;
  for (absl::string_view component : absl::StrSplit(text, '.')) {
    absl::string_view layers;
    bool has_layers = false;
    if (const size_t open = component.find('['); open != absl::string_view::npos && open > 0) {
      if (component.back() != ']') {
        return Malformed(text, absl::StrCat("has `", component, "`, whose bracket is not closed."));
      }
      layers = component.substr(open + 1, component.size() - open - 2);
      component = component.substr(0, open);
      has_layers = true;
    }
    if (component.empty()) return Malformed(text, "has an empty component.");
    for (char c : component) {
      if (absl::ascii_isalnum(c) || c == '_' || component == "*") continue;
      return Malformed(text, absl::StrCat("has `", std::string(1, c), "` in a component."));
    }
    if (component == "*") {
      path.components_.push_back({Component::Kind::kAny, "", {}});
    } else if (IsNumber(component)) {
      RETURN_IF_ERROR(path.AddLayers(component, text));
    } else {
      path.components_.push_back({Component::Kind::kName, std::string(component), {}});
    }
    if (has_layers) {
      RETURN_IF_ERROR(path.AddLayers(layers, text));
    }
  }
  return path;
}

std::string NodePath::Slice::DebugString() const {
  if (single) return absl::StrCat(*begin);
  std::string text = begin.has_value() ? absl::StrCat(*begin) : end.has_value() ? "0" : "";
  absl::StrAppend(&text, ":", end.has_value() ? absl::StrCat(*end) : "");
  if (step != 1) absl::StrAppend(&text, ":", step);
  return text;
}

std::string NodePath::DebugString() const {
  std::string text;
  for (const Component& component : components_) {
    const absl::string_view dot = text.empty() ? "" : ".";
    switch (component.kind) {
      case Component::Kind::kName:
        absl::StrAppend(&text, dot, component.name);
        break;
      case Component::Kind::kAny:
        absl::StrAppend(&text, dot, "*");
        break;
      case Component::Kind::kLayers:
        if (!component.name.empty()) {
          absl::StrAppend(&text, dot, component.name);
        } else {
          absl::StrAppend(&text, "[",
                          absl::StrJoin(component.slices, ",",
                                        [](std::string* out, const Slice& slice) {
                                          out->append(slice.DebugString());
                                        }),
                          "]");
        }
        break;
    }
  }
  return text;
}

bool NodePath::Slice::Holds(int64_t index, int64_t count) const {
  const auto from_start = [count](int64_t i) {
    if (i >= 0 || count == 0) return i;
    return std::max<int64_t>(0, i + count);
  };
  const bool from_end = begin.value_or(0) < 0 || end.value_or(0) < 0;
  if (from_end && count == 0) return false;
  if (single) return index == (*begin < 0 ? *begin + count : *begin);
  const int64_t first = from_start(begin.value_or(0));
  if (index < first || (index - first) % step != 0) return false;
  return !end.has_value() || index < from_start(*end);
}

bool NodePath::Component::Holds(int64_t index, int64_t count) const {
  return std::any_of(slices.begin(), slices.end(),
                     [&](const Slice& slice) { return slice.Holds(index, count); });
}

bool NodePath::Component::Matches(const ModulePath& path, int part) const {
  if (kind == Kind::kAny) return true;
  if (kind == Kind::kName) return path.parts[part] == name;
  if (part == path.list) return path.index >= 0 && Holds(path.index, path.count);
  // A module that is called by a number.
  int64_t number = 0;
  return IsNumber(path.parts[part]) && absl::SimpleAtoi(path.parts[part], &number) &&
         Holds(number, 0);
}

bool NodePath::MatchesFirst(const ModulePath& path, int parts) const {
  for (int i = 0; i < parts; ++i) {
    if (!components_[i].Matches(path, i)) return false;
  }
  return true;
}

bool NodePath::Covers(const ModulePath& path) const {
  return components_.size() <= path.parts.size() && MatchesFirst(path, length());
}

bool NodePath::CoversSomeLayers(const ModulePath& path) const {
  if (!TellsLayersApart(path.list) || components_.size() > path.parts.size()) return false;
  for (int i = 0; i < length(); ++i) {
    if (i != path.list && !components_[i].Matches(path, i)) return false;
  }
  return true;
}

bool NodePath::CountsFromEnd(int list) const {
  const auto counts = [](const Slice& s) {
    return s.begin.value_or(0) < 0 || s.end.value_or(0) < 0;
  };
  return TellsLayersApart(list) &&
         std::any_of(components_[list].slices.begin(), components_[list].slices.end(), counts);
}

int NodePath::stars() const {
  return static_cast<int>(
      std::count_if(components_.begin(), components_.end(),
                    [](const Component& c) { return c.kind == Component::Kind::kAny; }));
}

int NodePath::slices() const {
  return static_cast<int>(
      std::count_if(components_.begin(), components_.end(), [](const Component& c) {
        return c.kind == Component::Kind::kLayers && !(c.slices.size() == 1 && c.slices[0].single);
      }));
}

std::optional<int64_t> NodePath::MissingLayer(int list, int64_t count) const {
  if (!TellsLayersApart(list)) return std::nullopt;
  for (const Slice& slice : components_[list].slices) {
    const int64_t begin = slice.begin.value_or(0), end = slice.end.value_or(count);
    if (begin >= count || begin < -count) return begin;
    if (end > count || end < -count) return end;
  }
  return std::nullopt;
}

bool NodePath::HoldsLayer(int list, int64_t index, int64_t count) const {
  return !TellsLayersApart(list) || components_[list].Holds(index, count);
}

}  // namespace plancast
