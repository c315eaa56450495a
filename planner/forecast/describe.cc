#include "planner/forecast/describe.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"
#include "base/status_macros.h"
#include "cost_models/matmul_unit.h"
#include "planner/forecast/flops.h"
#include "planner/uncertainty/uncertainty.h"
#include "planner/uncertainty/warnings.h"
#include "strategy/short_form.h"

namespace plancast {
namespace {

// Which unit multiplies matrices of `dtype`, with a note where it is another's:
// MFU is a share of that unit's peak.
MatmulUnit UnitFor(const Machine& machine, DType dtype, std::vector<std::string>* notes) {
  const MatmulUnit unit = MatmulUnitFor(machine.device(), dtype);
  if (unit.runs != dtype) {
    notes->push_back(absl::StrCat(machine.device().name, " has no ", DTypeName(dtype),
                                  " units: matrix products run as ", DTypeName(unit.runs),
                                  ", and MFU is a share of that peak"));
  }
  return unit;
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
  forecast->model_flops = *model_flops * static_cast<double>(forecast->global_batch);
  forecast->hardware_flops = HardwareFlops(*plan.execution);
  forecast->flops_formula = "model_full";
  if (job.strategy.fine_tunes()) {
    forecast->flops_formula = "model_full_less_frozen";
    forecast->notes.push_back(absl::StrCat(plan.graph->TrainedParameterCount(), " of ",
                                           plan.graph->ParameterCount(),
                                           " parameters are trained"));
  }
  forecast->peak_flops_per_gpu = UnitFor(machine, job.dtype, &forecast->notes).peak_flops;
  return absl::OkStatus();
}

void FillTime(const Machine& machine, int64_t makespan_ps, Forecast* forecast) {
  forecast->iteration_time_s = ToSeconds(makespan_ps);
  const double device_hours =
      static_cast<double>(machine.num_devices()) * forecast->iteration_time_s / 3600;
  forecast->usd_per_iteration = device_hours * machine.device().usd_per_hour;
  forecast->kwh_per_iteration = device_hours * machine.device().tdp_watts / 1000;
}

void FillInterval(const SoftwareProfile& profile, Forecast* forecast) {
  const Uncertainty& shipped = Uncertainty::Shipped();
  shipped.AddTo(profile, &forecast->result);
  forecast->sigma_relative = CoreScale(forecast->result);
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
