#include "planner/fit/fit_advice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/enum_names.h"
#include "base/status_macros.h"
#include "executor/memory/reasons.h"
#include "executor/memory/replay.h"
#include "graph/execution/program_devices.h"
#include "planner/fit/fits.h"
#include "planner/forecast/describe.h"
#include "planner/forecast/plan_graph.h"
#include "planner/forecast/predict.h"
#include "strategy/context/choose_context_parallel.h"

namespace plancast {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr size_t kMaxChanges = 3;
// As advice calls them: what the graph has as parameters are a plan's weights.
constexpr auto kPartNames =
    NamesOf<MemoryKind>("weights", "gradients", "optimizer", "activations", "workspace");

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
  std::string text =
      absl::StrCat("; the largest part is ", kPartNames[static_cast<MemoryKind>(most)]);
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
  Job job;
  int64_t micro_batches = 1;
};

// Single changes of a plan: more sharding, more recomputation, host memory, smaller
// micro-batches, narrower types, more model parallelism. Those that this version does not
// simulate, or that do not apply, are refused when they are tried.
class Changes {
 public:
  // `domain`: GPUs in an NVLink domain, beyond which tp does not go (as in rankings). `seq`: tokens
  // of a sequence, cut over cp if there are many.
  Changes(const Job& job, const PlanOptions& options, int64_t domain, int64_t seq)
      : job_(job), options_(options), domain_(domain), seq_(seq) {
    Sharding();
    Recomputation();
    HostMemory();
    MicroBatches();
    Types();
    ModelParallelism();
  }
  std::vector<Change> Take() && { return std::move(changes_); }

 private:
  // `replicas`: into how many dp of the plan is cut, beside what the edit says.
  template <typename Edit>
  void Add(std::string words, Edit edit, int64_t replicas) {
    ShortForm form = job_.strategy.plan();
    edit(form);
    const int64_t samples = options_.micro_batches * options_.micro_batch * options_.dp / replicas;
    Change change{std::move(words), job_, samples / form.mb.value_or(options_.micro_batch)};
    change.job.strategy = job_.strategy.WithPlan(form);
    changes_.push_back(std::move(change));
  }
  template <typename Edit>
  void Add(std::string words, Edit edit) {
    Add(std::move(words), edit, options_.dp);
  }

  void Sharding() {
    for (int64_t stage = options_.zero + 1; stage <= 3 && options_.dp * options_.cp > 1; ++stage) {
      Add(absl::StrCat("ZeRO stage ", stage, " over `dp`"), [&](ShortForm& f) { f.zero = stage; });
    }
    if (job_.strategy.plan().hsdp.has_value()) {
      Add("one shard group, without `hsdp`", [](ShortForm& f) { f.hsdp.reset(); });
    }
    if (options_.unit_layers > 1 && job_.strategy.plan().unit.has_value()) {
      Add("units of one layer, without `unit`", [](ShortForm& f) { f.unit.reset(); });
    }
    if (options_.zero == 3 && !options_.reshard) {
      Add("reshard=on", [](ShortForm& f) { f.reshard = "on"; });
    }
    if (job_.strategy.plan().sync == "last") {
      Add("sync=each", [](ShortForm& f) { f.sync = "each"; });
    }
    if (options_.tp > 1 && !options_.sp) Add("`sp`", [](ShortForm& f) { f.sp = true; });
  }

  void Recompute(absl::string_view how, std::optional<int64_t> layers = std::nullopt) {
    Add(absl::StrCat("recompute=", how, layers.has_value() ? absl::StrCat(":", *layers) : ""),
        [&](ShortForm& f) {
          f.ClearRecompute();
          f.recompute = std::string(how);
          f.recompute_layers = layers;
        });
  }
  void Recomputation() {
    if (options_.recompute == plancast::Recompute::kNone) Recompute("selective");
    if (options_.recompute == plancast::Recompute::kFull && options_.recompute_layers < 0 &&
        options_.recompute_every <= 1) {
      return;
    }
    if (options_.recompute != plancast::Recompute::kFull) Recompute("every", 2);
    Recompute("full");
  }

