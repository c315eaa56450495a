#include "collectives/realise.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "collectives/communicator.h"
#include "collectives/fused_time.h"
#include "collectives/group_shape.h"
#include "collectives/host_links.h"
#include "collectives/price.h"
#include "collectives/protocol_cost.h"
#include "collectives/traffic.h"

namespace plancast {
namespace {

constexpr double kOneQ20 = 1 << 20;

// Fixed point rounds against the collective: it is never faster than its links.
int64_t Coefficient(double load) { return static_cast<int64_t>(std::ceil(load * kOneQ20)); }

int64_t ToPicoseconds(double seconds) {
  return static_cast<int64_t>(std::ceil(std::min(seconds, 4e6) * 1e12));
}

absl::Status CheckPolicy(const CollectivePolicy& policy, CollectiveKind kind, int64_t bytes) {
  if (bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(kCollectiveKindNames[kind], " of ", bytes,
                                                   " bytes; the size must not be negative."));
  }
  if (!(policy.bandwidth_scale > 0 && policy.bandwidth_scale <= 1e3)) {
    return absl::InvalidArgumentError(absl::StrCat("`bandwidth_scale` is ", policy.bandwidth_scale,
                                                   "; it has to lie between 0 and 1000."));
  }
  const auto check = [](absl::string_view what, absl::string_view name,
                        const auto& names) -> absl::Status {
    if (name.empty() || names.Find(name).has_value()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("no ", what, " `", name, "`.", Offer(name, names)));
  };
  RETURN_IF_ERROR(check("algorithm", policy.algorithm, kAlgorithmNames));
  return check("protocol", policy.protocol, kProtocolNames);
}

// Reductions in switches need switches.
bool MayUse(const Machine& machine, Algorithm algorithm) {
  if (algorithm != Algorithm::kNvls && algorithm != Algorithm::kNvlsTree) return true;
  return machine.spec().topology == "nvswitch" || machine.spec().topology == "nvl72";
}

// A group with members in one section of the machine, mostly all of them.
struct Side {
  Side(const Machine& machine, const ProtocolCosts& costs, const SectionShape& at)
      : links(machine, costs, at.section), shape(at.shape) {}
  LinkCosts links;
  GroupShape shape;
};
using Sides = absl::InlinedVector<Side, 1>;

// What one algorithm and protocol take on every side. They wait for each other, so that
// all go at the pace of the slowest.
struct PricedGroup {
  absl::InlinedVector<PricedTraffic, 1> sides;
  size_t slowest = 0;
  double delay_s = 0, rate_cap = 0;
  double seconds(int64_t bytes) const { return delay_s + bytes / rate_cap; }

  void Add(const PricedTraffic& priced, int64_t bytes) {
    if (!sides.empty() && priced.seconds(bytes) > sides[slowest].seconds(bytes)) {
      slowest = sides.size();
    }
    delay_s = std::max(delay_s, priced.delay_s);
    rate_cap = sides.empty() ? priced.rate_cap : std::min(rate_cap, priced.rate_cap);
    sides.push_back(priced);
  }
};

absl::Status NothingFits(const Machine& machine, const GroupShape& shape, CollectiveKind kind,
                         const CollectivePolicy& policy) {
  std::string asked =
      policy.algorithm.empty() ? "no algorithm" : absl::StrCat("`", policy.algorithm, "`");
  if (!policy.protocol.empty()) absl::StrAppend(&asked, " with protocol `", policy.protocol, "`");
  return absl::InvalidArgumentError(absl::StrCat(
      asked, policy.algorithm.empty() ? " does " : " does not do ", kCollectiveKindNames[kind],
      " over ", shape.members, " devices in ", shape.nodes, shape.nodes == 1 ? " node" : " nodes",
      " of `", machine.spec().name, "`. Leave algorithm and protocol open, or choose others."));
}

// Prices the candidates of one collective.
class Candidates {
 public:
  Candidates(const Sides& sides, const GroupTuners* tuners, CollectiveKind kind, int64_t bytes,
             const CollectivePolicy& policy)
      : sides_(sides), kind_(kind), bytes_(bytes), policy_(policy), tuners_(tuners) {}

  std::optional<PricedGroup> Best() const {
    if (NcclDecides()) {
      if (auto chosen = ChosenByNccl()) return chosen;
    }
    return Cheapest();
  }

  // The blocks of the kernel as NCCL launches it, or 0.
  int Channels(const PricedTraffic& best) const {
    const auto algorithm = NcclAlgorithmOf(best.traffic.algorithm);
    if (tuners_ == nullptr || !algorithm || !NcclKindOf(kind_)) return 0;
    NcclChoice choice = {*algorithm, best.protocol, 0, 1, 0};
    tuners_->choice.SizeLaunch(bytes_, &choice);
    return choice.channels;
  }

