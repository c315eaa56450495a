#include "collectives/reshard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

// Prices of messages between pairs, which many have in common.
class PairPrices {
 public:
  PairPrices(const Machine& machine, const CollectivePolicy& policy)
      : machine_(machine), policy_(policy) {}

  absl::StatusOr<const RealisedCollective*> Of(const DeviceFlow& flow) {
    std::array<int64_t, 4> key = {flow.bytes, -1, flow.from, flow.to};
    if (!machine_.mixed()) {
      const int64_t per_host = machine_.spec().gpus_per_host;
      key = {flow.bytes, static_cast<int64_t>(machine_.CommonLevel(flow.from, flow.to)),
             flow.from % per_host, flow.to % per_host};
    }
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second.get();
    const std::array<int64_t, 2> pair = {std::min(flow.from, flow.to),
                                         std::max(flow.from, flow.to)};
    ASSIGN_OR_RETURN(
        RealisedCollective realised,
        Realise(machine_, GroupPattern::Of(pair), CollectiveKind::kSendRecv, flow.bytes, policy_));
    return known_.emplace(key, std::make_unique<RealisedCollective>(std::move(realised)))
        .first->second.get();
  }

 private:
  const Machine& machine_;
  const CollectivePolicy& policy_;
  absl::flat_hash_map<std::array<int64_t, 4>, std::unique_ptr<RealisedCollective>> known_;
};

}  // namespace

absl::StatusOr<RealisedCollective> RealiseReshard(const Machine& machine,
                                                  absl::Span<const DeviceFlow> flows,
                                                  const AmongReceivers& after,
                                                  const CollectivePolicy& policy) {
  RealisedCollective result;
  result.rate_cap_bytes_per_s = 1;
  result.provenance.source = "nothing to do";
  for (const DeviceFlow& flow : flows) {
    if (flow.from != flow.to) result.work_bytes = std::max(result.work_bytes, flow.bytes);
  }
  if (result.work_bytes == 0) return result;

  const auto work = static_cast<double>(result.work_bytes);
  PairPrices prices(machine, policy);
  double cap = 9e18;
  std::map<std::tuple<int, int64_t, bool>, double> loads;  // by link class, instance, received
  for (const DeviceFlow& flow : flows) {
    if (flow.from == flow.to || flow.bytes == 0) continue;
    ASSIGN_OR_RETURN(const RealisedCollective* pair, prices.Of(flow));
    const double share = static_cast<double>(flow.bytes) / work;
    cap = std::min(cap, static_cast<double>(pair->rate_cap_bytes_per_s) / share);
    result.delay_ps = std::max(result.delay_ps, pair->delay_ps);
    if (flow.bytes == result.work_bytes && result.factor.empty()) {
      result.algorithm = pair->algorithm;
      result.protocol = pair->protocol;
      result.channels = pair->channels;
      result.sm_fraction = pair->sm_fraction;
      result.provenance = pair->provenance;
      result.factor = pair->factor;
      result.factor_sigma = pair->factor_sigma;
    }
    for (const LinkLoad& load : pair->loads) {
      const double carried = share * static_cast<double>(load.coefficient_q20);
      for (const bool received : {false, true}) {
        const int64_t device = received ? flow.to : flow.from;
        if (!machine.Serves(load.link_class, device)) continue;
        loads[{load.link_class, machine.LinkInstance(load.link_class, device), received}] +=
            carried;
      }
    }
  }
  result.rate_cap_bytes_per_s = std::max<int64_t>(1, static_cast<int64_t>(std::min(cap, 9e18)));
  for (const auto& [key, carried] : loads) {
    const auto& [link_class, instance, received] = key;
    if (result.loads.empty() || result.loads.back().link_class != link_class) {
      result.loads.push_back({link_class, 0, 0});
    }
    LinkLoad& load = result.loads.back();
    int64_t& coefficient = received ? load.to_q20 : load.coefficient_q20;
    coefficient = std::max(coefficient, static_cast<int64_t>(std::ceil(carried - 1e-6)));
  }
  if (after.bytes > 0) {
    ASSIGN_OR_RETURN(const RealisedCollective among,
                     Realise(machine, after.group, after.kind, after.bytes, policy));
    const int64_t time = AloneTime(machine, among);
    const bool beside = after.kind == CollectiveKind::kBroadcast;
    result.delay_ps += beside ? std::max<int64_t>(0, time - AloneTime(machine, result)) : time;
  }
  return result;
}

}  // namespace plancast
