#include "collectives/protocol_cost.h"

#include <cmath>
#include <cstdint>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "collectives/protocol_data.h"
#include "proto/text_proto.h"

namespace plancast {
namespace {

static_assert(IsOnHost(static_cast<CollectiveKind>(kNumCollectiveKinds)));
constexpr absl::Span<const absl::string_view> kKindNames(kCollectiveKindNames.begin(),
                                                         kNumCollectiveKinds);

absl::StatusOr<int> IndexOf(absl::string_view what, absl::string_view name,
                            absl::Span<const absl::string_view> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<int>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no ", what, " `", name, "`.", Offer(name, names)));
}

absl::StatusOr<ProtocolCost> CostFromProto(const proto::ProtocolCost& proto) {
  ProtocolCost cost;
  cost.base_s = proto.base_us() * 1e-6;
  cost.hop_s = proto.hop_us() * 1e-6;
  cost.fill = proto.fill();
  cost.efficiency = proto.efficiency();
  cost.bridge_efficiency =
      proto.has_bridge_efficiency() ? proto.bridge_efficiency() : proto.efficiency();
  cost.hosts = proto.hosts();
  cost.most_hosts = proto.most_hosts();
  cost.efficiency_of_most = proto.efficiency_of_most();
  cost.bridge_crowding = proto.bridge_crowding();
  cost.local_share = proto.local_share();
  cost.channels = proto.channels();
  cost.forecast = proto.forecast();
  cost.sigma = proto.sigma();
  cost.link = proto.link();
  cost.source = absl::StrCat(proto.algorithm(), "/", proto.protocol(), " on ", proto.link(), ": ",
                             proto.source());
  if (!(cost.efficiency > 0 && cost.efficiency <= 1) ||
      !(cost.bridge_efficiency > 0 && cost.bridge_efficiency <= 1) || !(cost.base_s >= 0) ||
      !(cost.hop_s >= 0) || !(cost.fill >= 0) || !(cost.local_share >= 0) ||
      !(cost.bridge_crowding >= 0 && cost.bridge_crowding <= 4)) {
    return absl::InvalidArgumentError(
        "efficiencies have to lie in (0, 1], `bridge_crowding` in [0, 4], and nothing may be "
        "negative.");
  }
  const bool alike =
      !proto.has_hosts() && !proto.has_most_hosts() && !proto.has_efficiency_of_most();
  if (!alike && !(cost.hosts >= 1 && cost.most_hosts > cost.hosts && cost.efficiency_of_most > 0 &&
                  cost.efficiency_of_most <= cost.efficiency)) {
    return absl::InvalidArgumentError(
        "an efficiency that falls with the hosts of a group has `hosts`, more `most_hosts`, and an "
        "`efficiency_of_most` that is no larger.");
  }
  return cost;
}

// Of entries that name no collectives. Messages are what `direct` and `copy` do everywhere; that
// a library has the other kinds in this form has to be said.
bool HoldsFor(Algorithm algorithm, CollectiveKind kind) {
  if (algorithm != Algorithm::kDirect && algorithm != Algorithm::kCopy) return true;
  return kind == CollectiveKind::kPermute || kind == CollectiveKind::kSendRecv;
}

// What calibration writes, and copies by copy engines, as published.
proto::CollectiveCosts ShippedProto() {
  proto::CollectiveCosts all;
  for (const absl::string_view stem : {"protocols", "copies"}) {
    const EmbeddedFile* file = FindByStem(ProtocolData(), stem);
    PLANCAST_CHECK(file != nullptr);
    auto proto = ParseTextProto<proto::CollectiveCosts>(file->contents, file->path);
    PLANCAST_CHECK_OK(proto);
    all.MergeFrom(*proto);
  }
  return all;
}

ProtocolCosts MadeOf(const proto::CollectiveCosts& proto) {
  auto table = ProtocolCosts::Create(proto);
  PLANCAST_CHECK_OK(table);
  return *std::move(table);
}

}  // namespace

absl::StatusOr<ProtocolCosts> ProtocolCosts::Create(const proto::CollectiveCosts& proto) {
  ProtocolCosts table;
  table.costs_.reserve(proto.cost_size());  // entries are pointed at
  for (const proto::ProtocolCost& entry : proto.cost()) {
    const std::string place =
        absl::StrCat("cost of ", entry.algorithm(), "/", entry.protocol(), " on ", entry.link());
    ASSIGN_OR_RETURN(ProtocolCost cost, CostFromProto(entry), _ << place);
    ASSIGN_OR_RETURN(const int algorithm,
                     IndexOf("algorithm", entry.algorithm(), kAlgorithmNames.names), _ << place);
    ASSIGN_OR_RETURN(const int protocol,
                     IndexOf("protocol", entry.protocol(), kProtocolNames.names), _ << place);
    table.costs_.push_back(std::move(cost));
    ForLink& link = table.links_[entry.link()];
    auto& kinds = link.entry[algorithm][protocol];
    for (int k = 0; entry.collectives().empty() && k < kNumCollectiveKinds; ++k) {
      if (HoldsFor(static_cast<Algorithm>(algorithm), static_cast<CollectiveKind>(k))) {
        kinds[k] = &table.costs_.back();
      }
    }
    for (const std::string& name : entry.collectives()) {
      ASSIGN_OR_RETURN(const int kind, IndexOf("collective", name, kKindNames), _ << place);
      kinds[kind] = &table.costs_.back();
    }
  }
  for (const proto::LinkLikeness& likeness : proto.likeness()) {
    const auto it = table.links_.find(likeness.like());
    if (it == table.links_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("link `", likeness.link(), "` is like `",
                                                     likeness.like(), "`, which has no costs."));
    }
    const ForLink like = it->second;  // a new key may move the old
    ForLink& link = table.links_[likeness.link()];
    const auto& only = likeness.algorithms();
    for (const std::string& name : only) {
      RETURN_IF_ERROR(IndexOf("algorithm", name, kAlgorithmNames.names).status());
    }
    for (int a = 0; a < kNumAlgorithms; ++a) {
      if (!only.empty() && !absl::c_linear_search(only, kAlgorithmNames.names[a])) continue;
      for (int p = 0; p < kNumProtocols; ++p) {
        for (int k = 0; k < kNumCollectiveKinds; ++k) {
          if (link.entry[a][p][k] == nullptr) link.entry[a][p][k] = like.entry[a][p][k];
        }
      }
    }
  }
  for (const proto::LinkChoice& choice : proto.choice()) {
    table.links_[choice.link()].picks_cheapest = choice.cheapest();
  }
  return table;
}

