#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "cluster/machine_proto.h"
#include "cost_models/interference.h"
#include "graph/transformer/transformer_config.h"
#include "tests/fuzz/native/targets/groups.h"

namespace plancast {
namespace {

// A name that the catalogue does not have is NotFound, what is not simulated Unimplemented.
absl::Status Refused(const absl::Status& answer) {
  return absl::IsNotFound(answer) || absl::IsUnimplemented(answer)
             ? absl::InvalidArgumentError(answer.message())
             : answer;
}

absl::Status MachinePreset(absl::string_view bytes) {
  return Refused(MachineFromPreset(bytes).status());
}

// What was read is written and read again.
absl::Status MachineJson(absl::string_view bytes) {
  const absl::StatusOr<Machine> machine = MachineFromJson(bytes, "machine");
  if (!machine.ok()) return Refused(machine.status());
  const absl::Status again = MachineFromJson(MachineToJson(*machine), "machine").status();
  return again.ok() ? again : absl::InternalError(again.message());
}

absl::Status Transformer(absl::string_view bytes) {
  const absl::StatusOr<TransformerConfig> config = ParseTransformerConfig(bytes, "model");
  if (!config.ok()) return Refused(config.status());
  const absl::Status again = ParseTransformerConfig(TransformerConfigJson(*config), "m").status();
  return again.ok() ? again : absl::InternalError(again.message());
}

absl::Status Interferences(absl::string_view bytes) {
  return InterferenceTable::Parse(bytes, "interference").status();
}

}  // namespace

std::vector<FuzzTarget> DescriptionTargets() {
  return {
      {"machine_json",
       MachineJson,
       {"\"preset\"", "\"gpu\"", "\"hosts\"", "\"H100-SXM-80GB\"", "\"rails\"", "\"pods\"", "null"},
       {"{\"gpu\":", "[", "{\"a\":{"}},
      {"machine_preset", MachinePreset, {"dgx-h100", ":", "x", "8", ","}, {":", "x"}},
      {"transformer_config",
       Transformer,
       {"\"experts\"", "\"topk\"", "\"layers\"", "\"swiglu\"", "\"rope\"", "null"},
       {"{\"experts\":", "["}},
      {"interference",
       Interferences,
       {"interference {", "gpu:", "nan", "inf", "-inf", "1e400"},
       {"interference {", "interference <"}},
  };
}

}  // namespace plancast
