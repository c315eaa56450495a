#include "cost_models/interference.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/embedded_file.h"
#include "base/status_macros.h"
#include "cost_models/coefficients/coefficient_tables.h"
#include "cost_models/interference_data.h"
#include "proto/kernel_cost.pb.h"
#include "proto/text_proto.h"

namespace plancast {
namespace {

absl::Status Check(const Interference& entry) {
  for (const int sms : {entry.sms_inside, entry.sms_per_interface, entry.most_sms_network}) {
    if (sms >= 0 && sms <= 1024) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a collective takes ", sms, " SMs; it has to be between 0 and 1024."));
  }
  for (const double bytes : {entry.memory_per_byte_inside, entry.memory_per_byte_network}) {
    if (bytes >= 0 && bytes <= 100) continue;
    return absl::InvalidArgumentError(absl::StrCat("a byte sent moves ", bytes,
                                                   " bytes of memory; it has to be between 0 and "
                                                   "100."));
  }
  for (const double fraction : {entry.link_fraction_inside, entry.link_fraction_network}) {
    if (fraction >= 0 && fraction <= 1) continue;
    return absl::InvalidArgumentError(absl::StrCat("a collective reaches ", fraction,
                                                   " of a link; it has to be between 0 and 1."));
  }
  if (!(entry.product_sms_per_held >= 1 && entry.product_sms_per_held <= 16)) {
    return absl::InvalidArgumentError(absl::StrCat("product_sms_per_held is ",
                                                   entry.product_sms_per_held,
                                                   "; it has to be between 1 and 16."));
  }
  return absl::OkStatus();
}

// `rate`: bytes/s that one device sends.
CollectiveFootprint Footprint(const DeviceType& device, const Interference& entry, int64_t sms,
                              double rate, double memory_per_byte) {
  CollectiveFootprint footprint;
  // Some SMs are always left to kernels.
  if (device.sms > 0) {
    const double held = static_cast<double>(sms) / device.sms;
    footprint.sm_fraction = std::min(held, 0.9);
    footprint.product_sm_fraction = std::min(held * entry.product_sms_per_held, 0.9);
  }
  footprint.memory_bytes_per_s = rate * memory_per_byte;
  return footprint;
}

// What device memory sustains, bytes a second.
double SustainedBandwidth(const DeviceType& device) {
  const auto* entry = CoefficientTables::Shipped().FindMemory(device);
  return device.memory_bytes_per_s * (entry == nullptr ? 1 : entry->coefficients.memory_fraction);
}

// What both ask of memory together, of what it sustains.
double MemoryDemand(const DeviceType& device, const KernelCost& kernel,
                    const CollectiveFootprint& collective) {
  const double sustained = SustainedBandwidth(device);
  if (sustained <= 0) return 0;
  return MemoryBoundness(device, kernel) + collective.memory_bytes_per_s / sustained;
}

}  // namespace

absl::StatusOr<InterferenceTable> InterferenceTable::Parse(absl::string_view text,
                                                           absl::string_view what) {
  ASSIGN_OR_RETURN(const auto proto, ParseTextProto<proto::InterferenceTable>(text, what));
  InterferenceTable table;
  std::set<std::string> known;
  for (const proto::Interference& in : proto.interference()) {
    Interference entry;
    entry.gpus.assign(in.gpu().begin(), in.gpu().end());
    entry.sms_inside = in.sms_inside();
    entry.sms_per_interface = in.sms_per_interface();
    entry.most_sms_network = in.most_sms_network();
    entry.memory_per_byte_inside = in.memory_per_byte_inside();
    entry.memory_per_byte_network = in.memory_per_byte_network();
    entry.link_fraction_inside = in.link_fraction_inside();
    entry.link_fraction_network = in.link_fraction_network();
    if (in.has_product_sms_per_held()) entry.product_sms_per_held = in.product_sms_per_held();
    entry.source = in.source();
    const std::string name = entry.gpus.empty() ? "all others" : entry.gpus[0];
    RETURN_IF_ERROR(Check(entry)) << what << ": " << name;
    for (const std::string& gpu : entry.gpus) {
      if (known.insert(gpu).second) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": `", gpu, "` is named twice. Keep one."));
    }
    if (entry.gpus.empty()) {
      if (table.others_ >= 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(what, ": two entries name no GPU. Keep one for all others."));
      }
      table.others_ = static_cast<int>(table.entries_.size());
    }
    table.entries_.push_back(std::move(entry));
  }
  if (table.others_ < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": no entry serves GPUs that none names. Add one without `gpu`."));
  }
  return table;
}

