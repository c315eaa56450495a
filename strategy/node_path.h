#ifndef PLANCAST_STRATEGY_NODE_PATH_H_
#define PLANCAST_STRATEGY_NODE_PATH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// An op or a module of a model by name: `layers.*.attn.qkv`, where `*` stands for every
// layer of the list `layers`, or `layers.3.attn.qkv`. Views into the text it was made from.
struct ModulePath {
  std::vector<absl::string_view> parts;
  int list = -1;       // the part that is the index of a layer; -1: no list
  int64_t index = -1;  // of the layer; -1: any of them
  int64_t count = 0;   // layers of the list; 0: not known

  // Of `text`, where no list is known: the first part that is `*` or a number is an index.
  static ModulePath Of(absl::string_view text);
};

// Where a node of a strategy tree is: components joined by dots, each a name, `*` for any one
// component, or layers of a list: `layers.3`, `layers[-1]`, `layers[0:8]`, `layers[::2]`,
// `layers[0,2,8:16]`, as Python counts and slices, with steps above 0.
class NodePath {
 public:
  // Errors: empty components, other characters than letters, digits and `_`, slices that are none.
  static absl::StatusOr<NodePath> Parse(absl::string_view text);

  // Canonical text, `` for the root: paths that say the same have the same.
  std::string DebugString() const;

  // A module at this path, or one that holds it: this node's directives hold for `path`. Layers
  // counted from the end need the length of the list.
  bool Covers(const ModulePath& path) const;
  // Whether it does for some layer of the list that `path` goes through, whichever `path` says.
  bool CoversSomeLayers(const ModulePath& path) const;

  // The more of them, the more specific a path; then fewer stars, then fewer slices.
  int length() const { return static_cast<int>(components_.size()); }
  int stars() const;
  int slices() const;
  // Whether it tells layers of a list apart where part `list` of a module's path is their index.
  bool TellsLayersApart(int list) const {
    return list >= 0 && list < length() && components_[list].kind == Component::Kind::kLayers;
  }
  // The same of the list at `path`, whose last part stands for the layer.
  bool TellsLayersApart(const ModulePath& path) const {
    return TellsLayersApart(path.list) && MatchesFirst(path, path.list);
  }
  // Of the layers said at component `list`, the first that a list of `count` does not have;
  // nothing if it has all.
  std::optional<int64_t> MissingLayer(int list, int64_t count) const;
  // Whether layer `index` of `count` is among those said at component `list`.
  bool HoldsLayer(int list, int64_t index, int64_t count) const;
  // Whether which layers it says at component `list` depends on the length of the list.
  bool CountsFromEnd(int list) const;

 private:
  struct Slice {
    std::optional<int64_t> begin, end;
    int64_t step = 1;
    bool single = false;  // `begin` alone

    bool Holds(int64_t index, int64_t count) const;
    std::string DebugString() const;
  };
  struct Component {
    enum class Kind : uint8_t { kName, kAny, kLayers };
    Kind kind = Kind::kName;
    std::string name;           // a number too: of a module that is called so
    std::vector<Slice> slices;  // kLayers

    bool Holds(int64_t index, int64_t count) const;
    bool Matches(const ModulePath& path, int part) const;
  };

  static absl::StatusOr<Slice> ParseSlice(absl::string_view text, absl::string_view path);
  absl::Status AddLayers(absl::string_view text, absl::string_view path);
  bool MatchesFirst(const ModulePath& path, int parts) const;

  std::vector<Component> components_;
};

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_NODE_PATH_H_
