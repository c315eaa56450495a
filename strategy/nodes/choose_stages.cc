#include "strategy/nodes/choose_stages.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "base/wrong.h"

namespace plancast {
namespace {

constexpr int64_t kMostDevices = int64_t{1} << 24;

bool ReadNumber(absl::string_view text, int64_t* number) {
  return absl::SimpleAtoi(absl::StripAsciiWhitespace(text), number) && *number >= 0 &&
         *number < kMostDevices;
}

absl::Status SetAxis(absl::string_view axis, int64_t size, ShortForm* form) {
  const std::vector<std::pair<std::string, std::optional<int64_t>*>> axes = {{"dp", &form->dp},
                                                                             {"tp", &form->tp},
                                                                             {"cp", &form->cp},
                                                                             {"ep", &form->ep},
                                                                             {"etp", &form->etp}};
  std::vector<std::string> names;
  for (const auto& [name, value] : axes) {
    names.push_back(name);
    if (name != axis) continue;
    if (size < 1) return Wrong("`mesh.", axis, "` is ", size, "; axes have 1 rank or more.");
    *value = size;
    return absl::OkStatus();
  }
  return Wrong("no mesh axis `", axis, "`; a stage has ", JoinQuoted(names), ".",
               DidYouMean(axis, names));
}

class StageChooser {
 public:
  StageChooser(const ShortForm& form, const std::vector<StageMeshSpec>& specs,
               const PlanContext& context, const DevicesOfHost& host_devices,
               const SoftwareProfile& profile, const std::vector<DeviceRange>& idle)
      : form_(form),
        specs_(specs),
        context_(context),
        host_devices_(host_devices),
        profile_(profile),
        idle_(idle) {}

  absl::StatusOr<ChosenPlan> Choose() {
    const int64_t vpp = form_.vpp.value_or(1), listed = static_cast<int64_t>(specs_.size());
    pp_ = form_.pp.value_or(listed / std::max<int64_t>(vpp, 1));
    if (pp_ < 1 || pp_ * vpp != listed) {
      return Wrong("`stages` lists ", listed, " stages, and pp*vpp = ", pp_, "*", vpp, " is ",
                   pp_ * vpp, ". List one for each virtual stage, in the order of the model.");
    }
    ChosenPlan plan;
    std::vector<std::string> texts;
    for (int64_t stage = 0; stage < pp_; ++stage) {
      ASSIGN_OR_RETURN(ChosenPlan own, ChooseStage(stage), _ << "stages[" << stage << "]");
      texts.push_back(TextOf(own.options));
      if (stage == 0) {
        plan = std::move(own);
        plan.options.stages = {};
        continue;
      }
      if (own.options.micro_batches != plan.options.micro_batches) {
        return Wrong("stages[", stage, "] has ", own.options.micro_batches,
                     " micro-batches, and stages[0] ", plan.options.micro_batches, ".");
      }
      for (std::string& note : own.notes) {
        if (std::find(plan.notes.begin(), plan.notes.end(), note) == plan.notes.end()) {
          plan.notes.push_back(std::move(note));
        }
      }
    }
    plan.options.stages = std::move(stages_);
    RETURN_IF_ERROR(SetIdle(&plan));
    RETURN_IF_ERROR(CheckDevices(plan.options));
    for (const char* axis : {"dp", "tp", "ep", "etp", "mb"}) plan.chosen.erase(axis);
    plan.chosen["meshes"] = absl::StrJoin(texts, "; ");
    return plan;
  }

 private:
  absl::StatusOr<const StageMeshSpec*> SpecOf(int64_t stage) const {
    const StageMeshSpec& first = specs_[stage];
    for (size_t v = stage + pp_; v < specs_.size(); v += pp_) {
      if (specs_[v].empty() || specs_[v] == first) continue;
      return Wrong("is stages[", v, "] as well, its next chunk, which has another place. Say ",
                   "`mesh`, `mb` and `devices` at the first of them alone.");
    }
    return &first;
  }

