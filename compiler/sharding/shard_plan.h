#ifndef PLANCAST_COMPILER_SHARDING_SHARD_PLAN_H_
#define PLANCAST_COMPILER_SHARDING_SHARD_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/device_mesh.h"
#include "compiler/lower/body_state.h"
#include "compiler/program/program_inputs.h"
#include "compiler/program/stage_contents.h"
#include "compiler/sharding/shard_axes.h"
#include "graph/dtype.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"

namespace plancast {

// Parameters that are gathered together and whose gradients are reduced together, on
// one device, in elements. Each part lies on axes of its own (experts).
struct ShardUnit {
  struct Part {
    ShardAxes axes;
    ParameterHomes homes;   // of any bucket
    int64_t elements = 0;   // of the parameters
    int64_t padded = 0;     // what is gathered: a multiple of axes.shards
    int64_t to_reduce = 0;  // of their gradients, what a rank sends
    int64_t count = 0;      // of the parameters
    // Of `padded`, what each collective over a list of ranks' parts gathers; absent: all in one.
    std::optional<std::vector<int64_t>> lists;
    // Of `padded`, what a backward pass that recomputes gathers once more in between, and of lists.
    int64_t again = 0;
    std::vector<int64_t> lists_again;

    int64_t shard() const { return axes.Kept(padded); }
    // Shared with no rank: nothing is gathered, nothing reduced (experts that ep cuts over all
    // ranks).
    bool is_alone() const {
      return axes.shard.empty() && axes.summed.empty() && !axes.SumsReplicas() &&
             !homes.over.has_value();
    }
    // Cut over no axis because its home says so: it comes from the host, and from nowhere else.
    bool is_fetched() const { return homes.over.has_value() && axes.shard.empty(); }
  };
  std::string name;
  std::vector<Part> parts;

  // Adds the parameters of a body, rounded up as `style` says; of `trained` those that are.
  // `layers`: so many in a row, each of which its backward pass recomputes; 0: none.
  void Add(const DeviceMesh& mesh, const PlanOptions& options,
           const SoftwareProfile::DataParallel& style, const ParameterHomes& homes,
           const std::vector<BodyState::Parameter>& parameters, int layers, bool trained = false);

  int64_t elements() const;
  int64_t count() const;
  int64_t padded() const;
  int64_t shard() const;         // what a rank keeps
  int64_t kept_whole() const;    // of that, what it alone keeps
  int64_t alone() const;         // and what it shares with no other
  int64_t host_weights() const;  // of that, on the host: of the weights, and of the gradients
  int64_t host_gradients() const;
  int64_t whole_on_host() const;  // of the weights, what is not cut
  int64_t secondary() const;      // and what it keeps from forward to backward
  // Whether anything has to be gathered or fetched, after the forward pass if `secondary`.
  bool gathers(bool secondary = false) const;
  // The most ranks that any of it is gathered from.
  int64_t gathered_over(bool secondary = false) const;
  bool by_lists() const;
};

// Bytes of an element, by what it is.
struct ShardTypes {
  double at_rest = 0;   // of a parameter's shard between steps
  double updated = 0;   // of a trained one, as an update on the host sends it
  double wire = 0;      // of a parameter while it is gathered
  double gathered = 0;  // and after
  double gradient = 0;  // as the backward pass makes it
  double reduced = 0;   // before gradients are reduced
  double reduced_wire = 0;
  double kept = 0;  // of a gradient's shard
};
// Of the shard of a unit's gradients, on the device.
int64_t KeptGradientBytes(const ShardUnit& unit, const ShardTypes& types);
// Of a stage; 8- and 4-bit parameters on average.
ShardTypes ShardTypesOf(const ProgramInputs& inputs, const StageContents& contents);

// Whether sharded parameters at rest are the shard of the fp32 master.
bool RestsAsMaster(const SoftwareProfile& profile, DType dtype);
// Whether bodies have to be sharded for parameters with such homes: gradients, or parameters
// too, that several ranks share or that go to the host.
bool ShardsBodies(const PlanOptions& options, const ParameterHomes& homes);
// For any of a stage.
bool ShardsBodies(const PlanOptions& options, const StageContents& contents);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_SHARD_PLAN_H_
