#include "compiler/sharding/sharded_stage.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"

namespace plancast {
namespace {

// The last segment of the model that is part of a list, or -1.
int LastListed(const std::vector<Segment>& segments) {
  int last = -1;
  for (size_t s = 0; s < segments.size(); ++s) {
    if (segments[s].in_list()) last = static_cast<int>(s);
  }
  return last;
}

std::string NameOf(const CompiledBody& body) {
  const std::string& name = body.blocks.forward.block.name;  // `layer.F`
  return name.substr(0, name.rfind('.'));
}

bool Recomputes(const CompiledBody& body) {
  return absl::c_linear_search(body.blocks.backward.block.purpose, Purpose::kRecompute);
}

// Without those that are gathered with their other user, so many elements.
std::vector<BodyState::Parameter> Untied(std::vector<BodyState::Parameter> parameters,
                                         int64_t shared) {
  if (shared == 0) return parameters;
  parameters.erase(std::remove_if(parameters.begin(), parameters.end(),
                                  [&](const BodyState::Parameter& p) {
                                    if (p.elements == 0 || p.elements > shared) return false;
                                    shared -= p.elements;
                                    return true;
                                  }),
                   parameters.end());
  return parameters;
}

}  // namespace

bool Reshards(const PlanOptions& options) { return options.reshard && options.reshard_ranks != 1; }

ShardedStage::ShardedStage(const ProgramInputs& inputs, const StageContents& contents)
    : in_(inputs) {
  const PlanOptions& options = *inputs.options;
  const SoftwareProfile& profile = *inputs.profile;
  const int last_listed = LastListed(*inputs.segments);
  const bool root = last_listed >= 0 && (profile.data_parallel.root_unit || contents.borrows());
  for (int32_t chunk = 0; chunk < contents.chunks(); ++chunk) {
    Unit* rest = nullptr;  // the root
    of_run_.emplace_back();
    for (const StageRun& run : contents.Runs(chunk)) {
      const CompiledBody& body = contents.BodyOf(run);
      const bool outside = last_listed >= 0 && !(*inputs.segments)[run.segment].in_list();
      const bool joins = root && outside;
      if (!joins || rest == nullptr) {
        units_.push_back(std::make_unique<Unit>());
        units_.back()->sizes.name = joins ? "root" : NameOf(body);
        units_.back()->weights.name = units_.back()->sizes.name;
        units_.back()->trained.name = units_.back()->sizes.name;
        units_.back()->repeats = run.count;
        if (joins) rest = units_.back().get();
      }
      Unit& unit = joins ? *rest : *units_.back();
      const std::vector<bool>* const whole = contents.WholeGradients(run);
      const int layers = Recomputes(body) ? body.blocks.forward.block.layers : 0;
      contents.ForEachPart(run, [&](const HomePart& part) {
        gathers_ = gathers_ || part.homes.zero == 3;
        if (!Takes(part.homes)) return;
        const int64_t borrowed = contents.BorrowedBy(run) + contents.FrozenBorrowedBy(run);
        std::vector<BodyState::Parameter> untied;
        if (borrowed > 0) untied = Untied(part.state->each, borrowed);
        const auto& parameters = borrowed > 0 ? untied : part.state->each;
        const auto add = [&](ShardUnit* to, bool trained) {
          to->Add(*inputs.mesh, options, profile.data_parallel, part.homes, parameters, layers,
                  trained);
        };
        add(&unit.sizes, false);
        // Mostly the three are one.
        unit.all_trained = unit.all_trained &&
                           std::none_of(parameters.begin(), parameters.end(),
                                        [](const BodyState::Parameter& p) { return p.frozen; });
        unit.all_gathered = unit.all_gathered && part.homes.zero == 3;
        if (unit.all_trained) {
          unit.trained = unit.sizes;
        } else {
          add(&unit.trained, true);
        }
        if (unit.all_gathered) {
          unit.weights = unit.sizes;
        } else if (part.homes.zero == 3) {
          add(&unit.weights, false);
        }
      });
      for (const BlockTemplate* block : {&body.blocks.backward, &body.blocks.weights}) {
        int64_t made = 0;
        for (const BlockTemplate::Gradient& g : block->gradients) {
          if (!g.further && (whole == nullptr || !(*whole)[g.tensor])) made += g.elements;
        }
        if (made > 0) unit.gradients.push_back(made);
      }
      unit.stays =
          unit.stays || joins || !Reshards(options) ||
          (profile.data_parallel.keeps_last_unit && outside && run.segment > last_listed) ||
          (options.reshard_ranks > 0 && !unit.weights.gathers(true));
      unit.backward =
          unit.backward || (contents.HasBackward(run) && body.blocks.backward.block.size() > 0);
      of_run_.back().push_back(&unit);
    }
  }
  // What does nothing in the backward pass is not needed after the forward pass.
  for (const std::unique_ptr<Unit>& unit : units_) unit->stays = unit->stays && unit->backward;
}

int64_t ShardedStage::GradientBytes(const ShardTypes& types) const {
  int64_t total = 0;
  for (const std::unique_ptr<Unit>& unit : units_) {
    if (unit->trained.elements() == 0) continue;
    total += KeptGradientBytes(unit->trained, types) * unit->repeats;
  }
  return total;
}

int64_t ShardedStage::ShardElements(const ParameterHomes& homes) const {
  return Shards(homes, [](const Unit& unit) -> const ShardUnit& { return unit.trained; });
}

int64_t ShardedStage::FrozenShards(const ParameterHomes& homes) const {
  return Shards(homes, [](const Unit& unit) -> const ShardUnit& { return unit.sizes; }) -
         ShardElements(homes);
}

}  // namespace plancast