const InterferenceTable& InterferenceTable::Shipped() {
  static const InterferenceTable* const table = [] {
    const EmbeddedFile* file = FindByStem(InterferenceData(), "interference");
    PLANCAST_CHECK(file != nullptr);
    auto parsed = Parse(file->contents, file->path);
    PLANCAST_CHECK_OK(parsed);
    return new InterferenceTable(*std::move(parsed));
  }();
  return *table;
}

const Interference& InterferenceTable::Of(const DeviceType& device) const {
  for (const std::string& name : {device.name, device.like}) {
    for (const Interference& entry : entries_) {
      if (std::find(entry.gpus.begin(), entry.gpus.end(), name) != entry.gpus.end()) return entry;
    }
  }
  return entries_[others_];
}

CollectiveFootprint FootprintInside(const Machine& machine, int sms,
                                    const InterferenceTable& table) {
  const Interference& entry = table.Of(machine.device());
  double rate = 0;
  if (machine.intra_class() >= 0) {
    rate = machine.link_classes()[machine.intra_class()].bytes_per_s * entry.link_fraction_inside;
  }
  return Footprint(machine.device(), entry, sms > 0 ? sms : entry.sms_inside, rate,
                   entry.memory_per_byte_inside);
}

CollectiveFootprint FootprintAcross(const Machine& machine, int64_t members, int64_t interfaces,
                                    double most, int sms, const InterferenceTable& table) {
  const Interference& entry = table.Of(machine.device());
  double rate = 0;
  if (const int nic = machine.FindLinkClass(LinkKind::kNic); nic >= 0) {
    const double full = machine.link_classes()[nic].bytes_per_s * entry.link_fraction_network;
    rate = std::min(full, most) * static_cast<double>(interfaces) / static_cast<double>(members);
  }
  const int64_t held =
      sms > 0 ? sms
              : std::min<int64_t>(entry.sms_per_interface * interfaces, entry.most_sms_network);
  return Footprint(machine.device(), entry, held, rate, entry.memory_per_byte_network);
}

double MemoryBoundness(const DeviceType& device, const KernelCost& kernel) {
  const double sustained = SustainedBandwidth(device);
  if (sustained <= 0 || kernel.seconds_alone <= 0) return 0;
  return std::min(kernel.hbm_bytes / kernel.seconds_alone / sustained, 1.0);
}

double KernelSlowdown(const DeviceType& device, const KernelSpec& kernel, const KernelCost& cost,
                      const CollectiveFootprint& collective) {
  const double held = kernel.family == KernelFamily::kGemm
                          ? std::max(collective.product_sm_fraction, collective.sm_fraction)
                          : collective.sm_fraction;
  const double crowding = std::max(cost.sm_fraction / (1 - held), 1.0);
  const double computing = 1 - MemoryBoundness(device, cost);
  return std::max(1 + computing * (crowding - 1), MemoryDemand(device, cost, collective));
}

double CollectiveSlowdown(const DeviceType& device, const KernelCost& kernel,
                          const CollectiveFootprint& collective) {
  if (collective.memory_bytes_per_s <= 0) return 1;
  return std::max(MemoryDemand(device, kernel, collective), 1.0);
}

}  // namespace plancast