  void Offload(absl::string_view what) {
    if (options_.offload.empty()) {
      Add(absl::StrCat("offload=", what), [&](ShortForm& f) { f.offload = {std::string(what)}; });
    }
  }
  void HostMemory() {
    for (absl::string_view what : {"optimizer", "activations", "param"}) Offload(what);
  }

  void MicroBatches() {
    for (int64_t size = options_.micro_batch / 2; size >= 1; size /= 2) {
      if (options_.micro_batch % size != 0) continue;
      Add(absl::StrCat("mb=", size), [&](ShortForm& f) {
        f.mb = size;
        f.accum.reset();
      });
    }
    if (options_.schedule == Schedule::kGpipe || options_.schedule == Schedule::kEager1f1b) {
      Add("schedule=1f1b", [](ShortForm& f) { f.schedule = "1f1b"; });
    }
    if (options_.schedule == Schedule::kBreadthFirst) {
      Add("schedule=interleaved", [](ShortForm& f) { f.schedule = "interleaved"; });
    }
  }

  void Types() {
    const SoftwareProfile settled = job_.profile.For(job_.dtype, options_.schedule);
    const DType half = StorageType(job_.dtype);
    if (half == DType::kFp32) return;
    if (settled.types.grad_dtype == DType::kFp32) {
      Add(absl::StrCat("grad_dtype=", DTypeName(half)), [](ShortForm&) {});
      SoftwareProfile& profile = changes_.back().job.profile;
      profile.types.grad_dtype = half;
      profile.types.bf16_gradients_in_fp32 = false;
    }
    if (settled.types.state_dtype == DType::kFp32 && Moments(settled.update.type) > 0) {
      Add(absl::StrCat("state_dtype=", DTypeName(half)), [](ShortForm&) {});
      changes_.back().job.profile.types.state_dtype = half;
    }
  }

  void ModelParallelism() {
    for (int64_t factor : {2, 4}) {
      if (options_.dp % factor != 0) continue;
      const int64_t pp = options_.pp * factor, tp = options_.tp * factor;
      const int64_t dp = options_.dp / factor;
      const auto cut = [&](ShortForm& f) {
        if (f.dp.has_value()) f.dp = dp;
        f.accum.reset();
      };
      Add(
          absl::StrCat("pp=", pp),
          [&](ShortForm& f) {
            f.pp = pp;
            f.layout.clear();
            cut(f);
          },
          dp);
      if (seq_ >= kLongSequence) {
        const int64_t cp = options_.cp * factor;
        Add(
            absl::StrCat("cp=", cp),
            [&](ShortForm& f) {
              f.cp = cp;
              cut(f);
            },
            dp);
      }
      if (tp > domain_) continue;
      const bool sp = job_.profile.limits.sp.value_or(false);
      Add(
          absl::StrCat("tp=", tp, sp && !options_.sp ? ",sp" : ""),
          [&](ShortForm& f) {
            f.tp = tp;
            f.sp = f.sp || sp;
            cut(f);
          },
          dp);
    }
  }

  const Job& job_;
  const PlanOptions& options_;
  const int64_t domain_, seq_;
  std::vector<Change> changes_;
};

struct Fitting {
  std::string words;
  int64_t bytes = 0;
  double seconds = 0;
};

