#include "collectives/realise.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "collectives/group_shape.h"
#include "collectives/price.h"
#include "collectives/protocol_cost.h"
#include "collectives/traffic.h"

namespace plancast {
namespace {

constexpr double kOneQ20 = 1 << 20;

constexpr Algorithm kAlgorithms[] = {Algorithm::kRing,     Algorithm::kTree,
                                     Algorithm::kNvls,     Algorithm::kNvlsTree,
                                     Algorithm::kPairwise, Algorithm::kDirect};
constexpr Protocol kProtocols[] = {Protocol::kLl, Protocol::kSimple};

// Fixed point rounds against the collective: it is never faster than its links.
int64_t Coefficient(double load) { return static_cast<int64_t>(std::ceil(load * kOneQ20)); }

int64_t ToPicoseconds(double seconds) {
  return static_cast<int64_t>(std::ceil(std::min(seconds, 4e6) * 1e12));
}

absl::Status CheckPolicy(const CollectivePolicy& policy, CollectiveKind kind, int64_t bytes) {
  if (bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(CollectiveKindName(kind), " of ", bytes,
                                                   " bytes; the size must not be negative."));
  }
  if (!(policy.bandwidth_scale > 0 && policy.bandwidth_scale <= 1e3)) {
    return absl::InvalidArgumentError(absl::StrCat("`bandwidth_scale` is ", policy.bandwidth_scale,
                                                   "; it has to lie between 0 and 1000."));
  }
  const auto check = [](absl::string_view what, absl::string_view name, const auto& values,
                        auto name_of) -> absl::Status {
    if (name.empty()) return absl::OkStatus();
    std::vector<absl::string_view> names;
    for (const auto value : values) names.push_back(name_of(value));
    if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "no ", what, " `", name, "`; there are ", JoinQuoted(names), ".", DidYouMean(name, names)));
  };
  RETURN_IF_ERROR(check("algorithm", policy.algorithm, kAlgorithms, AlgorithmName));
  return check("protocol", policy.protocol, kProtocols, ProtocolName);
}

// Reductions in switches need switches.
bool MayUse(const Machine& machine, Algorithm algorithm) {
  if (algorithm != Algorithm::kNvls && algorithm != Algorithm::kNvlsTree) return true;
  return machine.spec().topology == "nvswitch" || machine.spec().topology == "nvl72";
}

absl::Status NothingFits(const Machine& machine, const GroupShape& shape, CollectiveKind kind,
                         const CollectivePolicy& policy) {
  std::string asked =
      policy.algorithm.empty() ? "no algorithm" : absl::StrCat("`", policy.algorithm, "`");
  if (!policy.protocol.empty()) absl::StrAppend(&asked, " with protocol `", policy.protocol, "`");
  return absl::InvalidArgumentError(absl::StrCat(
      asked, policy.algorithm.empty() ? " does " : " does not do ", CollectiveKindName(kind),
      " over ", shape.members, " devices in ", shape.nodes, shape.nodes == 1 ? " node" : " nodes",
      " of `", machine.spec().name, "`. Leave algorithm and protocol open, or choose others."));
}

// NCCL chooses by what trees ask of a place inside a large one (src/graph/tuning.cc: half
// the bus bandwidth, whatever the number of nodes), though two or three nodes send less.
// The tuner that comes with Amazon's network knows.
Traffic AsTheLibraryWeighs(const Machine& machine, const GroupShape& shape,
                           const Traffic& traffic) {
  Traffic told = traffic;
  if (traffic.algorithm == Algorithm::kTree && machine.spec().fabric != "efa" && shape.nodes > 1) {
    told.nic = 2.0 / static_cast<double>(shape.nics);
  }
  return told;
}

RealisedCollective ToFixedPoint(const Machine& machine, const LinkCosts& links,
                                const PricedTraffic& best, bool networked, int64_t bytes) {
  RealisedCollective result;
  result.algorithm = std::string(AlgorithmName(best.traffic.algorithm));
  result.protocol = std::string(ProtocolName(best.protocol));
  result.delay_ps = ToPicoseconds(best.delay_s);
  result.work_bytes = bytes;
  result.rate_cap_bytes_per_s =
      std::max<int64_t>(1, static_cast<int64_t>(std::min(best.rate_cap, 9e18)));
  result.loads.reserve(5);
  const auto load = [&](const LinkClass* link, double value) {
    if (link == nullptr || value <= 0) return;
    const auto index = static_cast<int>(link - machine.link_classes().data());
    result.loads.push_back({index, Coefficient(value)});
  };
  load(links.port, best.port);  // in the order of the machine's classes
  load(links.uplink, best.uplink);
  load(links.bridge, best.bridge);
  load(links.nic, best.nic);
  load(links.spine, best.spine);
  if (machine.device().sms > 0) {
    result.sm_fraction =
        std::min(1.0, static_cast<double>(best.cost->channels) / machine.device().sms);
  }
  const std::string& link = networked ? machine.spec().fabric : machine.spec().intra_link;
  result.provenance.knowledge =
      best.cost->link == link ? Knowledge::kCalibrated : Knowledge::kExtrapolated;
  result.provenance.source = best.cost->source;
  result.factor = absl::StrCat(link, "/", result.algorithm);
  result.factor_sigma = best.cost->sigma;
  return result;
}

}  // namespace

