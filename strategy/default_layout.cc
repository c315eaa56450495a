#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/wrong.h"
#include "strategy/choose_plan.h"
#include "strategy/plan_names.h"

namespace plancast {
namespace {

constexpr int64_t kMaxVirtualStages = 100'000;

// A layout that the plan says.
absl::Status CheckLayout(const std::vector<int64_t>& layout, const PlanOptions& o, int64_t layers) {
  const int64_t stages = o.pp * o.vpp;
  const auto said = static_cast<int64_t>(layout.size());
  const int64_t sum = std::accumulate(layout.begin(), layout.end(), int64_t{0});
  if (said != stages) {
    return Wrong("layout=", PrintLayout(layout), " lists ", said,
                 " virtual stages, and pp*vpp = ", o.pp, "*", o.vpp, " is ", stages, ".");
  }
  if (sum != layers) {
    return Wrong("layout=", PrintLayout(layout), " has ", sum, " layers, and the model ", layers,
                 ".");
  }
  for (int64_t i = 1; i + 1 < stages; ++i) {
    if (layout[i] > 0) continue;
    return Wrong("layout=", PrintLayout(layout), " leaves virtual stage ", i,
                 " empty; only the first (embedding) and the last (loss) can be without layers.");
  }
  return absl::OkStatus();
}

// Stages that the tree lists.
absl::Status CheckStages(const std::vector<ModelCut>& cuts, const ShortForm& form,
                         const PlanOptions& o) {
  const auto said = static_cast<int64_t>(cuts.size()) + 1;
  if (said != o.pp * o.vpp) {
    return Wrong("`stages` lists ", said, said == 1 ? " stage" : " stages", ", and pp*vpp = ", o.pp,
                 "*", o.vpp, " is ", o.pp * o.vpp,
                 ". List one for each virtual stage, in the order of the model.");
  }
  if (form.layout.empty()) return absl::OkStatus();
  return Wrong("layout=", PrintLayout(form.layout),
               " and `stages` both say what stages hold. Leave one of them out.");
}

// Whether vocab_parallel=redis decides what stages hold. Errors: it cannot.
absl::StatusOr<bool> DealsByWork(const ShortForm& form, const PlanContext& context,
                                 const PlanOptions& o) {
  if (form.vocab_parallel != "redis" || o.pp == 1) return false;
  if (context.vocab == 0 || context.deal == nullptr) {
    return Wrong(
        "vocab_parallel=redis gives stages layers by the work of the vocabulary's, and the model "
        "has no vocabulary. Leave it out.");
  }
  if (!form.layout.empty() || context.stages.has_value()) {
    return Wrong(
        "vocab_parallel=redis and ",
        form.layout.empty() ? "`stages`" : absl::StrCat("layout=", PrintLayout(form.layout)),
        " both say what stages hold. Leave one of them out.");
  }
  if (o.vpp == 1) return true;
  return absl::UnimplementedError(absl::StrCat("not supported yet: vocab_parallel=redis with vpp=",
                                               o.vpp, ". Use vpp=1, or give a layout."));
}

// Whether a stage would have nothing to do.
bool LeavesIdle(const std::vector<int64_t>& layout, const PlanContext& context) {
  return (layout.front() == 0 && !context.work_before) ||
         (layout.back() == 0 && !context.work_after);
}

}  // namespace

absl::StatusOr<std::string> ChooseLayout(const ShortForm& form, const PlanContext& context,
                                         PlanOptions* options) {
  PlanOptions& o = *options;
  const int64_t stages = o.pp * o.vpp, layers = context.layers;
  if (stages > kMaxVirtualStages) {
    return Wrong("pp=", o.pp, " times vpp=", o.vpp, " is more than ", kMaxVirtualStages,
                 " virtual stages.");
  }
  ASSIGN_OR_RETURN(const bool by_work, DealsByWork(form, context, o));
  if (context.stages.has_value()) {
    RETURN_IF_ERROR(CheckStages(*context.stages, form, o));
    o.cuts = *context.stages;
    return std::string();
  }
  if (!form.layout.empty()) {
    RETURN_IF_ERROR(CheckLayout(form.layout, o, layers));
    o.layout = form.layout;
    return std::string();
  }
  o.layout = by_work ? context.deal(stages) : DefaultLayout(layers, stages);
  if (!o.layout.empty() && LeavesIdle(o.layout, context)) o.layout.clear();
  if (o.layout.empty() && context.cut != nullptr) {
    ASSIGN_OR_RETURN(o.cuts, context.cut(stages));
    return absl::StrCat(stages, " virtual stages of ", layers, layers == 1 ? " module" : " modules",
                        ": cut inside of modules, by their FLOPs");
  }
  if (o.layout.empty()) {
    return Wrong("pp*vpp = ", o.pp, "*", o.vpp, " virtual stages are more than the ", layers,
                 " layers of the model. pp*vpp can be ", layers, " at most",
                 context.work_before && context.work_after
                     ? absl::StrCat(", or ", layers + 2,
                                    " with the embedding and the loss on stages of their own.")
                     : ".");
  }
  if (layers % stages == 0 || by_work) return std::string();
  return absl::StrCat(layers, " layers on ", stages,
                      " virtual stages are uneven: layout=", PrintLayout(o.layout));
}

std::vector<int64_t> DefaultLayout(int64_t layers, int64_t stages) {
  if (stages < 1 || layers < 1) return {};
  const int64_t each = layers / stages, surplus = layers % stages;
  std::vector<int64_t> layout(stages, each);
  if (surplus == 0) return layout;
  if ((layers + 2) % stages == 0) {
    std::fill(layout.begin(), layout.end(), (layers + 2) / stages);
    layout.front() -= 1;
    layout.back() -= 1;
    return layout;
  }
  if (each == 0) return {};
  const int64_t begin = (stages - surplus) / 2;
  for (int64_t i = begin; i < begin + surplus; ++i) layout[i] += 1;
  return layout;
}

}  // namespace plancast
