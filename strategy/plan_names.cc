#include "strategy/plan_names.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {
namespace {

template <typename Enum>
struct Word {
  Enum value;
  absl::string_view name;
};

constexpr Word<Recompute> kRecompute[] = {
    {Recompute::kNone, "none"}, {Recompute::kSelective, "selective"}, {Recompute::kFull, "full"}};
constexpr Word<Schedule> kSchedule[] = {{Schedule::kNone, "none"},
                                        {Schedule::kGpipe, "gpipe"},
                                        {Schedule::k1f1b, "1f1b"},
                                        {Schedule::kInterleaved, "interleaved"}};
constexpr Word<Attention> kAttention[] = {{Attention::kFlash, "flash"},
                                          {Attention::kUnfused, "unfused"}};
constexpr Word<Overlap> kOverlap[] = {{Overlap::kGrad, "grad"},
                                      {Overlap::kParam, "param"},
                                      {Overlap::kTp, "tp"},
                                      {Overlap::kCp, "cp"},
                                      {Overlap::kEp, "ep"}};
constexpr Word<Offload> kOffload[] = {{Offload::kOptimizer, "optimizer"},
                                      {Offload::kParameters, "param"},
                                      {Offload::kActivations, "activations"}};

template <typename Enum, size_t n>
absl::string_view NameOf(const Word<Enum> (&words)[n], Enum value) {
  for (const Word<Enum>& word : words) {
    if (word.value == value) return word.name;
  }
  return "";
}

template <typename Enum, size_t n>
std::optional<Enum> Find(const Word<Enum> (&words)[n], absl::string_view name) {
  for (const Word<Enum>& word : words) {
    if (word.name == name) return word.value;
  }
  return std::nullopt;
}

// `grad+param`, or `none`.
template <typename Enum, size_t n>
std::string TextOf(const Word<Enum> (&words)[n], const std::set<Enum>& values) {
  if (values.empty()) return "none";
  std::vector<absl::string_view> names;
  for (const Enum value : values) names.push_back(NameOf(words, value));
  return absl::StrJoin(names, "+");
}

}  // namespace

std::string PrintRecompute(Recompute recompute, const std::vector<std::string>& ops) {
  const absl::string_view name = RecomputeName(recompute);
  return ops.empty() ? std::string(name) : absl::StrCat(name, ":", absl::StrJoin(ops, "+"));
}

absl::string_view RecomputeName(Recompute recompute) { return NameOf(kRecompute, recompute); }
std::optional<Recompute> FindRecompute(absl::string_view name) { return Find(kRecompute, name); }

absl::string_view ScheduleName(Schedule schedule) { return NameOf(kSchedule, schedule); }
std::optional<Schedule> FindSchedule(absl::string_view name) { return Find(kSchedule, name); }

absl::string_view AttentionName(Attention attention) { return NameOf(kAttention, attention); }
std::optional<Attention> FindAttention(absl::string_view name) { return Find(kAttention, name); }

absl::string_view OverlapName(Overlap overlap) { return NameOf(kOverlap, overlap); }
std::optional<Overlap> FindOverlap(absl::string_view name) { return Find(kOverlap, name); }

std::string OverlapText(const std::set<Overlap>& overlap) { return TextOf(kOverlap, overlap); }

std::optional<Offload> FindOffload(absl::string_view name) { return Find(kOffload, name); }

std::string OffloadText(const std::set<Offload>& offload) { return TextOf(kOffload, offload); }

std::optional<int64_t> AxisSize(const ShortForm& form, absl::string_view axis) {
  if (axis == "dp") return form.dp;
  if (axis == "tp") return form.tp.value_or(1);
  if (axis == "pp") return form.pp.value_or(1);
  if (axis == "cp") return form.cp.value_or(1);
  if (axis == "ep") return form.ep.value_or(1);
  if (axis == "etp") return form.etp.value_or(form.tp.value_or(1));
  return std::nullopt;
}

}  // namespace plancast
