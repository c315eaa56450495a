#ifndef PLANCAST_COLLECTIVES_NCCL_TUNER_H_
#define PLANCAST_COLLECTIVES_NCCL_TUNER_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/enum_names.h"
#include "collectives/nccl/graphs.h"
#include "collectives/programs/program_kind.h"
#include "collectives/programs/protocol.h"

namespace plancast {

// In the order in which NCCL tries them: of equal times the first wins.
enum class NcclAlgorithm : uint8_t {
  kTree,
  kRing,
  kCollNetDirect,
  kCollNetChain,
  kNvls,
  kNvlsTree,
  kPat,
};
inline constexpr auto kNcclAlgorithmNames = NamesOf<NcclAlgorithm>(
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT");
inline constexpr int kNumNcclAlgorithms = kNcclAlgorithmNames.size();

// In any case of letters, as NCCL_ALGO and NCCL_PROTO are read.
absl::StatusOr<NcclAlgorithm> ParseNcclAlgorithm(absl::string_view name);
absl::StatusOr<Protocol> ParseNcclProtocol(absl::string_view name);

// What NCCL expects of one algorithm and protocol; it never runs where the
// bandwidth is 0.
struct NcclCost {
  double latency_us = 0;
  double bandwidth = 0;  // bytes of the buffer over time, GB/s of 1e9
};

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  double us = 0;     // as NCCL predicts it
  int channels = 1;  // blocks of the kernel
  int threads = 0;   // of a block
};

// What may be chosen.
struct NcclConstraints {
  std::optional<NcclAlgorithm> algorithm;
  std::optional<Protocol> protocol;
  bool nvls = true;  // switches can reduce this type with this operation
  bool fp8 = false;
};

// NCCL's forecast of a communicator's collectives (src/graph/tuning.cc of its
// release), by which it chooses algorithm and protocol. Kinds other than
// all_reduce, all_gather, reduce_scatter, broadcast and reduce have no forecast.
// Bytes follow nccl-tests (graph/collective_kind.h). Doubles throughout, where
// NCCL counts in floats.
class NcclTuner {
 public:
  // Fails where the communicator has no ring or its numbers do not fit.
  static absl::StatusOr<NcclTuner> Create(const NcclCommunicator& communicator);

  NcclCost Cost(ProgramKind kind, NcclAlgorithm algorithm, Protocol protocol) const;
  // The same at one size: trees do not reach their bandwidth at all sizes, and rings
  // over several nodes wait longer when chunks are large.
  NcclCost CostAt(ProgramKind kind, NcclAlgorithm algorithm, Protocol protocol,
                  int64_t bytes) const;
  // Microseconds; nothing where the pair does not run. `pipelined` collectives of a
  // group that are launched as one share the latency of a tree.
  std::optional<double> Time(ProgramKind kind, NcclAlgorithm algorithm, Protocol protocol,
                             int64_t bytes, int pipelined = 1) const;
  // Nothing where no pair runs.
  std::optional<NcclChoice> Choose(ProgramKind kind, int64_t bytes,
                                   const NcclConstraints& constraints = {}) const;
  // Channels and threads of a launch of this size.
  void SizeLaunch(int64_t bytes, NcclChoice* choice) const;

  const NcclCommunicator& communicator() const { return communicator_; }

 private:
  using PerProtocol = std::array<NcclCost, kNumProtocols>;
  using PerAlgorithm = std::array<PerProtocol, kNumNcclAlgorithms>;

  NcclTuner() = default;

  NcclCommunicator communicator_;
  std::array<PerAlgorithm, 6> costs_ = {};  // by ProgramKind, all_to_all empty
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_NCCL_TUNER_H_