  // What ops in its kernel add, on the slowest side.
  double FusedSecondsOf(const PricedGroup& best) const {
    double most = 0;
    for (size_t s = 0; s < sides_.size(); ++s) {
      const PricedTraffic& priced = best.sides[s];
      FusedKernel kernel;
      kernel.kind = kind_;
      kernel.algorithm = priced.traffic.algorithm;
      kernel.protocol = priced.protocol;
      kernel.bytes = bytes_;
      kernel.transfer_s = static_cast<double>(bytes_) / best.rate_cap;
      kernel.members = sides_[s].shape.members;
      kernel.nodes = sides_[s].shape.nodes;
      kernel.channels = priced.cost->channels;
      kernel.launch = tuners_ == nullptr ? nullptr : &tuners_->choice;
      most = std::max(most, FusedSeconds(policy_.fused, kernel, sides_[s].links.machine.device()));
    }
    return most;
  }

 private:
  bool Allowed(Algorithm algorithm) const {
    const bool open = policy_.algorithm.empty() && algorithm != Algorithm::kCopy;
    return (open || policy_.algorithm == kAlgorithmNames[algorithm]) &&
           std::all_of(sides_.begin(), sides_.end(), [algorithm](const Side& side) {
             return MayUse(side.links.machine, algorithm);
           });
  }
  bool Allowed(Protocol protocol) const {
    return policy_.protocol.empty() || policy_.protocol == kProtocolNames[protocol];
  }
  // Nothing where it does not run on some side.
  std::optional<PricedGroup> PriceOf(Algorithm algorithm, Protocol protocol) const {
    PricedGroup group;
    for (const Side& side : sides_) {
      const std::optional<Traffic> traffic =
          TrafficOf(algorithm, side.shape, kind_, policy_.copies);
      if (!traffic) return std::nullopt;
      const auto priced = Price(side.links, side.shape, *traffic, protocol, kind_, bytes_,
                                policy_.bandwidth_scale, tuners_);
      if (!priced) return std::nullopt;
      group.Add(*priced, bytes_);
    }
    return group;
  }

  // Its tuner is followed where all links that the group crosses are such as it counts on: it
  // knows more of PCIe hosts than our rule for its graphs, inside them and from one to another.
  bool NcclDecides() const {
    const bool unlike = std::any_of(sides_.begin(), sides_.end(), [](const Side& side) {
      return (side.shape.nodes > 1 && side.links.network.picks_cheapest) ||
             (side.shape.per_node > 1 && side.links.node.picks_cheapest);
    });
    return tuners_ != nullptr && !unlike && NcclKindOf(kind_).has_value();
  }

  // What NCCL expects to be fastest of what our forms know, whatever it then takes.
  std::optional<PricedGroup> ChosenByNccl() const {
    struct Candidate {
      double expected;
      Algorithm algorithm;
      Protocol protocol;
    };
    absl::InlinedVector<Candidate, 12> candidates;
    for (const Algorithm algorithm : kAlgorithmNames.Values()) {
      const auto nccl_algorithm = NcclAlgorithmOf(algorithm);
      if (!nccl_algorithm || !Allowed(algorithm)) continue;
      for (const Protocol protocol : kProtocolNames.Values()) {
        if (!Allowed(protocol)) continue;
        const auto expected =
            tuners_->choice.Time(*NcclKindOf(kind_), *nccl_algorithm, protocol, bytes_);
        if (expected) candidates.push_back({*expected, algorithm, protocol});
      }
    }
    while (!candidates.empty()) {
      const auto first = std::min_element(
          candidates.begin(), candidates.end(),
          [](const Candidate& a, const Candidate& b) { return a.expected < b.expected; });
      if (auto priced = PriceOf(first->algorithm, first->protocol)) return priced;
      candidates.erase(first);
    }
    return std::nullopt;
  }

  std::optional<PricedGroup> Cheapest() const {
    std::optional<PricedGroup> best;
    for (const Algorithm algorithm : kAlgorithmNames.Values()) {
      if (!Allowed(algorithm)) continue;
      for (const Protocol protocol : kProtocolNames.Values()) {
        if (!Allowed(protocol)) continue;
        auto priced = PriceOf(algorithm, protocol);
        if (!priced || (best && priced->seconds(bytes_) >= best->seconds(bytes_))) continue;
        best = std::move(priced);
      }
    }
    return best;
  }

