#include "graph/layout/pair_transfers.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/int128.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

absl::Status VerifySide(const ReshardSide& side, int num_dims) {
  RETURN_IF_ERROR(side.layout.Verify(side.mesh, num_dims));
  for (int a = 0; a < side.mesh.num_axes(); ++a) {
    if (!side.layout.placements[a].is_partial() || side.mesh.size(a) == 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "axis `", side.mesh.axis(a).name, "` holds partial values, ",
        side.layout.DebugString(side.mesh), ", which do not go from mesh to mesh: reduce them on ",
        "their own (", side.mesh.DebugString(), ") first."));
  }
  return absl::OkStatus();
}

// `0:2+6:8`
std::string IndexString(const IndexSet& set) {
  return absl::StrJoin(set, "+", [](std::string* out, const IndexRange& range) {
    absl::StrAppend(out, range.begin, ":", range.end);
  });
}

IndexSet Intersection(const IndexSet& a, const IndexSet& b) {
  IndexSet common;
  for (const IndexRange& x : a) {
    for (const IndexRange& y : b) {
      const IndexRange both = {std::max(x.begin, y.begin), std::min(x.end, y.end)};
      if (both.size() > 0) common.push_back(both);
    }
  }
  return common;
}

// Calls visit(choice) for every choice of one entry of each list, the last list fastest.
template <typename T, typename Visit>
void ForEachChoice(const std::vector<const std::vector<T>*>& lists, const Visit& visit) {
  std::vector<size_t> choice(lists.size());
  for (const std::vector<T>* list : lists) {
    if (list->empty()) return;
  }
  while (true) {
    visit(choice);
    size_t d = lists.size();
    while (d > 0 && ++choice[d - 1] == lists[d - 1]->size()) choice[--d] = 0;
    if (d == 0) return;
  }
}

std::vector<TransferClass> ClassesOf(std::vector<std::vector<int64_t>> messages) {
  std::map<std::vector<int64_t>, size_t> index;
  std::vector<TransferClass> classes;
  for (size_t device = 0; device < messages.size(); ++device) {
    std::vector<int64_t>& list = messages[device];
    std::sort(list.begin(), list.end(), std::greater<int64_t>());
    const auto [it, added] = index.emplace(list, classes.size());
    if (added) classes.push_back({std::move(list), {}});
    classes[it->second].devices.push_back(static_cast<int64_t>(device));
  }
  return classes;
}

}  // namespace

int64_t TransferClass::elements() const {
  int64_t sum = 0;
  for (const int64_t message : messages) sum += message;
  return sum;
}

absl::StatusOr<PairTransfers> PairTransfers::Plan(absl::Span<const int64_t> shape,
                                                  const ReshardSide& source,
                                                  const ReshardSide& target) {
  RETURN_IF_ERROR(VerifySide(source, static_cast<int>(shape.size()))) << "source";
  RETURN_IF_ERROR(VerifySide(target, static_cast<int>(shape.size()))) << "target";
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  int128 most = target.mesh.num_devices();
  for (const int64_t size : shape) {
    if (size < 0) return absl::InvalidArgumentError(absl::StrCat("a dim of size ", size, "."));
    most = std::min<int128>(most * std::max<int64_t>(size, 1), kMost);
  }
  if (most == kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of shape [", absl::StrJoin(shape, ", "), "] for ",
                     target.mesh.num_devices(), " devices has more elements than 64 bits count."));
  }
  return Between(Tiling::Of(source.mesh, shape, source.layout.WithoutHalos()),
                 Tiling::Of(target.mesh, shape, target.layout),
                 target.first_device - source.first_device, /*once=*/false);
}

PairTransfers PairTransfers::Between(Tiling source, Tiling target, int64_t offset, bool once) {
  PairTransfers transfers;
  transfers.offset_ = offset;
  transfers.once_ = once;
  for (int d = 0; d < source.num_dims(); ++d) {
    transfers.by_target_.push_back(OverlapsOf(source.parts[d], target.parts[d]));
    transfers.by_source_.push_back(Transposed(transfers.by_target_[d], source.parts[d].size()));
  }
  transfers.source_ = std::move(source);
  transfers.target_ = std::move(target);
  transfers.PlanTiles();
  return transfers;
}

