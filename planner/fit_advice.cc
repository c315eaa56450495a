#include "planner/fit_advice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "executor/memory/reasons.h"

namespace plancast {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr size_t kMaxChanges = 2;
constexpr absl::string_view kPartNames[] = {"weights", "gradients", "optimizer", "activations",
                                            "workspace"};

std::string GiB(double bytes) { return absl::StrFormat("%.1f", bytes / kGiB); }

// `an A100`, `a B200`: by how the first letter is pronounced.
absl::string_view Article(absl::string_view name) {
  constexpr absl::string_view kVowelSounds = "AEFHILMNORSX";
  return !name.empty() && kVowelSounds.find(name[0]) != absl::string_view::npos ? "an" : "a";
}

// The largest of the parts, and of activations the tensor that takes most.
std::string LargestPart(const ExecutionGraph& graph, int32_t program, const ClassMemory& memory) {
  const int most = static_cast<int>(std::max_element(memory.bytes, memory.bytes + kNumMemoryKinds) -
                                    memory.bytes);
  std::string text = absl::StrCat("; the largest part is ", kPartNames[most]);
  for (const LiveTensor& tensor : ExplainPeak(graph, program).tensors) {
    if (static_cast<int>(tensor.kind) != most || tensor.micro_batches.empty()) continue;
    absl::StrAppend(&text, ", of which ", tensor.copies, " x `", tensor.name, "`");
    if (tensor.micro_batches.size() > 1) {
      absl::StrAppend(&text, " of ", tensor.micro_batches.size(), " micro-batches");
    }
    absl::StrAppend(&text, " take ", GiB(static_cast<double>(tensor.bytes())));
    break;
  }
  return text;
}

struct Change {
  std::string words;
  ShortForm form;
};

// Single changes, the cheapest for speed first.
std::vector<Change> Changes(const ShortForm& form, const PlanOptions& options) {
  std::vector<Change> changes;
  auto add = [&](std::string words, auto edit) {
    ShortForm changed = form;
    edit(changed);
    changes.push_back({std::move(words), std::move(changed)});
  };
  if (options.dp > 1 && options.zero == 0) {
    add("ZeRO stage 1 over `dp`", [](ShortForm& f) { f.zero = 1; });
  }
  if (options.tp > 1 && !options.sp) add("`sp`", [](ShortForm& f) { f.sp = true; });
  if (options.recompute == Recompute::kNone) {
    add("recompute=selective", [](ShortForm& f) { f.recompute = "selective"; });
  }
  if (options.recompute != Recompute::kFull) {
    add("recompute=full", [](ShortForm& f) {
      f.recompute = "full";
      f.recompute_layers.reset();
    });
  }
  if (options.micro_batch > 1) {
    add("mb=1", [](ShortForm& f) {
      f.mb = 1;
      f.accum.reset();
    });
  }
  for (int64_t factor : {2, 4}) {
    if (options.dp % factor != 0) continue;
    const int64_t pp = options.pp * factor, tp = options.tp * factor;
    const int64_t dp = options.dp / factor;
    add(absl::StrCat("pp=", pp), [&](ShortForm& f) {
      f.pp = pp;
      f.layout.clear();
      if (f.dp.has_value()) f.dp = dp;
      f.accum.reset();
    });
    add(absl::StrCat("tp=", tp), [&](ShortForm& f) {
      f.tp = tp;
      if (f.dp.has_value()) f.dp = dp;
      f.accum.reset();
    });
  }
  return changes;
}

}  // namespace

std::string FitAdvice(const Job& job, const Machine& machine, const PlanGraph& plan,
                      const std::vector<ClassMemory>& memory, const RuntimeParams& runtime,
                      Session& session) {
  const auto worst = std::max_element(
      memory.begin(), memory.end(),
      [](const ClassMemory& a, const ClassMemory& b) { return a.device < b.device; });
  auto part = [&](MemoryKind kind) {
    return GiB(static_cast<double>(worst->bytes[static_cast<int>(kind)]));
  };
  std::string advice = absl::StrCat(
      "the plan needs ", GiB(static_cast<double>(worst->device)), " GiB on stage ",
      worst - memory.begin(), " (weights ", part(MemoryKind::kParameters), ", gradients ",
      part(MemoryKind::kGradients), ", optimizer ", part(MemoryKind::kOptimizer), ", activations ",
      part(MemoryKind::kActivations),
      LargestPart(*plan.execution, static_cast<int32_t>(worst - memory.begin()), *worst), ") and ",
      Article(machine.device().name), " ", machine.device().name, " has ",
      GiB(machine.device().capacity_bytes()), ".");
  std::vector<std::string> fitting;
  for (const Change& change : Changes(job.strategy.plan(), plan.chosen.options)) {
    Job changed = job;
    changed.strategy = StrategyTree::FromShortForm(change.form);
    auto compiled = DrawAndCompile(changed, machine, session);
    if (!compiled.ok()) continue;
    int64_t need = 0;
    for (const ClassMemory& m : ReplayMemory(*compiled->execution, runtime)) {
      need = std::max(need, m.device);
    }
    if (static_cast<double>(need) > machine.device().capacity_bytes()) continue;
    fitting.push_back(absl::StrCat(change.words, " (", GiB(static_cast<double>(need)), " GiB)"));
    if (fitting.size() == kMaxChanges) break;
  }
  absl::StrAppend(&advice, fitting.empty() ? " No single change of it fits; use more devices."
                                           : absl::StrCat(" Smallest changes that fit: ",
                                                          absl::StrJoin(fitting, ", or "), "."));
  return advice;
}

}  // namespace plancast