GroupPattern GroupPattern::Of(absl::Span<const int64_t> members) {
  GroupPattern pattern;
  pattern.base = members[0];
  size_t covered = 1;
  while (covered < members.size()) {
    const int64_t stride = members[covered] - members[0];
    size_t extent = 1;
    while (extent * covered < members.size() &&
           members[extent * covered] - members[0] == stride * static_cast<int64_t>(extent)) {
      ++extent;
    }
    pattern.dims.push_back({static_cast<int64_t>(extent), stride});
    covered *= extent;
  }
  if (covered == members.size()) {
    const std::vector<int64_t> all = pattern.Members();
    if (std::equal(all.begin(), all.end(), members.begin())) return pattern;
  }
  pattern.dims.clear();
  pattern.devices.assign(members.begin(), members.end());
  return pattern;
}

int64_t GroupPattern::size() const {
  if (!devices.empty()) return static_cast<int64_t>(devices.size());
  int64_t size = 1;
  for (const Dim& dim : dims) size *= dim.extent;
  return size;
}

std::vector<int64_t> GroupPattern::Members() const {
  if (!devices.empty()) return devices;
  std::vector<int64_t> members = {base};
  for (const Dim& dim : dims) {
    const size_t count = members.size();
    for (int64_t c = 1; c < dim.extent; ++c) {
      for (size_t i = 0; i < count; ++i) members.push_back(members[i] + c * dim.stride);
    }
  }
  std::sort(members.begin(), members.end());
  return members;
}

absl::StatusOr<RealisedCollective> Realise(const Machine& machine, const GroupPattern& group,
                                           CollectiveKind kind, int64_t bytes,
                                           const CollectivePolicy& policy) {
  if (absl::Status status = CheckPolicy(policy, kind, bytes); !status.ok()) return status;
  ASSIGN_OR_RETURN(const GroupShape shape, ShapeOf(machine, group));
  if (shape.members == 1 || bytes == 0) {
    RealisedCollective nothing;
    nothing.rate_cap_bytes_per_s = 1;
    nothing.provenance.source = "nothing to do";
    return nothing;
  }

  const LinkCosts links(machine,
                        policy.nominal ? ProtocolCosts::Nominal() : ProtocolCosts::Shipped());
  std::optional<PricedTraffic> best;
  double least = 0;  // what the best is expected to take when it is chosen
  for (const Algorithm algorithm : kAlgorithms) {
    if (!policy.algorithm.empty() && policy.algorithm != AlgorithmName(algorithm)) continue;
    if (!MayUse(machine, algorithm)) continue;
    std::optional<Traffic> traffic = TrafficOf(algorithm, shape, kind);
    if (!traffic) continue;
    if (algorithm == Algorithm::kPairwise) SendCopiesOnce(shape, policy.copies, &*traffic);
    for (const Protocol protocol : kProtocols) {
      if (!policy.protocol.empty() && policy.protocol != ProtocolName(protocol)) continue;
      const auto priced =
          Price(links, shape, *traffic, protocol, kind, bytes, policy.bandwidth_scale);
      if (!priced) continue;
      double expected = priced->seconds(bytes);
      if (const Traffic told = AsTheLibraryWeighs(machine, shape, *traffic);
          told.nic != traffic->nic) {
        expected = Price(links, shape, told, protocol, kind, bytes, policy.bandwidth_scale)
                       ->seconds(bytes);
      }
      if (best && expected >= least) continue;
      best = priced;
      least = expected;
    }
  }
  if (!best) return NothingFits(machine, shape, kind, policy);
  return ToFixedPoint(machine, links, *best, shape.nodes > 1, bytes);
}

int64_t AloneTime(const Machine& machine, const RealisedCollective& collective) {
  if (collective.work_bytes == 0) return collective.delay_ps;
  int64_t rate = collective.rate_cap_bytes_per_s;
  for (const LinkLoad& load : collective.loads) {
    const double capacity = machine.link_classes()[load.link_class].bytes_per_s;
    const auto link_rate =
        static_cast<int64_t>(capacity * kOneQ20 / static_cast<double>(load.coefficient_q20));
    rate = std::min(rate, std::max<int64_t>(1, link_rate));
  }
  const absl::uint128 work =
      absl::uint128(collective.work_bytes) * absl::uint128(1'000'000'000'000) +
      absl::uint128(rate - 1);
  return collective.delay_ps + static_cast<int64_t>(work / absl::uint128(rate));
}

}  // namespace plancast