  const Sides& sides_;
  const CollectiveKind kind_;
  const int64_t bytes_;
  const CollectivePolicy& policy_;
  const GroupTuners* const tuners_;
};

RealisedCollective ToFixedPoint(const Sides& sides, const PricedGroup& best, int64_t bytes) {
  const PricedTraffic& slowest = best.sides[best.slowest];
  RealisedCollective result;
  result.algorithm = std::string(kAlgorithmNames[slowest.traffic.algorithm]);
  result.protocol = std::string(kProtocolNames[slowest.protocol]);
  result.delay_ps = ToPicoseconds(best.delay_s);
  result.work_bytes = bytes;
  result.rate_cap_bytes_per_s =
      std::max<int64_t>(1, static_cast<int64_t>(std::min(best.rate_cap, 9e18)));
  result.loads.reserve(5 * sides.size());
  result.channels = slowest.cost->channels;
  for (size_t s = 0; s < sides.size(); ++s) {
    const LinkCosts& links = sides[s].links;
    const PricedTraffic& priced = best.sides[s];
    const auto load = [&](const LinkClass* link, double value) {
      if (link == nullptr || value <= 0) return;
      result.loads.push_back({links.IndexOf(link), Coefficient(value), -1});
    };
    load(links.port, priced.port);  // in the order of the machine's classes
    load(links.uplink, priced.uplink);
    load(links.bridge, priced.bridge);
    load(links.nic, priced.nic);
    load(links.spine, priced.spine);
    load(links.between, priced.between);
    if (const int sms = links.machine.device().sms; sms > 0) {
      result.sm_fraction =
          std::max(result.sm_fraction, std::min(1.0, static_cast<double>(result.channels) / sms));
    }
  }
  const Side& side = sides[best.slowest];
  const Machine::Spec& spec = side.links.machine.spec();
  const std::string& link = side.shape.nodes > 1 ? spec.fabric : spec.intra_link;
  result.provenance.knowledge =
      slowest.cost->link == link ? Knowledge::kCalibrated : Knowledge::kExtrapolated;
  result.provenance.source = slowest.cost->source;
  result.factor = absl::StrCat(link, "/", result.algorithm);
  result.uses_no_sms = slowest.traffic.algorithm == Algorithm::kCopy;
  result.factor_sigma = slowest.cost->sigma;
  return result;
}

// The rate at which it flows alone on the idle machine.
int64_t AloneRate(const Machine& machine, const RealisedCollective& collective) {
  int64_t rate = collective.rate_cap_bytes_per_s;
  for (const LinkLoad& load : collective.loads) {
    const double capacity = machine.link_classes()[load.link_class].bytes_per_s;
    const auto link_rate = static_cast<int64_t>(
        capacity * kOneQ20 /
        static_cast<double>(std::max(load.coefficient_q20, load.ReceivedQ20())));
    rate = std::min(rate, std::max<int64_t>(1, link_rate));
  }
  return rate;
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
  ASSIGN_OR_RETURN(const SectionShapes shapes, ShapesOf(machine, group));
  if (IsOnHost(kind) && bytes > 0) {
    return RealiseOnHost(machine, kind, bytes, policy.nominal, shapes[0].section);
  }
  if (shapes[0].shape.members == 1 || bytes == 0) {
    RealisedCollective nothing;
    nothing.rate_cap_bytes_per_s = 1;
    nothing.provenance.source = "nothing to do";
    return nothing;
  }

  const ProtocolCosts& costs = policy.nominal ? ProtocolCosts::Nominal() : ProtocolCosts::Shipped();
  Sides sides;
  for (const SectionShape& at : shapes) sides.emplace_back(machine, costs, at);
  const Candidates candidates(sides, policy.nominal ? nullptr : TunersOf(machine, shapes), kind,
                              bytes, policy);
  const std::optional<PricedGroup> best = candidates.Best();
  const bool sends = kind == CollectiveKind::kPermute || kind == CollectiveKind::kSendRecv;
  if (!best && sends && policy.algorithm == kAlgorithmNames[Algorithm::kCopy]) {
    // Where copy engines do not reach, kernels send.
    CollectivePolicy open = policy;
    open.algorithm.clear();
    return Realise(machine, group, kind, bytes, open);
  }
  if (!best) return NothingFits(machine, shapes[0].shape, kind, policy);
  RealisedCollective realised = ToFixedPoint(sides, *best, bytes);
  const int channels = candidates.Channels(best->sides[best->slowest]);
  if (channels > 0) realised.channels = channels;
  if (!policy.fused.empty() && !policy.nominal) {
    realised.fused_ps = ToPicoseconds(candidates.FusedSecondsOf(*best));
    realised.delay_ps += realised.fused_ps;
  }
  return realised;
}

RealisedCollective WithLinksOfItsOwn(const Machine& machine, RealisedCollective collective) {
  collective.rate_cap_bytes_per_s = AloneRate(machine, collective);
  collective.loads.clear();
  return collective;
}

int64_t AloneTime(const Machine& machine, const RealisedCollective& collective) {
  if (collective.work_bytes == 0) return collective.delay_ps;
  const int64_t rate = AloneRate(machine, collective);
  const absl::uint128 work =
      absl::uint128(collective.work_bytes) * absl::uint128(1'000'000'000'000) +
      absl::uint128(rate - 1);
  return collective.delay_ps + static_cast<int64_t>(work / absl::uint128(rate));
}

}  // namespace plancast
