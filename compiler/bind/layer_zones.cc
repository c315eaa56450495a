#include "compiler/bind/layer_zones.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "strategy/nodes/op_path.h"

namespace plancast {
namespace {

// Segments [begin, end) are one list, `layers` long.
struct ListRange {
  size_t begin = 0, end = 0;
  int64_t layers = 0;
};

ListRange ListAt(const std::vector<Segment>& segments, size_t segment) {
  ListRange list{segment, segment, 0};
  const auto goes_on = [&](const Segment& s) {
    return s.in_list() && s.path == segments[segment].path;
  };
  while (list.end < segments.size() && goes_on(segments[list.end])) {
    if (!segments[list.end].continues) list.layers += segments[list.end].repeat;
    ++list.end;
  }
  return list;
}

class ZoneCutter {
 public:
  ZoneCutter(ModelGraph graph, const StrategyTree& tree)
      : segments_(std::exchange(graph.segments, {})), tree_(tree) {
    out_.graph = std::move(graph);
  }

  absl::StatusOr<ZonedModel> Run() && {
    for (size_t s = 0; s < segments_.size();) {
      if (!segments_[s].in_list()) {
        Append(segments_[s], s);
        ++s;
        continue;
      }
      const ListRange list = ListAt(segments_, s);
      RETURN_IF_ERROR(CutList(list));
      s = list.end;
    }
    for (TiedParameter& tie : out_.graph.tied) {
      std::tie(tie.first_segment, tie.first_repeat) = HomeOf(tie.first_segment, tie.first_repeat);
      std::tie(tie.second_segment, tie.second_repeat) =
          HomeOf(tie.second_segment, tie.second_repeat);
    }
    return std::move(out_);
  }

 private:
  // What every op of a list is told, body by body.
  using Told = std::vector<Resolved>;

  absl::StatusOr<Told> ToldAt(const ListRange& list, int64_t layer) const {
    Told told;
    for (size_t s = list.begin; s < list.end; ++s) {
      for (const OpNode& op : out_.graph.bodies[segments_[s].body].ops) {
        std::string text;
        ASSIGN_OR_RETURN(told.emplace_back(),
                         tree_.Resolve(PathOf(segments_[s], op, layer, list.layers, &text)));
      }
    }
    return told;
  }

  // Per layer, the zone that it is in.
  absl::StatusOr<std::vector<int>> ZonesOf(const ListRange& list) {
    std::vector<int> zones(list.layers, 0);
    const std::string path = absl::StrCat(segments_[list.begin].path, ".*");
    const ModulePath module = ModulePath::Of(path);
    const std::vector<const NodePath*> nodes = tree_.NodesOfLayers(module);
    if (nodes.empty()) return zones;
    std::map<std::vector<bool>, int> known;  // by the nodes that hold
    std::vector<Told> told;                  // per zone
    for (int64_t layer = 0; layer < list.layers; ++layer) {
      std::vector<bool> hold;
      for (const NodePath* node : nodes) {
        hold.push_back(node->HoldsLayer(module.list, layer, list.layers));
      }
      const auto [zone, inserted] = known.try_emplace(std::move(hold), 0);
      if (inserted) {
        ASSIGN_OR_RETURN(Told now, ToldAt(list, layer));
        const auto alike = std::find_if(told.begin(), told.end(), [&](const Told& other) {
          return std::equal(now.begin(), now.end(), other.begin(), other.end(),
                            [](const Resolved& a, const Resolved& b) { return a.SaysAs(b); });
        });
        zone->second = static_cast<int>(alike - told.begin());
        if (alike == told.end()) told.push_back(std::move(now));
      }
      zones[layer] = zone->second;
    }
    return zones;
  }