PairTransfers::Overlaps PairTransfers::OverlapsOf(const std::vector<IndexSet>& source,
                                                  const std::vector<IndexSet>& target) {
  struct Chunk {
    IndexRange range;
    int32_t part;
  };
  std::vector<Chunk> chunks;  // the source's, which are disjoint
  for (size_t p = 0; p < source.size(); ++p) {
    for (const IndexRange& range : source[p]) {
      if (range.size() > 0) chunks.push_back({range, static_cast<int32_t>(p)});
    }
  }
  std::sort(chunks.begin(), chunks.end(),
            [](const Chunk& a, const Chunk& b) { return a.range.begin < b.range.begin; });
  Overlaps overlaps(target.size());
  for (size_t q = 0; q < target.size(); ++q) {
    std::vector<Overlap>& list = overlaps[q];
    for (const IndexRange& range : target[q]) {
      auto chunk = std::partition_point(chunks.begin(), chunks.end(),
                                        [&](const Chunk& c) { return c.range.end <= range.begin; });
      for (; chunk != chunks.end() && chunk->range.begin < range.end; ++chunk) {
        const IndexRange both = {std::max(range.begin, chunk->range.begin),
                                 std::min(range.end, chunk->range.end)};
        if (both.size() > 0) list.push_back({chunk->part, both.size()});
      }
    }
    std::sort(list.begin(), list.end());
    size_t kept = 0;  // a part that overlaps in several ranges becomes one entry
    for (size_t i = 0; i < list.size(); ++i) {
      if (kept > 0 && list[kept - 1].part == list[i].part) {
        list[kept - 1].elements += list[i].elements;
      } else {
        list[kept++] = list[i];
      }
    }
    list.resize(kept);
  }
  return overlaps;
}

PairTransfers::Overlaps PairTransfers::Transposed(const Overlaps& overlaps, size_t parts) {
  Overlaps transposed(parts);
  for (size_t q = 0; q < overlaps.size(); ++q) {
    for (const Overlap& overlap : overlaps[q]) {
      transposed[overlap.part].push_back({static_cast<int32_t>(q), overlap.elements});
    }
  }
  return transposed;
}

int64_t PairTransfers::SourceDevice(int64_t target) const {
  const int64_t device = target + offset_;
  return device >= 0 && device < static_cast<int64_t>(source_.tile_of.size()) ? device : -1;
}

void PairTransfers::PlanTiles() {
  // Parts of a dim that overlap alike.
  std::vector<std::vector<int>> alike;
  for (const Overlaps& overlaps : by_source_) {
    std::map<std::vector<Overlap>, int> index;
    std::vector<int>& ids = alike.emplace_back();
    for (const std::vector<Overlap>& list : overlaps) {
      ids.push_back(index.emplace(list, static_cast<int>(index.size())).first->second);
    }
  }
  // Tiles of which a device of both meshes has a copy.
  std::vector<bool> shared(source_.num_tiles());
  for (size_t target = 0; target < target_.tile_of.size(); ++target) {
    const int64_t device = SourceDevice(static_cast<int64_t>(target));
    if (device < 0) continue;
    shared[source_.tile_of[device]] = true;
    int64_t common = 1;
    for (const IndexSet& set : Box(device, static_cast<int64_t>(target))) common *= CountOf(set);
    kept_ += common;
  }
  std::map<std::vector<int>, int32_t> index;
  for (int64_t tile = 0; tile < source_.num_tiles(); ++tile) {
    const bool alone = once_ || shared[tile];
    std::vector<int> key = source_.PartsOf(tile);
    if (!alone) {
      for (size_t d = 0; d < key.size(); ++d) key[d] = alike[d][key[d]];
    }
    key.push_back(alone ? 1 : 0);
    const auto [it, added] = index.emplace(std::move(key), static_cast<int32_t>(classes_.size()));
    if (added) classes_.push_back(PlanTile(tile, shared[tile]));
    class_of_.push_back(it->second);
    const TileClass& plan = classes_[it->second];
    messages_ += static_cast<int64_t>(plan.targets.size());
    for (const int64_t elements : plan.elements) elements_ += elements;
  }
}

