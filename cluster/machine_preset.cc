#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cluster/catalogue.h"
#include "cluster/machine.h"
#include "cluster/machine_proto.h"
#include "cluster/mixed_machine.h"

namespace plancast {
namespace {

absl::Status Malformed(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("`", text,
                   "` is no machine. Write PRESET:HOSTS or PRESET:HOSTSxGPUS_PER_HOST, for example "
                   "`dgx-h100:16` or `dgx-h100:2x4`, or several joined by `+`."));
}

// A whole number, however long; the bounds are Machine::Create's.
absl::Status ParseCount(absl::string_view text, absl::string_view what, absl::string_view word,
                        int64_t& count) {
  if (absl::SimpleAtoi(word, &count) && count >= 1 && count <= 1'000'000) {
    return absl::OkStatus();
  }
  absl::string_view digits = word;
  absl::ConsumePrefix(&digits, "-");
  const bool number = !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
  if (!number) return Malformed(text);
  return absl::InvalidArgumentError(absl::StrCat("`", text, "` asks for ", word, " ", what,
                                                 "; it has to be between 1 and 1000000."));
}

// Uses `gpus` of a host's accelerators, with the interfaces next to them.
void UsePartOfHost(int64_t gpus, Machine::Spec& spec, double mesh_share) {
  spec.nics_per_host = std::max<int64_t>(1, spec.nics_per_host * gpus / spec.gpus_per_host);
  spec.intra_bytes_per_s *= mesh_share;
  spec.gpus_per_host = gpus;
}

absl::StatusOr<Machine> OnePreset(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  if (parts.size() > 2 || parts[0].empty()) return Malformed(text);
  ASSIGN_OR_RETURN(proto::Machine proto, FindMachinePreset(parts[0], text.substr(parts[0].size())));
  if (parts.size() == 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` does not say how many hosts. For one write `", text, ":1`."));
  }
  const std::vector<absl::string_view> counts = absl::StrSplit(parts[1], 'x');
  if (counts.size() > 2) return Malformed(text);
  int64_t hosts = 0;
  RETURN_IF_ERROR(ParseCount(text, "hosts", counts[0], hosts));
  proto.set_hosts(static_cast<int32_t>(hosts));
  ASSIGN_OR_RETURN(Machine machine, MachineFromProto(proto));
  if (counts.size() == 1) return machine;

  int64_t gpus = 0;
  RETURN_IF_ERROR(ParseCount(text, "GPUs per host", counts[1], gpus));
  Machine::Spec spec = machine.spec();
  if (gpus > spec.gpus_per_host) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", text, "` asks for ", gpus, " GPUs per host; a `", parts[0], "` host has ",
        spec.gpus_per_host, ". Ask for more hosts, or describe your host in a machine file."));
  }
  UsePartOfHost(gpus, spec, machine.MeshShare(gpus));
  return Machine::Create(std::move(spec));
}

}  // namespace

absl::StatusOr<Machine> MachineFromPreset(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '+');
  if (parts.size() == 1) return OnePreset(text);
  std::vector<Machine> machines;
  for (const absl::string_view part : parts) {
    ASSIGN_OR_RETURN(Machine machine, OnePreset(part), _ << "`" << text << "`");
    machines.push_back(std::move(machine));
  }
  return CombineMachines(machines);
}

}  // namespace plancast
