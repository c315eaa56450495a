#ifndef PLANCAST_COST_MODELS_INTERFERENCE_H_
#define PLANCAST_COST_MODELS_INTERFERENCE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/machine.h"
#include "cost_models/kernel_cost.h"
#include "graph/kernel_spec.h"

namespace plancast {

// What a collective takes of each of its devices while it runs.
struct CollectiveFootprint {
  double sm_fraction = 0;          // SMs that its kernels hold, of all
  double memory_bytes_per_s = 0;   // its traffic on device memory
  double product_sm_fraction = 0;  // SMs that products cannot use then
};

// How kernels and collectives of a family of GPUs slow each other while both
// run; proto/kernel_cost.proto explains each figure.
struct Interference {
  std::vector<std::string> gpus;
  int sms_inside = 0, sms_per_interface = 0, most_sms_network = 0;
  double memory_per_byte_inside = 0, memory_per_byte_network = 0;
  double link_fraction_inside = 1, link_fraction_network = 1;
  double product_sms_per_held = 1;
  std::string source;
};

class InterferenceTable {
 public:
  // Text proto of type InterferenceTable. Errors: a figure out of range, a GPU
  // named twice, no entry for the GPUs that none names.
  static absl::StatusOr<InterferenceTable> Parse(absl::string_view text, absl::string_view what);
  // cost_models/data/interference.textproto.
  static const InterferenceTable& Shipped();

  // By name, then by the GPU that `device` is like, then the entry for all others.
  const Interference& Of(const DeviceType& device) const;

 private:
  std::vector<Interference> entries_;
  int others_ = -1;
};

// Of a collective at full rate inside one host or NVLink domain. `sms`: that its kernels hold;
// 0: as many as NCCL's.
CollectiveFootprint FootprintInside(const Machine& machine, int sms = 0,
                                    const InterferenceTable& table = InterferenceTable::Shipped());

// Of a collective over the network, with `members` devices in each host or domain next to
// `interfaces` of its interfaces; both positive. An interface carries what it can at full rate,
// or `most` bytes/s where others of its links let less through.
CollectiveFootprint FootprintAcross(const Machine& machine, int64_t members, int64_t interfaces,
                                    double most = std::numeric_limits<double>::infinity(),
                                    int sms = 0,
                                    const InterferenceTable& table = InterferenceTable::Shipped());

// The share of the bandwidth that device memory sustains which the kernel uses
// alone, 0 to 1: how far it is bound by memory.
double MemoryBoundness(const DeviceType& device, const KernelCost& kernel);

// Time of a kernel alongside a collective over its time alone, at least 1. Of what
// is bound by computing, the share on SMs that it cannot use then waits for the others;
// what is bound by memory waits where both together ask for more than memory sustains.
double KernelSlowdown(const DeviceType& device, const KernelSpec& kernel, const KernelCost& cost,
                      const CollectiveFootprint& collective);

// Time of a collective alongside a kernel over its time alone, at least 1. It keeps
// its SMs, so it loses only where memory is short.
double CollectiveSlowdown(const DeviceType& device, const KernelCost& kernel,
                          const CollectiveFootprint& collective);

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_INTERFERENCE_H_
