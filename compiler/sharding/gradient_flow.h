#ifndef PLANCAST_COMPILER_SHARDING_GRADIENT_FLOW_H_
#define PLANCAST_COMPILER_SHARDING_GRADIENT_FLOW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/lower/body_state.h"
#include "compiler/program/program_inputs.h"
#include "compiler/program/program_writer.h"
#include "compiler/program/stage_contents.h"
#include "compiler/sharding/optimizer/optimizer_step.h"
#include "compiler/sharding/sharded_stage.h"
#include "compiler/sharding/stage_state.h"
#include "compiler/sharding/synchronise.h"

namespace plancast {

// Slots of the rendezvous (GraphAssembly::Join): the two of the gradients, then those of the
// transfers between stages, then further ones of gradients that stages share and of their norm.
inline constexpr int64_t kOptimizerSlot = 0, kTiedSlot = 1, kTransferSlots = 2;
// Of the gradients that stages share, the index-th; behind the last of them, those of their norm
// on its way over the borders of stages.
int64_t SharedSlot(const ProgramInputs& in, size_t index);
int64_t NormSlots(const ProgramInputs& in);

// Gradients and parameters of one stage on their way over the data-parallel
// axes: buckets reduced behind the backward pass or all at its end, parameters
// of a sharded optimizer gathered before the first forward pass or at the end,
// then the optimizer step. A bucket holds gradients of neighbours with equal homes and sizes
// of buckets.
class GradientFlow {
 public:
  // Layers of a run whose parameters one gather instance brings.
  struct GatheredPiece {
    int32_t instance;
    int64_t layer_begin, count;
  };

  GradientFlow(const ProgramInputs& inputs, int64_t stage, const StageContents& contents,
               const ShardedStage* sharded, ProgramWriter* writer);

  // At the start of the iteration: overlapped gathers, gradients set to zero.
  void Begin();
  // The pieces of a run that its first forward pass waits for; empty after.
  std::vector<GatheredPiece> TakeGathered(const StageRun& run);

  // Whether any gradients of a run, or of the stage, are not reduced in its bodies.
  bool HasBuckets(const StageRun& run) const;
  bool HasBuckets() const { return has_buckets_; }
  // How many layers of the run a backward pass that reduces gradients does between
  // two reductions; all of them if reductions do not overlap.
  int64_t LayersPerPiece(const StageRun& run, bool reduces) const;
  // The same of the first piece of a run.
  int64_t LayersOfFirstPiece(const StageRun& run, bool reduces) const;
  // A pass whose body blocks reduce gradients themselves ended with `instance`.
  void NoteReductions(int32_t instance) { reductions_.push_back(instance); }
  // `count` layers of the run have run backward in such a pass.
  void NoteBackward(const StageRun& run, int64_t count);
  // Such a pass of a chunk is over, its last or (sync=each) one of several.
  void EndChunk(bool last);

  // Remaining reductions, gradients that stages share, optimizer, gathers.
  void Finish();

 private:
  // Gradients whose reduction is due.
  struct Bucket {
    bool sharded = false;  // each rank needs the sum of its shard alone
    bool whole = false;    // and gets all of it nevertheless
    bool on_host = false;  // which goes to an optimizer there
    int64_t bytes = 0;     // of a full one
    int64_t elements = 0;
    ElementsByAxes cut = {};    // beside those: of weights that a data-parallel axis cuts,
    ElementsByAxes batch = {};  // and BodyState::reduced_over_batch
    int64_t placed = 0;         // of `cut`: BodyState::placed_gradients
    std::optional<HomeAxes> over = std::nullopt;  // ParameterHomes
    ElementsByCopies own = {};                    // BodyState::own that are to be summed
    int32_t made_by = -1;                         // the newest compute instance

    bool Takes(const ParameterHomes& homes) const {
      return sharded == (homes.zero >= 1) && on_host == homes.state_on_host &&
             bytes == homes.bucket_bytes && over == homes.over;
    }
    int64_t due() const;
  };