PairTransfers::TileClass PairTransfers::PlanTile(int64_t tile, bool shared) {
  const std::vector<int> part = source_.PartsOf(tile);
  std::vector<const std::vector<Overlap>*> lists;
  for (size_t d = 0; d < part.size(); ++d) lists.push_back(&by_source_[d][part[d]]);
  std::vector<std::pair<int32_t, int64_t>> messages;
  std::vector<int> wanted(part.size());
  ForEachChoice(lists, [&](const std::vector<size_t>& choice) {
    int64_t elements = 1;
    for (size_t d = 0; d < choice.size(); ++d) {
      const Overlap& overlap = (*lists[d])[choice[d]];
      wanted[d] = overlap.part;
      elements *= overlap.elements;
    }
    const int64_t target = target_.TileAt(wanted);
    const int64_t turn = once_ ? RankIn(part, wanted) % target_.copies : -1;
    for (int64_t copy = 0; copy < target_.copies; ++copy) {
      if (turn >= 0 && copy != turn) continue;
      const int64_t device = target_.DeviceOf(target, copy);
      if (shared) {
        const int64_t own = SourceDevice(device);
        if (own >= 0 && source_.tile_of[own] == tile) continue;
      }
      messages.push_back({static_cast<int32_t>(device), elements});
    }
  });
  std::sort(messages.begin(), messages.end());
  TileClass plan;
  for (const auto& [device, elements] : messages) {
    plan.targets.push_back(device);
    plan.elements.push_back(elements);
  }
  AssignCopies(&plan);
  return plan;
}

int64_t PairTransfers::RankIn(const std::vector<int>& held, const std::vector<int>& wanted) const {
  int64_t rank = 0;
  for (size_t d = 0; d < held.size(); ++d) {
    const std::vector<Overlap>& list = by_target_[d][wanted[d]];
    const auto at = std::partition_point(list.begin(), list.end(),
                                         [&](const Overlap& o) { return o.part < held[d]; });
    rank = rank * static_cast<int64_t>(list.size()) + (at - list.begin());
  }
  return rank;
}

void PairTransfers::AssignCopies(TileClass* tile) const {
  const int64_t copies = source_.copies;
  const int64_t count = static_cast<int64_t>(tile->targets.size());
  tile->copies.resize(count);
  if (count <= copies) {
    // Spread over all copies, as neighbours often share a host.
    for (int64_t i = 0; i < count; ++i) tile->copies[i] = static_cast<int32_t>(i * copies / count);
  } else {
    std::vector<int32_t> order(count);
    for (int64_t i = 0; i < count; ++i) order[i] = static_cast<int32_t>(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return tile->elements[a] > tile->elements[b]; });
    using Load = std::pair<int64_t, int32_t>;
    std::priority_queue<Load, std::vector<Load>, std::greater<Load>> loads;
    for (int32_t copy = 0; copy < copies; ++copy) loads.push({0, copy});
    for (const int32_t message : order) {
      const auto [load, copy] = loads.top();
      loads.pop();
      tile->copies[message] = copy;
      loads.push({load + tile->elements[message], copy});
    }
  }
  tile->copy_begin.resize(copies + 1);
  for (const int32_t copy : tile->copies) ++tile->copy_begin[copy + 1];
  for (int64_t copy = 0; copy < copies; ++copy) {
    tile->copy_begin[copy + 1] += tile->copy_begin[copy];
  }
  tile->by_copy.resize(count);
  std::vector<int32_t> next(tile->copy_begin.begin(), tile->copy_begin.end() - 1);
  for (int32_t i = 0; i < count; ++i) tile->by_copy[next[tile->copies[i]]++] = i;
}

