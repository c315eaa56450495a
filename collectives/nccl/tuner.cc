#include "collectives/nccl/tuner.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/suggest.h"
#include "collectives/nccl/tuner_costs.h"
#include "collectives/nccl/tuner_tables.h"

namespace plancast {
namespace {

constexpr ProgramKind kKinds[] = {ProgramKind::kAllReduce, ProgramKind::kAllGather,
                                  ProgramKind::kReduceScatter, ProgramKind::kBroadcast,
                                  ProgramKind::kReduce};
// Threads of a warp, and the most of a block of a primitive.
constexpr int kWarp = 32, kMostThreads = 640, kSimpleThreads = 512;
// Collectives of a batch that one launch takes (NCCL_MAX_DEV_WORK_BATCH_COLLS).
constexpr int kBatch = 4;

template <typename Enum, size_t n>
absl::StatusOr<Enum> Parse(absl::string_view what, absl::string_view name,
                           const EnumNames<Enum, n>& names) {
  for (const absl::string_view known : names) {
    if (absl::EqualsIgnoreCase(known, name)) return *names.Find(known);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("NCCL has no ", what, " `", name, "`.", Offer(name, names)));
}

bool Forecasts(ProgramKind kind) {
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

// log2, rounded down; -1 of 0.
int Log2(int64_t value) {
  int log = -1;
  for (; value > 0; value >>= 1) ++log;
  return log;
}

// What trees reach of their bandwidth at this size.
double TreeCorrection(const NcclCommunicator& comm, NcclAlgorithm algorithm, Protocol protocol,
                      int64_t bytes) {
  const auto& correction =
      NcclTunerTables::Shipped(comm.version).tree_correction[static_cast<int>(protocol)];
  int entries = 0;
  if (algorithm == NcclAlgorithm::kTree) entries = 23;
  if (algorithm == NcclAlgorithm::kNvlsTree && comm.version == NcclVersion::k2_30 &&
      comm.min_compute_capability >= 100 && comm.cpu_arch == CpuArch::kX86) {
    entries = 24;
  }
  int index = Log2(bytes >> 6);
  if (comm.version == NcclVersion::k2_17) index = std::max(index, 0);
  if (index < 0 || index >= std::min<int>(entries, correction.size())) return 1;
  return correction[index];
}

// Rings of large chunks over several nodes wait for each other.
double RingPlateau(const NcclCommunicator& comm, int64_t bytes) {
  const int capability = comm.min_compute_capability;
  if (comm.version == NcclVersion::k2_17) {
    if (static_cast<double>(bytes) < comm.ranks / 16.0 * 65536) return 1;
    return capability < 90 ? 1.9 : 1.5;
  }
  const int64_t parts = static_cast<int64_t>(comm.channels) * comm.ranks;
  if (bytes / std::max<int64_t>(1, parts) < 64) return 1;
  return capability < 80 ? 1.9 : 1.4;
}

}  // namespace

absl::StatusOr<NcclAlgorithm> ParseNcclAlgorithm(absl::string_view name) {
  return Parse("algorithm", name, kNcclAlgorithmNames);
}
absl::StatusOr<Protocol> ParseNcclProtocol(absl::string_view name) {
  return Parse("protocol", name, kProtocolNames);
}

absl::StatusOr<NcclTuner> NcclTuner::Create(const NcclCommunicator& communicator) {
  if (communicator.ranks < 2 || communicator.nodes < 1 || communicator.ranks < communicator.nodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a communicator of ", communicator.ranks, " ranks in ", communicator.nodes,
                     " nodes has nothing to tune; it takes two ranks, and one in every node."));
  }
  if (communicator.ring.num_channels < 1) {
    return absl::InvalidArgumentError(
        "a communicator without a ring cannot run; search its graphs first.");
  }
  NcclTuner tuner;
  tuner.communicator_ = communicator;
  const NcclTunerTables& tables = NcclTunerTables::Shipped(communicator.version);
  for (const ProgramKind kind : kKinds) {
    for (int a = 0; a < kNumNcclAlgorithms; ++a) {
      for (int p = 0; p < kNumProtocols; ++p) {
        tuner.costs_[static_cast<int>(kind)][a][p] = NcclCostOf(
            communicator, tables, kind, static_cast<NcclAlgorithm>(a), static_cast<Protocol>(p));
      }
    }
  }
  return tuner;
}

NcclCost NcclTuner::Cost(ProgramKind kind, NcclAlgorithm algorithm, Protocol protocol) const {
  if (!Forecasts(kind)) return {};
  return costs_[static_cast<int>(kind)][static_cast<int>(algorithm)][static_cast<int>(protocol)];
}