  // Calls `use(part)` for parameters of the run whose gradients are reduced in buckets.
  template <typename Use>
  void ForEachBucketed(const StageRun& run, Use use) const {
    contents_.ForEachPart(run, [&](const HomePart& part) {
      if (!InBodies(part.homes, sharded_)) use(part);
    });
  }
  // Whether updated parameters have to be gathered in the end.
  bool Gathers(const ParameterHomes& homes) const {
    return (shares_ || homes.over.has_value()) && (homes.zero == 1 || homes.zero == 2);
  }
  int64_t TrainedTensors() const;
  // The optimizer's step for so many of them; norms of tensors are added where it needs them.
  int32_t StepBlock(int64_t elements, GradientNorm* norm, ShardedUpdate* sharded);
  void AddTensorNorms(GradientNorm* norm) const;
  // Of how many parameters the device keeps the state.
  int64_t Kept() const;
  // Of gradients that backward passes have made.
  int64_t FreshBytes() const;
  int64_t BucketElements(int64_t bytes) const;
  // Of a bucket that is filled next, of `bytes` usually.
  int64_t NextBucketBytes(int64_t bytes) const;
  template <typename BytesOf>
  int64_t LayersThatFill(const StageRun& run, bool reduces, BytesOf bytes_of) const;
  int64_t LayersPerBucket(int64_t bytes, int64_t elements_per_layer, int64_t layers) const;
  int MessagesFor(int64_t bytes, int64_t elements) const;
  // Reduces what is due, behind the newest compute instance.
  void ReducePending(bool whole);
  void Reduce(Bucket* bucket, bool whole, int32_t behind);
  // Buckets end where neighbours have others.
  void EndBucketsBefore(const StageRun& run);
  Bucket& BucketOf(const ParameterHomes& homes);
  // Copies so many gradients to an optimizer on the host, behind an instance.
  void CopyToHost(int64_t elements, int32_t behind);
  // Those that no reduction brings there.
  int64_t LeftForHost() const;
  // What is gathered of updated parameters: `cut`, which are among the elements, and others over
  // axes that their home says.
  struct Gathering {
    int64_t elements = 0;
    ElementsByAxes cut;
    ElementsByHome own;
    ReturnStyle style;

    void AddOwn(const ElementsByHome& elements, int64_t times);
    int64_t Own() const;
    void Add(int64_t count, const ElementsByAxes& of_cut, int64_t times = 1);
    bool empty() const { return elements == 0 && own.empty(); }
  };
  // Adds the parameters of a state.
  void AddOwn(const HomeAxes& over, const ElementsByCopies& own, Gathering* gathering) const;
  // `freed`: bytes of gradients that are given up behind it.
  int32_t Gather(const Gathering& what, int messages, const std::vector<Join>& joins,
                 int64_t freed = 0);
  void GatherAhead();
  void GatherUpdated(const std::vector<Join>& joins, int64_t freed);
  // A partial sum of so many gradients over `axes`.
  void SumPartial(const std::vector<int>& axes, int64_t elements, const std::vector<Join>& joins,
                  std::vector<Join>* done);
  void ReduceOthers(std::vector<Join>* joins);
  void ReduceShared(std::vector<Join>* joins);
  void ReduceSharedAcrossMeshes(std::vector<Join>* joins);
  // Whether each rank needs its shard alone of gradients that these stages share.
  bool SharesGradients(const std::vector<int64_t>& stages) const;
  // Whether gradients are reduced or updated bucket by bucket.
  bool GoesByBuckets() const { return overlap_grad_ || (updates_early_ && !reduces_); }
  // Updates buckets that are due for it (StepTime::kInBackward).
  void UpdateEarly();
  void Update(const std::vector<Join>& joins);
  void ClearGradients();

  const ProgramInputs& in_;
  const PlanOptions& options_;
  const SoftwareProfile& profile_;
  const DeviceMesh& mesh_;
  const int64_t stage_;
  const StageContents& contents_;
  const ShardedStage* const sharded_;  // null: bodies know nothing of data parallelism
  ProgramWriter& writer_;
  const int64_t parameters_;
  const bool reduces_, shares_, overlap_grad_, overlap_param_, updates_early_;
  const std::vector<StateGroup> groups_;
  const bool has_buckets_;
  const bool host_updates_;      // some of the optimizer lives on the host
  std::vector<Bucket> pending_;  // in the order in which they began
  bool first_bucket_ = true;     // a pass has reduced nothing yet
  std::vector<int32_t> reductions_;
  // A bucket whose parameters can be updated behind an instance: gradients that passes made, and
  // parameters that are this device's to update.
  struct EarlyUpdate {
    int64_t made = 0, kept = 0;
    int32_t behind = -1;
  };
  std::vector<EarlyUpdate> early_;
  std::vector<Join> updates_;           // that are written
  int64_t updated_ = 0, given_up_ = 0;  // by those before the last: parameters, bytes
  std::map<std::pair<int, int64_t>, std::vector<GatheredPiece>> gathered_;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARDING_GRADIENT_FLOW_H_