  absl::StatusOr<ChosenPlan> ChooseStage(int64_t stage) {
    ASSIGN_OR_RETURN(const StageMeshSpec* spec, SpecOf(stage));
    ShortForm form = form_;
    form.pp = pp_;
    if (!spec->mesh.empty()) form.dp = std::nullopt;
    for (const auto& [axis, size] : spec->mesh) RETURN_IF_ERROR(SetAxis(axis, size, &form));
    int64_t first = next_, devices = 0;
    const int64_t rest = form.tp.value_or(1) * form.cp.value_or(1);
    if (spec->devices.has_value()) {
      ASSIGN_OR_RETURN(std::tie(first, devices), DevicesOf(*spec->devices));
      if (!form.dp.has_value() && devices % rest == 0) form.dp = devices / rest;
    }
    const int64_t wanted = form.dp.value_or(1) * rest;
    if (spec->devices.has_value() && wanted != devices) {
      return Wrong("has ", devices, " devices (", spec->devices->DebugString(), "), and its mesh ",
                   "of dp=", form.dp.value_or(1), ", tp=", form.tp.value_or(1),
                   ", cp=", form.cp.value_or(1), " takes ", wanted, ".");
    }
    if (wanted > kMostDevices) return Wrong("has more than ", kMostDevices, " devices.");
    form.dp = form.dp.value_or(1);
    RETURN_IF_ERROR(SetMicroBatch(stage, *spec, &form));
    PlanContext context = ContextOf(stage);
    context.devices = wanted * pp_;
    ASSIGN_OR_RETURN(ChosenPlan plan, ChoosePlan(form, context, profile_));
    StageOptions own;
    own.dp = plan.options.dp, own.tp = plan.options.tp, own.cp = plan.options.cp;
    own.ep = plan.options.ep, own.etp = plan.options.etp;
    own.micro_batch = plan.options.micro_batch;
    own.first_device = first;
    stages_.push_back(own);
    next_ = first + wanted;
    return plan;
  }

  // Sizes of what other stages hold need not divide here.
  PlanContext ContextOf(int64_t stage) const {
    PlanContext context = context_;
    const auto has = [&](const char* dim) {
      bool found = context_.stage_dims.empty();
      for (size_t v = stage; v < context_.stage_dims.size(); v += pp_) {
        found = found || context_.stage_dims[v].count(dim) > 0;
      }
      return found;
    };
    if (context.kv_heads > 0 && !has("kv_heads")) context.heads = context.kv_heads = 0;
    if (!has("ffn")) context.ffn = 0;
    if (!has("expert_ffn")) context.expert_ffn = 0;
    if (!has("seq")) context.seq = 0;
    return context;
  }

  absl::Status SetMicroBatch(int64_t stage, const StageMeshSpec& spec, ShortForm* form) {
    if (spec.micro_batch.has_value()) form->mb = spec.micro_batch;
    if (stage == 0) {
      samples_ = form->mb.value_or(1) * *form->dp;
      return absl::OkStatus();
    }
    if (spec.micro_batch.has_value() && *spec.micro_batch * *form->dp == samples_) {
      return absl::OkStatus();
    }
    if (spec.micro_batch.has_value() || samples_ % *form->dp != 0) {
      return Wrong("takes micro-batches of ", samples_, " samples, as stages[0] does (mb*dp), on ",
                   *form->dp, " data-parallel ranks",
                   spec.micro_batch.has_value() ? absl::StrCat(" with mb=", *spec.micro_batch) : "",
                   ". mb*dp has to be the same on all stages.");
    }
    form->mb = samples_ / *form->dp;
    return absl::OkStatus();
  }

  // The first of them, and how many.
  absl::StatusOr<std::tuple<int64_t, int64_t>> DevicesOf(const DeviceRange& range) const {
    if (!range.hosts) return std::make_tuple(range.first, range.last - range.first + 1);
    ASSIGN_OR_RETURN(const auto first, host_devices_(range.first));
    ASSIGN_OR_RETURN(const auto last, host_devices_(range.last));
    return std::make_tuple(first.first, last.second - first.first);
  }

  absl::Status SetIdle(ChosenPlan* plan) const {
    int64_t idle = 0;
    for (const DeviceRange& range : idle_) {
      ASSIGN_OR_RETURN(const auto devices, DevicesOf(range), _ << "`idle`");
      plan->options.idle.push_back({std::get<0>(devices), std::get<1>(devices)});
      idle += std::get<1>(devices);
    }
    if (idle == 0) return absl::OkStatus();
    plan->chosen["idle"] = absl::StrJoin(
        idle_, ", ", [](std::string* out, const DeviceRange& r) { out->append(r.DebugString()); });
    plan->notes.push_back(absl::StrCat(idle, " of ", context_.devices, " devices are idle (",
                                       plan->chosen["idle"], ")"));
    return absl::OkStatus();
  }

