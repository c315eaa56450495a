#include "planner/forecast/describe.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "compiler/bind/recompute.h"
#include "cost_models/matmul_unit.h"
#include "planner/forecast/flops.h"
#include "planner/uncertainty/uncertainty.h"
#include "planner/uncertainty/warnings.h"
#include "strategy/recompute/recompute_set.h"
#include "strategy/short_form.h"

namespace plancast {
namespace {

// Which unit multiplies matrices of `dtype`, with a note where it is another's:
// MFU is a share of that unit's peak.
MatmulUnit UnitFor(const DeviceType& device, DType dtype, std::vector<std::string>* notes) {
  const MatmulUnit unit = MatmulUnitFor(device, dtype);
  if (unit.runs != dtype) {
    notes->push_back(absl::StrCat(device.name, " has no ", DTypeName(dtype),
                                  " units: matrix products run as ", DTypeName(unit.runs),
                                  ", and MFU is a share of that peak"));
  }
  return unit;
}

// Mean over the devices of what `of` says of one; exact where all say the same.
template <typename Of>
double MeanOverDevices(const Machine& machine, const Of& of) {
  const double first = of(machine.section(0).device());
  double beyond_first = 0;
  for (int s = 1; s < machine.num_sections(); ++s) {
    const Machine& section = machine.section(s);
    beyond_first += static_cast<double>(section.num_devices()) * (of(section.device()) - first);
  }
  return first + beyond_first / static_cast<double>(machine.num_devices());
}

}  // namespace

absl::Status Describe(const Job& job, const Machine& machine, const PlanGraph& plan,
                      Session& session, Forecast* forecast) {
  forecast->model = job.model->name();
  forecast->machine = machine.spec().name;
  forecast->strategy = PrintShortForm(job.strategy.plan());
  forecast->profile = job.profile.name;
  forecast->chosen = plan.chosen.chosen;
  forecast->notes = plan.chosen.notes;
  const PlanOptions& chosen = plan.chosen.options;
  forecast->global_batch = chosen.dp * chosen.micro_batch * chosen.micro_batches;
  forecast->seq = plan.graph->seq;
  forecast->devices = machine.num_devices();
  ASSIGN_OR_RETURN(const auto model_flops,
                   session.Memo<double>(absl::StrCat("flops|", plan.graph_key), [&] {
                     return absl::StatusOr<double>(ModelFlopsPerSample(*plan.graph));
                   }));
  forecast->model_flops =
      *model_flops *
      static_cast<double>(HasSamples(*plan.graph) ? forecast->global_batch : chosen.micro_batches);
  forecast->hardware_flops = HardwareFlops(*plan.execution);
  forecast->flops_formula = "model_full";
  forecast->trained_parameters = plan.graph->TrainedParameterCount();
  if (job.strategy.fine_tunes()) {
    forecast->flops_formula = "model_full_less_frozen";
    forecast->notes.push_back(absl::StrCat(forecast->trained_parameters, " of ",
                                           plan.graph->ParameterCount(),
                                           " parameters are trained"));
  }
  for (const std::string& word : job.strategy.plan().recompute_ops) {
    ASSIGN_OR_RETURN(const RecomputeSet* set, FindRecomputeSet(word));
    if (CoveredBy(*set, *plan.graph, chosen.norms_in_products).covered > 0) continue;
    forecast->notes.push_back(absl::StrCat("recompute: as ", job.profile.name, " runs ",
                                           forecast->model, ", no op of its layers is in `", word,
                                           "`"));
  }
  std::vector<std::string> known;  // types of devices, of each one note
  forecast->peak_flops_per_gpu = MeanOverDevices(machine, [&](const DeviceType& device) {
    const bool fresh = std::find(known.begin(), known.end(), device.name) == known.end();
    known.push_back(device.name);
    std::vector<std::string> none;
    return UnitFor(device, job.dtype, fresh ? &forecast->notes : &none).peak_flops;
  });
  return absl::OkStatus();
}

bool LessFull(const ClassMemory& a, const ClassMemory& b) {
  return a.device - a.capacity < b.device - b.capacity;
}

void FillPeak(const Machine& machine, const ClassMemory& fullest, Forecast* forecast) {
  forecast->peak_memory_bytes = fullest.device;
  forecast->memory_capacity_bytes =
      machine.mixed() ? static_cast<double>(fullest.capacity) : machine.device().capacity_bytes();
}

void FillTime(const Machine& machine, int64_t makespan_ps, const SoftwareLevel& level,
              Forecast* forecast) {
  forecast->software_level = level;
  forecast->iteration_time_s = ToSeconds(level.RunPicoseconds(makespan_ps));
  const double device_hours =
      static_cast<double>(machine.num_devices()) * forecast->iteration_time_s / 3600;
  // A sum with an unknown part is unknown.
  bool priced = true, powered = true;
  for (int s = 0; s < machine.num_sections(); ++s) {
    priced = priced && machine.section(s).device().usd_per_hour > 0;
    powered = powered && machine.section(s).device().tdp_watts > 0;
  }
  const auto usd = [](const DeviceType& device) { return device.usd_per_hour; };
  const auto watts = [](const DeviceType& device) { return device.tdp_watts; };
  forecast->usd_per_iteration = priced ? device_hours * MeanOverDevices(machine, usd) : 0;
  forecast->kwh_per_iteration = powered ? device_hours * MeanOverDevices(machine, watts) / 1000 : 0;
}

void FillInterval(const SoftwareProfile& profile, const Learned* learned, Forecast* forecast) {
  const Uncertainty& shipped = Uncertainty::Shipped();
  shipped.AddTo(profile, &forecast->result);
  forecast->sigma_relative = CoreScale(forecast->result);
  if (learned != nullptr) {
    const double log = learned->Log(forecast->result), times = std::exp(log);
    forecast->software_level.log += log;
    forecast->learned_log = log;
    forecast->iteration_time_s *= times;
    forecast->usd_per_iteration *= times;
    forecast->kwh_per_iteration *= times;
    forecast->sigma_relative = learned->Narrow(shipped.plan, &forecast->result);
  }
  const TimeInterval interval =
      IntervalOf(forecast->iteration_time_s, forecast->sigma_relative, shipped.slow_tail);
  forecast->interval_s[0] = interval.low;
  forecast->interval_s[1] = interval.high;
}

void FillWarnings(const Job& job, const Machine& machine, const PlanGraph& plan,
                  Forecast* forecast) {
  forecast->warnings =
      ExtrapolationWarnings(Uncertainty::Shipped(), job.profile, plan.chosen.options,
                            plan.graph->seq, machine, forecast->result);
  const double peak = forecast->peak_flops_per_gpu * static_cast<double>(forecast->devices);
  if (forecast->model_flops > peak * forecast->iteration_time_s) {
    forecast->notes.push_back(
        "MFU is above 1: by its formula attention computes whole squares, of which causal kernels "
        "leave out half; HFU counts what runs");
  }
}

}  // namespace plancast