double ProtocolCost::EfficiencyAmong(int64_t group_hosts) const {
  if (group_hosts <= hosts || most_hosts == 0) return efficiency;
  if (group_hosts >= most_hosts) return efficiency_of_most;
  const double way = std::log(static_cast<double>(group_hosts) / hosts) /
                     std::log(static_cast<double>(most_hosts) / hosts);
  return efficiency * std::pow(efficiency_of_most / efficiency, way);
}

const ProtocolCosts& ProtocolCosts::Shipped() {
  // Moving a vector keeps its elements where they are.
  static const ProtocolCosts& costs = *new ProtocolCosts(MadeOf(ShippedProto()));
  return costs;
}

const ProtocolCosts& ProtocolCosts::Nominal() {
  static const ProtocolCosts& costs = *[] {
    auto* table = new ProtocolCosts(MadeOf(ShippedProto()));
    for (ProtocolCost& cost : table->costs_) {
      cost.base_s = cost.hop_s = cost.fill = cost.local_share = cost.sigma = cost.bridge_crowding =
          0;
      cost.efficiency = cost.bridge_efficiency = 1;
      cost.hosts = cost.most_hosts = 0;
      cost.forecast = false;
      cost.source = "data sheet";
    }
    for (auto& [name, link] : table->links_) link.picks_cheapest = true;
    return table;
  }();
  return costs;
}

const ProtocolCosts::ForLink& ProtocolCosts::Of(absl::string_view link) const {
  const auto it = links_.find(link);
  if (it != links_.end()) return it->second;
  for (const absl::string_view kind : {"nvlink", "xgmi", "pcie"}) {
    if (link.substr(0, kind.size()) != kind) continue;
    const auto fallback = links_.find(kind);
    if (fallback != links_.end()) return fallback->second;
  }
  return none_;
}

}  // namespace plancast
