#include "interop/astra/simulator/wires.h"

#include <algorithm>

#include "base/check.h"

namespace plancast::astra {
namespace {

// Their GB is 2^30 bytes.
double BytesPerNs(double gib_per_s) { return gib_per_s * (1 << 30) / 1'000'000'000; }

}  // namespace

Wires::Wires(const AstraNetwork& network) {
  int64_t stride = 1, links = 0;
  for (const AstraNetwork::Dim& dim : network.dims) {
    // A ring has one each way round, a switch one up and one down.
    const int64_t per_npu = dim.wiring == AstraWiring::kFullyConnected ? dim.npus : 2;
    dims_.push_back(
        {dim.wiring, dim.npus, stride, BytesPerNs(dim.gib_per_s), dim.latency_ns, links, per_npu});
    stride *= dim.npus;
    links += network.npus() * per_npu;
  }
}

const Wires::Dim& Wires::FirstDifferent(int64_t from, int64_t to) const {
  for (const Dim& dim : dims_) {
    if (CoordinateOf(from, dim) != CoordinateOf(to, dim)) return dim;
  }
  PLANCAST_CHECK(false) << "a message from " << from << " to itself";
  return dims_[0];
}

int64_t Wires::Delay(int64_t from, int64_t to, int64_t bytes) const {
  const Dim& dim = FirstDifferent(from, to);
  int64_t hops = dim.wiring == AstraWiring::kSwitch ? 2 : 1;
  if (dim.wiring == AstraWiring::kRing) {
    const int64_t forward = (CoordinateOf(to, dim) - CoordinateOf(from, dim) + dim.size) % dim.size;
    hops = std::min(forward, dim.size - forward);
  }
  return static_cast<int64_t>(static_cast<double>(hops) * dim.latency_ns +
                              static_cast<double>(bytes) / dim.bytes_per_ns);
}

int32_t Wires::LinkAt(const Dim& dim, int64_t npu, int64_t slot) {
  const auto [it, added] = made_.try_emplace(dim.first_link + npu * dim.links_per_npu + slot,
                                             static_cast<int32_t>(links_.size()));
  if (added) links_.push_back({static_cast<int32_t>(&dim - dims_.data())});
  return it->second;
}

Wires::Hop Wires::NextHop(Place at, int64_t to) {
  const Dim& dim = at.through >= 0 ? dims_[at.through] : FirstDifferent(at.npu, to);
  const int64_t here = CoordinateOf(at.npu, dim), there = CoordinateOf(to, dim);
  const auto npu_at = [&](int64_t coordinate) {
    return static_cast<int32_t>(at.npu + (coordinate - here) * dim.stride);
  };
  switch (dim.wiring) {
    case AstraWiring::kRing: {
      const int64_t forward = (there - here + dim.size) % dim.size;
      const bool back = dim.size - forward < forward;
      const int64_t next = (here + (back ? dim.size - 1 : 1)) % dim.size;
      return {LinkAt(dim, at.npu, back ? 1 : 0), {npu_at(next), -1}};
    }
    case AstraWiring::kFullyConnected:
      return {LinkAt(dim, at.npu, there), {npu_at(there), -1}};
    case AstraWiring::kSwitch:
      break;
  }
  if (at.through < 0) {
    return {LinkAt(dim, at.npu, 0), {at.npu, static_cast<int32_t>(&dim - dims_.data())}};
  }
  return {LinkAt(dim, npu_at(there), 1), {npu_at(there), -1}};
}

int64_t Wires::SerialisationTime(int32_t link, int64_t bytes) const {
  return static_cast<int64_t>(static_cast<double>(bytes) / dims_[links_[link].dim].bytes_per_ns);
}

int64_t Wires::ArrivalTime(int32_t link, int64_t bytes) const {
  const Dim& dim = dims_[links_[link].dim];
  return static_cast<int64_t>(dim.latency_ns + static_cast<double>(bytes) / dim.bytes_per_ns);
}

}  // namespace plancast::astra
