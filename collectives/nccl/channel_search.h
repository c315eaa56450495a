#ifndef PLANCAST_COLLECTIVES_NCCL_CHANNEL_SEARCH_H_
#define PLANCAST_COLLECTIVES_NCCL_CHANNEL_SEARCH_H_

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "cluster/topology/paths.h"
#include "cluster/topology/topology.h"
#include "collectives/nccl/graphs.h"
#include "collectives/nccl/search_rules.h"

namespace plancast {

// What the search varies and what it has found. GPUs and network devices are indices
// into the topology's lists of them.
struct ChannelPlan {
  NcclPattern pattern = NcclPattern::kRing;
  bool collnet = false;  // only network devices that reduce
  int min_channels = 1, max_channels = 1;
  int cross_nic = 0;
  float bw_intra = 0, bw_inter = 0, latency_inter = 0;
  PathType type_intra = PathType::kLoc, type_inter = PathType::kPix;
  bool same_channels = true;
  int hops = 0;
  int channels = 0;
  std::vector<int> gpus;  // [channel * number of GPUs + step]
  std::vector<int> nets;  // [channel * 2], [channel * 2 + 1]
};

// NCCL's depth-first search for as many channels of a given bandwidth as fit: every
// step takes the channel's bandwidth from all links of its path and gives it back on
// return (src/graph/search.cc of a release).
class ChannelSearch {
 public:
  // `inter`: the channels begin and end at network devices. Both have to outlive it.
  ChannelSearch(const Topology& topology, const TopologyPaths& paths, bool inter);

  // Searches with the limits of `plan` for better channels than `best` has, within
  // `steps` steps: on return what is left of them, or -1 if there cannot be better.
  void Run(ChannelPlan& plan, ChannelPlan& best, int& steps);

  // Network devices in the order of trial: at the start of a channel (`gpu` < 0), or
  // on the way back from a GPU.
  const std::vector<int>& NetsToTry(PathType farthest, int gpu);

  int gpus() const { return static_cast<int>(gpus_.size()); }

 private:
  enum class Order { kFree, kPci, kReplay };
  // Where a channel returns: the step at which it goes back to the network, and that
  // at which it closes.
  struct Ends {
    int to_net;
    int to_first;
  };

  // A link, and what traffic on it takes of the link back.
  struct LinkState {
    float rate;         // what is left
    bool pci;           // takes more where Intel's root complex splits packets
    bool from_outside;  // into an old GPU: an eighth back, of what no GPU sends
    bool all_back;      // NVLink into a processor: as much back
    int reverse;
  };
  using Steps = absl::InlinedVector<int, 16>;

  void AddLink(const TopologyLink& link);
  std::array<int, 2> PciLinksOf(int device) const;
  void NextChannel();
  void FromNet(Ends ends);
  void FromNetDevice(int net, int tried, Ends ends, bool* head_found);
  void StartAtLocalGpus(int net, Ends ends);
  void StartAtLocalGpus217(int net, float bw, Ends ends);
  void TryGpu(int from, int gpu, int step, Ends ends, Order order);
  void AtGpu(int gpu, int step, Ends ends, Order order);
  void BackToNet(int gpu, int step, Ends ends, Order order);
  void ToNextGpu(int gpu, int step, Ends ends, Order order);
  void TryNvls(int head);
  void TryCollNetDirect(int head);
  void Finish();
  bool Better() const;
  bool NetFits(int net, int step) const;
  Steps NextGpus(int gpu, int sort_by_net) const;
  Steps Neighbours(int gpu) const;
  int Replay(int step) const;

  // Takes `times` the channel's bandwidth along the path between two nodes of the
  // topology; false, and nothing taken, where it does not fit.
  bool Take(int from, int to, float times);
  void Give(int from, int to, float times) { Take(from, to, -times); }
  int TakeLinks(const TopologyPath& path, bool from_gpu, int count, float bw);
  void ChargeNet(int net, float bw);
  int PciRate(int gpu) const;
  std::vector<int> FarNets(PathType farthest, int gpu, std::vector<int> nets) const;
  std::vector<int> PreferredNets(int gpu) const;

  const Topology& topology_;
  const TopologyPaths& paths_;
  const SearchRules& rules_;
  const NcclVersion version_;
  const bool inter_;
  const std::vector<int>& gpus_;
  const std::vector<int>& nets_;
  std::vector<int> first_net_;                  // of devices of one number the first
  std::vector<int> local_gpu_;                  // of network devices: the GPU to feed it, or -1
  std::vector<std::vector<int>> nearest_gpus_;  // of network devices
  std::vector<LinkState> links_;
  std::vector<std::array<int, 2>> pci_links_;  // of GPUs: to the bus and back, or -1
  std::vector<bool> intel_;                    // of nodes: an Intel processor
  std::vector<float> net_rate_;                // what is left of network devices
  std::vector<int> connections_;
  std::vector<uint64_t> used_;  // by GPU: one bit for every channel
  std::map<std::pair<PathType, int>, std::vector<int>> to_try_;
  ChannelPlan* plan_ = nullptr;
  ChannelPlan* best_ = nullptr;
  int* steps_ = nullptr;
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_CHANNEL_SEARCH_H_