NcclCost NcclTuner::CostAt(ProgramKind kind, NcclAlgorithm algorithm, Protocol protocol,
                           int64_t bytes) const {
  NcclCost cost = Cost(kind, algorithm, protocol);
  if (kind != ProgramKind::kAllReduce) return cost;
  cost.bandwidth *= TreeCorrection(communicator_, algorithm, protocol, bytes);
  if (algorithm == NcclAlgorithm::kRing && protocol == Protocol::kSimple &&
      communicator_.nodes > 1) {
    cost.latency_us *= RingPlateau(communicator_, bytes);
  }
  return cost;
}

std::optional<double> NcclTuner::Time(ProgramKind kind, NcclAlgorithm algorithm, Protocol protocol,
                                      int64_t bytes, int pipelined) const {
  const NcclCost cost = CostAt(kind, algorithm, protocol, bytes);
  if (cost.bandwidth <= 0) return std::nullopt;
  const int latencies =
      algorithm == NcclAlgorithm::kRing ? pipelined : (pipelined + kBatch - 1) / kBatch;
  return cost.latency_us * latencies + static_cast<double>(bytes) / (1000 * cost.bandwidth);
}

std::optional<NcclChoice> NcclTuner::Choose(ProgramKind kind, int64_t bytes,
                                            const NcclConstraints& constraints) const {
  std::optional<NcclChoice> best;
  for (int a = 0; a < kNumNcclAlgorithms; ++a) {
    const auto algorithm = static_cast<NcclAlgorithm>(a);
    if (constraints.algorithm && *constraints.algorithm != algorithm) continue;
    const bool switches =
        algorithm == NcclAlgorithm::kNvls || algorithm == NcclAlgorithm::kNvlsTree;
    if (switches && !constraints.nvls) continue;
    for (int p = 0; p < kNumProtocols; ++p) {
      const auto protocol = static_cast<Protocol>(p);
      if (constraints.protocol && *constraints.protocol != protocol) continue;
      std::optional<double> time = Time(kind, algorithm, protocol, bytes);
      if (!time) continue;
      // Rings round FP8 once a step: NCCL avoids them.
      if (constraints.fp8 && algorithm == NcclAlgorithm::kRing && communicator_.ranks > 8) {
        *time *= 1024;
      }
      if (best && *time >= best->us) continue;
      best = NcclChoice{algorithm, protocol, *time, 1, 0};
    }
  }
  if (best) SizeLaunch(bytes, &*best);
  return best;
}

void NcclTuner::SizeLaunch(int64_t bytes, NcclChoice* choice) const {
  const NcclCommunicator& comm = communicator_;
  const bool simple = choice->protocol == Protocol::kSimple;
  const bool ring = choice->algorithm == NcclAlgorithm::kRing;
  const bool tree = choice->algorithm == NcclAlgorithm::kTree;
  int64_t threshold = simple ? 64 : 8;
  if (ring && choice->protocol == Protocol::kLl) threshold *= comm.ranks;
  int threads = kSimpleThreads;
  if (choice->protocol == Protocol::kLl128) threads = kMostThreads;
  if (ring && simple && comm.ring.bw_intra * comm.ring.num_channels <= 12) threads = 256;
  int channels = std::max(1, comm.channels);
  switch (choice->algorithm) {
    case NcclAlgorithm::kNvls:
    case NcclAlgorithm::kNvlsTree:
      if (comm.nvls_channels > 0) {
        const bool network = comm.nodes > 1 && choice->algorithm == NcclAlgorithm::kNvls;
        channels = network ? std::min(channels, comm.nvls_channels) : comm.nvls_channels;
      }
      choice->channels = channels;
      choice->threads = kMostThreads;
      return;
    case NcclAlgorithm::kCollNetDirect: {
      threads = kMostThreads;
      threshold = 512;
      const int64_t heads = std::max(1, comm.collnet_direct.num_channels);
      bool small = true;
      for (int step = 16; step >= 1 && small; step /= 2) {
        while ((small = bytes < channels * threads * heads * threshold) && channels > step) {
          if (channels == step + step / 2) threshold /= 2;
          --channels;
        }
      }
      choice->channels = channels;
      choice->threads = threads;
      return;
    }
    case NcclAlgorithm::kCollNetChain:
      threads = kMostThreads;
      threshold = 512;
      break;
    default:
      break;
  }
  while (channels > 1 && bytes < channels * threads * threshold) --channels;
  while (threads % 128 == 0 && bytes < channels * threads * threshold) threads /= 2;
  if (simple && ring) threads += kWarp;  // a warp that only synchronises
  threads = std::max(threads, 3 * kWarp);
  if (tree || choice->algorithm == NcclAlgorithm::kPat) threads = kMostThreads;
  choice->channels = channels;
  choice->threads = threads;
}

}  // namespace plancast
