#include "cluster/catalogue.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "cluster/machine.h"
#include "cluster/machine_data.h"
#include "proto/text_proto.h"

namespace plancast {
namespace {

// A chain of `like`s longer than this goes in circles.
constexpr int kMaxLikes = 8;

template <typename Message>
Message Parse(absl::string_view stem) {
  const EmbeddedFile* file = FindByStem(MachineData(), stem);
  PLANCAST_CHECK(file != nullptr) << stem;
  auto message = ParseTextProto<Message>(file->contents, file->path);
  PLANCAST_CHECK_OK(message);
  return *std::move(message);
}

const proto::GpuCatalogue& Gpus() {
  static const auto& gpus = *new proto::GpuCatalogue(Parse<proto::GpuCatalogue>("gpus"));
  return gpus;
}

const proto::MachineCatalogue& Machines() {
  static const auto& machines =
      *new proto::MachineCatalogue(Parse<proto::MachineCatalogue>("machines"));
  return machines;
}

const proto::LinkCatalogue& Links() {
  static const auto& links = *new proto::LinkCatalogue(Parse<proto::LinkCatalogue>("links"));
  return links;
}

template <typename Entries>
auto Find(const Entries& entries, absl::string_view name) -> decltype(&*entries.begin()) {
  for (const auto& entry : entries) {
    if (entry.name() == name) return &entry;
  }
  return nullptr;
}

template <typename Entries>
std::vector<std::string> Names(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.name());
  std::sort(names.begin(), names.end());
  return names;
}

template <typename Entries>
absl::Status Unknown(absl::string_view what, absl::string_view name, const Entries& entries,
                     absl::string_view sizes = "") {
  // Longer ones are no sizes, and would make all names alike.
  constexpr size_t kLongestSizes = 8;
  if (sizes.size() > kLongestSizes) sizes = "";
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(absl::StrCat(entry.name(), sizes));
  // Of many machines with a GPU, NVIDIA's own before those of its customers.
  std::stable_partition(names.begin(), names.end(),
                        [](absl::string_view known) { return absl::StartsWith(known, "dgx"); });
  const std::string said = absl::StrCat(name, sizes);
  return absl::NotFoundError(absl::StrCat("no ", what, " `", said, "`.", Offer(said, names),
                                          " One of your own is a YAML file (docs/machines.md)."));
}

}  // namespace

std::vector<std::string> GpuNames() { return Names(Gpus().gpu()); }
std::vector<std::string> MachinePresetNames() { return Names(Machines().machine()); }

absl::StatusOr<proto::Gpu> CompleteGpu(const proto::Gpu& gpu) {
  proto::Gpu complete = gpu;
  proto::Gpu next = gpu;
  for (int i = 0; next.has_like(); ++i) {
    if (i == kMaxLikes) {
      return absl::InvalidArgumentError(
          absl::StrCat("GPU `", gpu.name(), "` is like itself. Break the circle of `like`."));
    }
    const proto::Gpu* base = Find(Gpus().gpu(), next.like());
    if (base == nullptr) return Unknown("GPU", next.like(), Gpus().gpu());
    proto::Gpu merged = *base;
    merged.MergeFrom(complete);
    merged.set_like(base->name());
    complete = std::move(merged);
    next = *base;
  }
  return complete;
}

absl::StatusOr<proto::Gpu> FindGpu(absl::string_view name) {
  const proto::Gpu* gpu = Find(Gpus().gpu(), name);
  if (gpu == nullptr) return Unknown("GPU", name, Gpus().gpu());
  return CompleteGpu(*gpu);
}

absl::StatusOr<proto::Machine> FindMachinePreset(absl::string_view name, absl::string_view sizes) {
  const proto::Machine* machine = Find(Machines().machine(), name);
  if (machine == nullptr) return Unknown("machine", name, Machines().machine(), sizes);
  return *machine;
}

const proto::LinkType* FindIntraLinkType(absl::string_view name) {
  return Find(Links().intra(), name);
}

double ShippedHostUpdateShare() { return Links().host_update_share(); }

const proto::LinkType* FindFabricType(absl::string_view name) {
  return Find(Links().fabric(), name);
}

}  // namespace plancast