// The changes that the software can run and whose plans fit, fastest first, of those that leave
// least memory free: all are replayed, the kMaxChanges smallest are simulated.
std::vector<Fitting> FittingChanges(const Job& job, const Machine& machine, const PlanGraph& plan,
                                    const Pricing& pricing, Session& session) {
  std::vector<std::pair<int64_t, Change>> replayed;
  const auto lacks = [&](const ShortForm& form, int64_t micro_batches) {
    return job.profile.limits.WhyNot(form, job.profile.name, micro_batches);
  };
  const std::string own = lacks(job.strategy.plan(), plan.chosen.options.micro_batches);
  for (Change& change :
       Changes(job, plan.chosen.options, machine.gpus_per_domain(), plan.graph->seq).Take()) {
    if (!job.strategy.nodes().empty()) break;  // a tree answers for its own choices
    const std::string why = lacks(change.job.strategy.plan(), change.micro_batches);
    if (!why.empty() && why != own) continue;
    const absl::StatusOr<FitVerdict> verdict =
        FitCheck(change.job, machine, session, &pricing).Verdict(change.job.strategy.plan());
    if (!verdict.ok() || !verdict->fits) continue;
    replayed.emplace_back(verdict->device_bytes, std::move(change));
  }
  std::stable_sort(replayed.begin(), replayed.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Fitting> fitting;
  for (const auto& [bytes, change] : replayed) {
    if (fitting.size() == kMaxChanges) break;
    PredictOptions quick;
    quick.memory_only_if_unfit = true;
    const absl::StatusOr<Forecast> forecast = Predict(change.job, machine, pricing, session, quick);
    if (!forecast.ok() || !forecast->fits) continue;
    fitting.push_back({change.words, forecast->peak_memory_bytes, forecast->iteration_time_s});
  }
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const Fitting& a, const Fitting& b) { return a.seconds < b.seconds; });
  return fitting;
}

// The device with least memory of those that run a program.
const DeviceType& DeviceOf(const Machine& machine, const PlanGraph& plan, size_t program) {
  const ExecutionGraph& graph = *plan.execution;
  const DeviceType* least = nullptr;
  for (int s = 0; s < machine.num_sections(); ++s) {
    const Machine& section = machine.section(s);
    const int64_t begin = machine.FirstDevice(s);
    const bool here =
        FirstDeviceIn(graph, graph.programs[program], begin, begin + section.num_devices()) >= 0;
    if (!here || (least != nullptr && least->capacity_bytes() <= section.device().capacity_bytes()))
      continue;
    least = &section.device();
  }
  return *least;
}

}  // namespace

absl::StatusOr<std::string> FitAdvice(const Job& job, const Machine& machine,
                                      const Pricing& pricing, Session& session) {
  ASSIGN_OR_RETURN(const PlanGraph plan, DrawAndCompile(job, machine, session, &pricing));
  const RuntimeParams runtime = pricing.Runtime(job.profile, machine);
  const std::vector<ClassMemory> memory = ReplayMemory(*plan.execution, runtime);
  const auto worst = std::max_element(memory.begin(), memory.end(), LessFull);
  const DeviceType& device = DeviceOf(machine, plan, static_cast<size_t>(worst - memory.begin()));
  auto part = [&](MemoryKind kind) {
    return GiB(static_cast<double>(worst->bytes[static_cast<int>(kind)]));
  };
  std::string advice = absl::StrCat(
      "the plan needs ", GiB(static_cast<double>(worst->device)), " GiB on stage ",
      worst - memory.begin(), " (weights ", part(MemoryKind::kParameters), ", gradients ",
      part(MemoryKind::kGradients), ", optimizer ", part(MemoryKind::kOptimizer), ", activations ",
      part(MemoryKind::kActivations),
      LargestPart(*plan.execution, static_cast<int32_t>(worst - memory.begin()), *worst), ") and ",
      Article(device.name), " ", device.name, " has ", GiB(device.capacity_bytes()), ".");
  std::vector<std::string> fitting;
  for (const Fitting& change : FittingChanges(job, machine, plan, pricing, session)) {
    fitting.push_back(absl::StrCat(change.words, " (", GiB(static_cast<double>(change.bytes)),
                                   " GiB, ", absl::StrFormat("%.3g", change.seconds), " s)"));
  }
  absl::StrAppend(
      &advice,
      fitting.empty()
          ? " No single change of it fits; `plancast plan` looks for another plan."
          : absl::StrCat(" Smallest changes that fit: ", absl::StrJoin(fitting, ", or "), "."));
  return advice;
}

}  // namespace plancast
