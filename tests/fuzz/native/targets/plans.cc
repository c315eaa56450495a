#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "executor/jobs/placement.h"
#include "executor/what_if/what_if.h"
#include "planner/search/condition.h"
#include "planner/search/space.h"
#include "planner/uncertainty/uncertainty.h"
#include "strategy/byte_size.h"
#include "strategy/nodes/rewrite_directive.h"
#include "strategy/schedule/schedule_table.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"
#include "strategy/strategy_tree.h"
#include "tests/fuzz/native/targets/groups.h"

namespace plancast {
namespace {

// What was read is written and read again.
absl::Status ReadShortForm(absl::string_view bytes) {
  const absl::StatusOr<ShortForm> form = ParseShortForm(bytes);
  if (!form.ok()) return form.status();
  const absl::StatusOr<ShortForm> again = ParseShortForm(PrintShortForm(*form));
  if (!again.ok()) return absl::InternalError(again.status().message());
  return *again == *form ? absl::OkStatus() : absl::InternalError("the printed form differs");
}

absl::Status Tree(absl::string_view bytes) {
  const absl::StatusOr<StrategyTree> tree = StrategyTree::FromJson(bytes, "strategy");
  // Part of the language, but not simulated.
  if (absl::IsUnimplemented(tree.status())) {
    return absl::InvalidArgumentError(tree.status().message());
  }
  if (!tree.ok()) return tree.status();
  const absl::Status resolved = tree->Resolve("layers.*.attn.qkv").status();
  if (!resolved.ok()) return resolved;
  const absl::StatusOr<StrategyTree> again = StrategyTree::FromJson(tree->ToJson(), "strategy");
  if (!again.ok()) return absl::InternalError(again.status().message());
  return again->ToJson() == tree->ToJson() ? absl::OkStatus()
                                           : absl::InternalError("the written tree differs");
}

absl::Status Space(absl::string_view bytes) { return ParseSearchSpace(bytes).status(); }
absl::Status WhatIf(absl::string_view bytes) { return ParseWhatIf(bytes).status(); }
absl::Status ByteSize(absl::string_view bytes) { return ParseByteSize(bytes).status(); }

// What was read is printed and read again.
absl::Status Table(absl::string_view bytes) {
  const absl::StatusOr<ScheduleTable> table = ParseScheduleTable(bytes);
  if (!table.ok()) return table.status();
  const std::string printed = PrintScheduleTable(*table);
  const absl::StatusOr<ScheduleTable> again = ParseScheduleTable(printed);
  if (!again.ok()) return absl::InternalError(again.status().message());
  return PrintScheduleTable(*again) == printed ? absl::OkStatus()
                                               : absl::InternalError("the printed table differs");
}

absl::Status RewriteText(absl::string_view bytes) {
  const absl::StatusOr<Rewrite> rewrite = ParseRewrite(bytes);
  if (!rewrite.ok()) return rewrite.status();
  const absl::StatusOr<Rewrite> again = ParseRewrite(rewrite->DebugString());
  if (!again.ok()) return absl::InternalError(again.status().message());
  return *again == *rewrite ? absl::OkStatus() : absl::InternalError("the printed one differs");
}

// What was read is asked of a plan.
absl::Status Condition(absl::string_view bytes) {
  const absl::StatusOr<PlanCondition> condition = PlanCondition::Parse(bytes);
  if (!condition.ok()) return condition.status();
  static const auto* const plan = new ShortForm(*ParseShortForm("dp=2,tp=2,pp=2,mb=1"));
  PlanContext context;
  context.global_batch = 8;
  condition->Holds(*plan, context);
  return absl::OkStatus();
}

absl::Status Profile(absl::string_view bytes) {
  return ParseSoftwareProfile(bytes, "profile").status();
}

absl::Status Uncertainties(absl::string_view bytes) {
  return Uncertainty::Parse(bytes, "uncertainty").status();
}

absl::Status Placement(absl::string_view bytes) {
  static const auto* const machine = new Machine(*MachineFromPreset("dgx-h100:4"));
  return ParsePlacement(bytes, *machine).status();
}

}  // namespace

std::vector<FuzzTarget> PlanTargets() {
  const std::vector<std::string> keys = ShortFormKeys();
  return {
      {"strategy_short", ReadShortForm, keys, {"tp=", ",", "1+"}},
      {"strategy_tree",
       Tree,
       {"\"plan\"", "\"nodes\"", "\"split\"", "\"layers.*.attn\"", "\"home\"", "\"load\"", "null"},
       {"{\"nodes\":", "[", "layers.*."}},
      {"search_space", Space, {"|", "..", "*", "tp=", "mb=", "9223372036854775807"}, {"1|", "1.."}},
      {"schedule_table",
       Table,
       {"F0.0", "B1.0", "W0.0", "&", ";", "v:", "0 1 1 0:", "99999999999999999999", "F0.0&B0.0"},
       {"F0.0 ", "F0&", ";", "0 "}},
      {"rewrite",
       RewriteText,
       {"split(", "reorder(", "fuse(", "overlap(", "all_reduce", "with", "pieces: tuned", "along"},
       {"fuse(", "a,", "("}},
      {"plan_condition",
       Condition,
       {"tp", "mb*seq", "<=", "and", "or", "not", "==", "full", "% 0", "/ 0",
        "9223372036854775807"},
       {"(", "not ", "-", "1<"}},
      {"what_if", WhatIf, {"nic=2x", "free", "device:", "op:", "purpose:", "%"}, {"nic:", "op:"}},
      {"byte_size", ByteSize, {"MiB", "GB", "1e9", "."}, {"1"}},
      {"software_profile", Profile, {"true", "nan", "-1", "1e400"}, {"a {", "a <", "[a.b/"}},
      {"uncertainty", Uncertainties, {"software {", "nan", "inf", "-1"}, {"software {", "a <"}},
      {"placement", Placement, {"-", ",", "host", "0-31", "99999999999999999999"}, {"0-", "0,"}},
  };
}

}  // namespace plancast