  // Each device runs one stage, or is idle.
  absl::Status CheckDevices(const PlanOptions& options) const {
    std::vector<std::tuple<int64_t, int64_t, std::string>> order;  // first, devices, whose
    for (size_t s = 0; s < options.stages.size(); ++s) {
      order.emplace_back(options.stages[s].first_device, options.stages[s].devices(),
                         absl::StrCat("stages[", s, "]"));
    }
    for (const IdleDevices& idle : options.idle) {
      order.emplace_back(idle.first_device, idle.devices, "`idle`");
    }
    std::sort(order.begin(), order.end());
    int64_t end = 0;
    std::string before;
    for (const auto& [first, devices, who] : order) {
      if (first < end) {
        return Wrong(std::min(before, who), " and ", std::max(before, who), " both have GPU ",
                     first, ". Every device runs one stage.");
      }
      if (first > end) return NoStageHas(end, first);
      end = first + devices;
      before = who;
    }
    if (end == context_.devices) return absl::OkStatus();
    const DeviceRange left{false, end, context_.devices - 1};
    return Wrong("`stages` take ", end, " devices, and the machine has ", context_.devices,
                 ". Take a machine of ", end, ", or ",
                 end > context_.devices
                     ? "fewer ranks."
                     : absl::StrCat("give them all to stages, or say `idle: ", left.DebugString(),
                                    "` beside `stages`."));
  }

  static absl::Status NoStageHas(int64_t begin, int64_t end) {
    const DeviceRange gap{false, begin, end - 1};
    const bool one = end - begin == 1;
    return Wrong(
        "no stage has ", one ? "GPU " : "GPUs ", begin, one ? "" : absl::StrCat(" to ", end - 1),
        ". Give all devices to stages, take a smaller machine, or say `idle: ", gap.DebugString(),
        "` beside `stages`.");
  }

  static std::string TextOf(const PlanOptions& o) {
    return absl::StrCat("dp=", o.dp, ",tp=", o.tp, o.cp > 1 ? absl::StrCat(",cp=", o.cp) : "",
                        o.ep > 1 ? absl::StrCat(",ep=", o.ep) : "", ",mb=", o.micro_batch);
  }

  const ShortForm& form_;
  const std::vector<StageMeshSpec>& specs_;
  const PlanContext& context_;
  const DevicesOfHost& host_devices_;
  const SoftwareProfile& profile_;
  const std::vector<DeviceRange>& idle_;
  int64_t pp_ = 1, samples_ = 0;
  int64_t next_ = 0;  // the device after the last stage's
  std::vector<StageOptions> stages_;
};

}  // namespace

absl::StatusOr<DeviceRange> DeviceRange::Parse(absl::string_view text) {
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  DeviceRange range;
  const auto wrong = [&] {
    return Wrong("`", text, "` names no devices. Write `hosts 0-1`, `host 2`, `gpus 8-15` or ",
                 "`gpu 3`.");
  };
  if (absl::ConsumePrefix(&rest, "host")) {
    range.hosts = true;
  } else if (!absl::ConsumePrefix(&rest, "gpu")) {
    return wrong();
  }
  absl::ConsumePrefix(&rest, "s");
  const std::vector<absl::string_view> ends = absl::StrSplit(rest, '-');
  if (absl::StrContains(rest, ',')) {
    return absl::UnimplementedError(
        absl::StrCat("not supported yet: `", text,
                     "`, devices that do not follow one another. Give a stage one "
                     "range, as in `gpus 0-3`; ranks of `tp` are neighbours in it, those of `dp` "
                     "further apart."));
  }
  if (ends.size() > 2 || !ReadNumber(ends.front(), &range.first) ||
      !ReadNumber(ends.back(), &range.last) || range.last < range.first) {
    return wrong();
  }
  return range;
}

std::string DeviceRange::DebugString() const {
  const bool one = first == last;
  return absl::StrCat(hosts ? "host" : "gpu", one ? " " : "s ", first,
                      one ? "" : absl::StrCat("-", last));
}

bool operator==(const StageMeshSpec& a, const StageMeshSpec& b) {
  const auto text = [](const StageMeshSpec& s) {
    return s.devices.has_value() ? s.devices->DebugString() : "";
  };
  return a.mesh == b.mesh && a.micro_batch == b.micro_batch && text(a) == text(b);
}

absl::StatusOr<ChosenPlan> ChooseStages(const ShortForm& form,
                                        const std::vector<StageMeshSpec>& specs,
                                        const PlanContext& context,
                                        const DevicesOfHost& host_devices,
                                        const SoftwareProfile& profile,
                                        const std::vector<DeviceRange>& idle) {
  return StageChooser(form, specs, context, host_devices, profile, idle).Choose();
}

}  // namespace plancast
