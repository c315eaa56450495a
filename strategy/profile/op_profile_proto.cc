#include "strategy/profile/op_profile_proto.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"

namespace plancast {
namespace {

absl::StatusOr<std::vector<ExtraTensor>> TensorsFromProto(
    const google::protobuf::RepeatedPtrField<proto::ExtraTensor>& tensors) {
  std::vector<ExtraTensor> read;
  for (const proto::ExtraTensor& t : tensors) {
    const bool sized = t.element_bytes() >= 0 && t.element_bytes() <= 64;
    if (t.name().empty() || t.like().empty() || !sized) {
      return absl::InvalidArgumentError(absl::StrCat(
          "op_memory has a tensor `", t.name(), "` like `", t.like(), "` with ", t.element_bytes(),
          " bytes an element; it must have a name, a tensor of the rule, and 0 to 64 bytes."));
    }
    read.push_back({t.name(),
                    t.like(),
                    t.element_bytes(),
                    t.transposes(),
                    t.shared(),
                    t.early(),
                    t.gathered(),
                    {t.over().begin(), t.over().end()},
                    t.cut()});
  }
  return read;
}

absl::StatusOr<OpMemory> MemoryOfOp(const proto::OpMemory& p) {
  OpMemory memory;
  ASSIGN_OR_RETURN(memory.saved, TensorsFromProto(p.saved()));
  ASSIGN_OR_RETURN(memory.forward, TensorsFromProto(p.forward()));
  ASSIGN_OR_RETURN(memory.backward, TensorsFromProto(p.backward()));
  ASSIGN_OR_RETURN(memory.persistent, TensorsFromProto(p.persistent()));
  memory.not_saved.insert(p.not_saved().begin(), p.not_saved().end());
  memory.pinned_inputs.insert(p.pinned_inputs().begin(), p.pinned_inputs().end());
  memory.gradients_over_inputs = p.gradients_over_inputs();
  return memory;
}

absl::StatusOr<OrderedScales> OrderedScalesOf(DType type, const proto::QuantizeLaunches& p) {
  if (p.ordered_scales().empty()) return OrderedScales::kBoth;
  const std::optional<OrderedScales> ordered = kOrderedScalesNames.Find(p.ordered_scales());
  if (ordered.has_value() && HasOrderedScales(type)) return *ordered;
  return absl::InvalidArgumentError(absl::StrCat(
      "quantize_launches of `", p.type(), "` has ordered_scales `", p.ordered_scales(),
      "`; it must be one of ", JoinQuoted(kOrderedScalesNames), ", of `mxfp8` or `nvfp4`."));
}

}  // namespace

absl::StatusOr<std::map<std::string, ExtraKernels>> ExtraKernelsFromProto(
    const proto::SoftwareProfile& p) {
  std::map<std::string, ExtraKernels> read;
  for (const proto::ExtraKernels& op : p.extra_kernels()) {
    const auto counts = {op.forward_passes(), op.backward_passes(), op.forward_casts(),
                         op.backward_casts(), op.metrics(),         op.forward_small(),
                         op.backward_small(), op.forward_calls(),   op.backward_calls()};
    if (std::any_of(counts.begin(), counts.end(), [](int n) { return n < 0 || n > 100; })) {
      return absl::InvalidArgumentError(absl::StrCat(
          "extra_kernels `", op.rule(), "` has a count that is not from 0 to 100: ",
          absl::StrJoin(counts, ", "), " passes, casts, metrics, small kernels and calls."));
    }
    ExtraKernels& extra = read[op.rule()];
    extra = {op.forward_passes(), op.backward_passes(), op.fp32(),          op.forward_casts(),
             op.backward_casts(), op.metrics(),         op.forward_small(), op.backward_small(),
             std::nullopt,        std::nullopt};
    if (op.has_forward_calls()) extra.forward_calls = op.forward_calls();
    if (op.has_backward_calls()) extra.backward_calls = op.backward_calls();
  }
  return read;
}

absl::StatusOr<std::map<std::string, OpMemory>> OpMemoryFromProto(const proto::SoftwareProfile& p) {
  std::map<std::string, OpMemory> read;
  for (const proto::OpMemory& op : p.op_memory()) {
    ASSIGN_OR_RETURN(read[op.rule()], MemoryOfOp(op), _ << "op_memory `" << op.rule() << "`");
  }
  return read;
}

absl::StatusOr<HostCallsOfOps> HostCallsFromProto(const proto::SoftwareProfile& p) {
  HostCallsOfOps calls;
  calls.forward = p.forward_calls();
  calls.backward = p.backward_calls();
  if (std::min(calls.forward, calls.backward) < 0 ||
      std::max(calls.forward, calls.backward) > 100) {
    return absl::InvalidArgumentError(absl::StrCat("forward_calls is ", calls.forward,
                                                   " and backward_calls ", calls.backward,
                                                   "; both must be 0 to 100."));
  }
  for (const proto::QuantizeLaunches& entry : p.quantize_launches()) {
    ASSIGN_OR_RETURN(const DType type, ParseDType(entry.type()), _ << "quantize_launches");
    if (!IsQuantized(type) || entry.launches() < 0 || entry.launches() > 100) {
      return absl::InvalidArgumentError(
          absl::StrCat("quantize_launches of `", entry.type(), "` is ", entry.launches(),
                       "; the type must have 8 or 4 bits, the count must be 0 to 100."));
    }
    ASSIGN_OR_RETURN(const OrderedScales ordered, OrderedScalesOf(type, entry));
    calls.quantize[type] = {entry.launches(), ordered};
  }
  calls.blocking = p.launch_blocking();
  if (!p.fixed_capacity()) calls.waits.insert(p.host_waits().begin(), p.host_waits().end());
  for (const proto::GraphScope& scope : p.graph_scopes()) {
    calls.scopes[scope.name()].assign(scope.op().begin(), scope.op().end());
  }
  for (const std::string& scope : p.default_graph_scopes()) {
    if (calls.scopes.count(scope) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("default_graph_scopes names `", scope, "`, which graph_scopes does not."));
    }
    calls.captured.insert(scope);
  }
  return calls;
}

}  // namespace plancast