  absl::Status CutList(const ListRange& list) {
    ASSIGN_OR_RETURN(const std::vector<int> zones, ZonesOf(list));
    // The first segment of a zone with so many ports, and of one with a body: modules that hand on
    // more than they take in are read by others than themselves.
    std::map<std::array<size_t, 3>, int> in_zone;
    std::map<std::pair<int, int>, int> alike;
    int64_t first = 0;  // layer of the segment
    for (size_t s = list.begin; s < list.end; ++s) {
      Segment piece = segments_[s];
      if (piece.continues) {
        ZonedModel::Place& place = Append(piece, s);
        place.alike = alike.try_emplace({zones[first - 1], piece.body}, place.zone).first->second;
        place.first_layer = first - 1;
        place.layers = list.layers;
        continue;
      }
      const int64_t end = first + piece.repeat;
      for (int64_t layer = first; layer < end;) {
        int64_t next = layer + 1;
        while (next < end && zones[next] == zones[layer]) ++next;
        if (layer > 0 && zones[layer - 1] != zones[layer]) HandOver();
        piece.repeat = next - layer;
        piece.list = true;
        ZonedModel::Place& place =
            Append(piece.repeat == segments_[s].repeat ? segments_[s] : piece, s);
        const int number = place.zone;
        const Body& body = out_.graph.bodies[piece.body];
        const std::array<size_t, 3> zone = {static_cast<size_t>(zones[layer]), body.in_ports.size(),
                                            body.out_ports.size()};
        place.zone = in_zone.try_emplace(zone, number).first->second;
        place.alike = alike.try_emplace({zones[layer], piece.body}, number).first->second;
        place.first_layer = layer;
        place.layers = list.layers;
        layer = next;
      }
      first = end;
    }
    return absl::OkStatus();
  }

  // A piece of segment `from`, in a zone of its own until more is known.
  ZonedModel::Place& Append(const Segment& segment, size_t from) {
    const int number = static_cast<int>(out_.graph.segments.size());
    if (out_.firsts.size() == from) out_.firsts.push_back(number);
    out_.graph.segments.push_back(segment);
    return out_.places.emplace_back(ZonedModel::Place{number, number, 0, segment.repeat});
  }

  // Where a repeat of a segment went.
  std::pair<int, int64_t> HomeOf(int segment, int64_t repeat) const {
    int piece = out_.firsts[segment];
    while (repeat >= out_.graph.segments[piece].repeat) {
      repeat -= out_.graph.segments[piece].repeat;
      do ++piece;
      while (IsHandOver(out_.graph, out_.graph.segments[piece]));
    }
    return {piece, repeat};
  }

  // A module that hands on what the last one gives.
  void HandOver() {
    const Segment& last = out_.graph.segments.back();
    const Body& giver = out_.graph.bodies[last.body];
    Segment segment;
    segment.path = last.path;
    const auto [known, inserted] = hand_overs_.try_emplace(last.body, 0);
    if (inserted) {
      Body body;
      body.name = "relayout";
      for (const int port : giver.out_ports) {
        body.tensors.push_back(giver.tensors[port]);
        body.tensors.back().kind = TensorInfo::Kind::kActivation;
        body.in_ports.push_back(static_cast<int>(body.tensors.size()) - 1);
      }
      body.out_ports = body.in_ports;
      body.in_detached = body.out_detached = giver.out_detached;
      known->second = static_cast<int>(out_.graph.bodies.size());
      out_.graph.bodies.push_back(std::move(body));
    }
    segment.body = known->second;
    Append(segment, segments_.size());
  }

  const std::vector<Segment> segments_;  // before they are cut
  const StrategyTree& tree_;
  ZonedModel out_;
  std::map<int, int> hand_overs_;  // bodies of them, by the body before
};

}  // namespace

bool IsHandOver(const ModelGraph& graph, const Segment& segment) {
  return graph.bodies[segment.body].ops.empty();
}

absl::StatusOr<ZonedModel> CutIntoZones(ModelGraph graph, const StrategyTree& tree) {
  return ZoneCutter(std::move(graph), tree).Run();
}

}  // namespace plancast