int64_t PairTransfers::MostPieces(int dim) const {
  size_t most = 0;
  for (const std::vector<Overlap>& list : by_target_[dim]) most = std::max(most, list.size());
  return static_cast<int64_t>(most);
}

std::vector<Transfer> PairTransfers::From(int64_t source) const {
  const int64_t tile = source_.tile_of[source];
  const TileClass& plan = classes_[class_of_[tile]];
  const auto first = source_.devices.begin() + tile * source_.copies;
  const int64_t copy = std::lower_bound(first, first + source_.copies, source) - first;
  std::vector<Transfer> messages;
  for (int32_t i = plan.copy_begin[copy]; i < plan.copy_begin[copy + 1]; ++i) {
    const int32_t message = plan.by_copy[i];
    messages.push_back({source, plan.targets[message], plan.elements[message]});
  }
  return messages;
}

std::vector<Transfer> PairTransfers::To(int64_t target) const {
  const std::vector<int> part = target_.PartsOf(target_.tile_of[target]);
  std::vector<const std::vector<Overlap>*> lists;
  for (size_t d = 0; d < part.size(); ++d) lists.push_back(&by_target_[d][part[d]]);
  std::vector<Transfer> messages;
  std::vector<int> held(part.size());
  ForEachChoice(lists, [&](const std::vector<size_t>& choice) {
    for (size_t d = 0; d < choice.size(); ++d) held[d] = (*lists[d])[choice[d]].part;
    const int64_t tile = source_.TileAt(held);
    const TileClass& plan = classes_[class_of_[tile]];
    const auto at = std::lower_bound(plan.targets.begin(), plan.targets.end(), target);
    if (at == plan.targets.end() || *at != target) return;
    const size_t i = at - plan.targets.begin();
    messages.push_back({source_.DeviceOf(tile, plan.copies[i]), target, plan.elements[i]});
  });
  std::sort(messages.begin(), messages.end(),
            [](const Transfer& a, const Transfer& b) { return a.source < b.source; });
  return messages;
}

void PairTransfers::ForEach(const std::function<void(const Transfer&)>& visit) const {
  for (size_t tile = 0; tile < class_of_.size(); ++tile) {
    const TileClass& plan = classes_[class_of_[tile]];
    for (size_t i = 0; i < plan.targets.size(); ++i) {
      visit({source_.DeviceOf(static_cast<int64_t>(tile), plan.copies[i]), plan.targets[i],
             plan.elements[i]});
    }
  }
}

std::vector<IndexSet> PairTransfers::Box(int64_t source, int64_t target) const {
  const std::vector<int> held = source_.PartsOf(source_.tile_of[source]);
  const std::vector<int> wanted = target_.PartsOf(target_.tile_of[target]);
  std::vector<IndexSet> box;
  for (int d = 0; d < source_.num_dims(); ++d) {
    box.push_back(Intersection(source_.parts[d][held[d]], target_.parts[d][wanted[d]]));
  }
  return box;
}

std::vector<TransferClass> PairTransfers::Senders() const {
  std::vector<std::vector<int64_t>> messages(source_.tile_of.size());
  ForEach([&](const Transfer& t) { messages[t.source].push_back(t.elements); });
  return ClassesOf(std::move(messages));
}

std::vector<TransferClass> PairTransfers::Receivers() const {
  std::vector<std::vector<int64_t>> messages(target_.tile_of.size());
  ForEach([&](const Transfer& t) { messages[t.target].push_back(t.elements); });
  return ClassesOf(std::move(messages));
}

std::string PairTransfers::DebugString() const {
  std::string text;
  for (size_t source = 0; source < source_.tile_of.size(); ++source) {
    for (const Transfer& t : From(static_cast<int64_t>(source))) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", t.source, " -> ", t.target, ": ", t.elements,
                      " [");
      absl::StrAppend(&text,
                      absl::StrJoin(Box(t.source, t.target), ", ",
                                    [](std::string* out, const IndexSet& set) {
                                      out->append(IndexString(set));
                                    }),
                      "]");
    }
  }
  return text;
}

}  // namespace plancast
