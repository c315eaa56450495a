#include "compiler/stage_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/pipeline_transfer.h"

namespace plancast {
namespace {

constexpr int kMaxMessagesPerReduction = 64;

class StageWriter {
 public:
  StageWriter(const ProgramInputs& in, int64_t stage, GraphAssembly* assembly)
      : in_(in),
        options_(*in.options),
        profile_(*in.profile),
        mesh_(in.bound->mesh),
        stage_(stage),
        virtual_stages_(static_cast<int64_t>(in.bound->stages.size())),
        assembly_(*assembly),
        program_index_(static_cast<int32_t>(assembly->graph().programs.size())),
        pp_axis_(mesh_.FindAxis("pp").value()) {
    program_.name = absl::StrCat("stage ", stage);
    program_.where = {{pp_axis_, stage}};
    blocking_ = profile_.p2p_blocking &&
                (options_.vpp == 1 || !profile_.interleaved_p2p_overlaps);
    overlap_grad_ = options_.overlap.count(Overlap::kGrad) > 0;
    overlap_param_ = options_.overlap.count(Overlap::kParam) > 0;
    const bool data_parallel = options_.dp * options_.cp > 1;
    reduces_ = data_parallel;
    gathers_ = data_parallel && options_.zero >= 1;
  }

  void Write(const std::vector<ScheduleStep>& schedule) {
    CountState();
    if (gathers_ && overlap_param_) GatherParameters();
    if (profile_.zero_grad) {
      Append(assembly_.Block(absl::StrCat("zero|", parameters_),
                             [&] { return ZeroGradients(profile_, parameters_); }),
             Phase::kOptimizer, 0, 0);
    }
    std::map<int32_t, size_t> last_backward;  // of each chunk
    for (size_t i = 0; i < schedule.size(); ++i) {
      if (schedule[i].phase == Phase::kBackward) last_backward[schedule[i].chunk] = i;
    }
    for (size_t begin = 0; begin < schedule.size();) {
      const size_t end = begin + BatchSize(schedule, begin);
      std::vector<int32_t> feeders;
      for (size_t i = begin; i < end; ++i) feeders.push_back(Fetch(schedule[i]));
      for (size_t i = begin; i < end; ++i) {
        int32_t& feeder = feeders[i - begin];
        feeder = Compute(schedule[i], feeder, last_backward[schedule[i].chunk] == i);
      }
      for (size_t i = begin; i < end; ++i) PassOn(schedule[i], feeders[i - begin]);
      begin = end;
    }
    FinishIteration();
    assembly_.graph().programs.push_back(std::move(program_));
  }

 private:
  // Steps between two batches of transfers. Megatron's interleaved schedule
  // without overlap exchanges everything once per forward-backward pair: the
  // inputs of both before, their results after (megatron/schedules.py,
  // send_forward_backward_recv_forward_backward).
  size_t BatchSize(const std::vector<ScheduleStep>& schedule, size_t i) const {
    const bool pair = blocking_ && options_.vpp > 1 && i + 1 < schedule.size() &&
                      schedule[i].phase == Phase::kForward &&
                      schedule[i + 1].phase == Phase::kBackward;
    return pair ? 2 : 1;
  }

  int64_t VirtualStage(int32_t chunk) const { return chunk * options_.pp + stage_; }
  const std::vector<StageRun>& Runs(int32_t chunk) const {
    return in_.bound->stages[VirtualStage(chunk)];
  }
  const CompiledBody& BodyOf(const StageRun& run) const { return *in_.bodies[run.bound_body]; }

  // Elements of one copy of the run's body. A tied parameter whose two users
  // share the stage is counted with the later one only.
  int64_t TiedHere(const StageRun& run) const {
    return options_.pp == 1 && run.segment == in_.first_tied_segment ? in_.tied_elements : 0;
  }
  int64_t Parameters(const StageRun& run) const {
    return BodyOf(run).state.parameters - TiedHere(run);
  }
  int64_t Reduced(const StageRun& run) const {
    return std::max<int64_t>(0, BodyOf(run).state.reduced_over_data - TiedHere(run));
  }

  void CountState() {
    for (int32_t chunk = 0; chunk * options_.pp + stage_ < virtual_stages_; ++chunk) {
      for (const StageRun& run : Runs(chunk)) {
        parameters_ += Parameters(run) * run.count;
      }
    }
    const StateBytes bytes = StateOf(options_, profile_, in_.dtype, parameters_);
    auto set = [this](MemoryKind kind, double value) {
      program_.static_bytes[static_cast<int>(kind)] = static_cast<int64_t>(value);
    };
    set(MemoryKind::kParameters, bytes.parameters);
    set(MemoryKind::kGradients, bytes.gradients);
    set(MemoryKind::kOptimizer, bytes.optimizer);
  }

  // Adds an instance that waits for `joins`; returns its index.
  int32_t Append(int32_t block, Phase phase, int32_t micro_batch, int32_t chunk,
                 const std::vector<Join>& joins = {}, int32_t layer_begin = 0,
                 int32_t layer_count = 1) {
    Instance instance;
    instance.block = block;
    instance.phase = phase;
    instance.micro_batch = micro_batch;
    instance.chunk = chunk;
    instance.layer_begin = layer_begin;
    instance.layer_count = layer_count;
    instance.join_begin = static_cast<int32_t>(program_.joins.size());
    program_.joins.insert(program_.joins.end(), joins.begin(), joins.end());
    instance.join_end = static_cast<int32_t>(program_.joins.size());
    program_.instances.push_back(instance);
    return static_cast<int32_t>(program_.instances.size()) - 1;
  }

  int PortsOf(int32_t block) const { return assembly_.graph().blocks[block].num_in_ports; }

  static void JoinPorts(int32_t from, int ports, std::vector<Join>* joins) {
    for (int port = 0; port < ports; ++port) {
      joins->push_back({from, static_cast<int16_t>(port), static_cast<int16_t>(port)});
    }
  }

  // One compute instance behind `feeder` (-1: none). The first after a batch of
  // blocking transfers waits for all of them.
  int32_t AppendCompute(int32_t block, Phase phase, const ScheduleStep& step, int64_t layer_begin,
                        int64_t count, int32_t feeder, std::vector<Join> joins = {}) {
    if (feeder >= 0) JoinPorts(feeder, PortsOf(block), &joins);
    for (int32_t transfer : unfinished_transfers_) joins.push_back({transfer, -1, -1});
    unfinished_transfers_.clear();
    last_compute_ = Append(block, phase, step.micro_batch, step.chunk, joins,
                           static_cast<int32_t>(layer_begin), static_cast<int32_t>(count));
    return last_compute_;
  }

  int32_t BodyBlock(const StageRun& run, Phase phase) {
    const bool forward = phase == Phase::kForward;
    return assembly_.Block(absl::StrCat("body|", run.bound_body, forward ? "|F" : "|B"), [&] {
      return forward ? BodyOf(run).blocks.forward : BodyOf(run).blocks.backward;
    });
  }

  // ---- pipeline transfers ----

  // The transfer over the border behind virtual stage `v`, from a stage to the
  // one `offset` further.
  PipelineTransfer Border(int64_t v, int64_t offset) const {
    const CompiledBody& body = *in_.bodies[in_.bound->stages[v].back().bound_body];
    PipelineTransfer transfer;
    transfer.buffer_bytes = body.out_port_bytes;
    transfer.wire_bytes = body.out_port_bytes;
    transfer.ports = static_cast<int>(body.plan.out_ports.size());
    if (profile_.p2p_scatter_gather && body.out_ports_replicated && options_.tp > 1) {
      for (int axis : mesh_.AxesOf("tp")) {
        if (mesh_.size(axis) > 1) transfer.gather_axes.push_back(axis);
      }
      transfer.wire_bytes = (transfer.buffer_bytes + options_.tp - 1) / options_.tp;
    }
    transfer.pp_axis = pp_axis_;
    transfer.peer_offset = static_cast<int>(offset);
    transfer.host_sync = profile_.p2p_host_sync;
    return transfer;
  }

  int64_t StageOf(int64_t v) const { return v % options_.pp; }
  bool Crosses(int64_t v, int64_t next) const {
    return v >= 0 && next >= 0 && v < virtual_stages_ && next < virtual_stages_ &&
           StageOf(v) != StageOf(next);
  }

  // `border`: the virtual stage before the border; `to`: where the data goes.
  void Send(const char* what, int64_t border, int64_t from, int64_t to, StreamKind stream,
            const ScheduleStep& step, int32_t feeder) {
    const PipelineTransfer transfer = Border(border, StageOf(to) - StageOf(from));
    std::vector<Join> joins;
    JoinPorts(feeder, transfer.ports, &joins);
    const int32_t block = assembly_.Block(TransferKey(transfer, stream),
                                          [&] { return SendBlock(transfer, stream); });
    const int32_t index = Append(block, Phase::kComm, step.micro_batch, step.chunk, joins);
    program_.instances[index].rendezvous =
        assembly_.Join(absl::StrCat(what, border, ".", step.micro_batch), program_index_, index);
    if (blocking_) unfinished_transfers_.push_back(index);
  }

  int32_t Receive(const char* what, int64_t border, int64_t from, int64_t to, StreamKind stream,
                  const ScheduleStep& step) {
    const PipelineTransfer transfer = Border(border, StageOf(to) - StageOf(from));
    std::vector<Join> joins;
    if (blocking_ && last_compute_ >= 0) joins.push_back({last_compute_, -1, -1});
    const int32_t block = assembly_.Block(
        TransferKey(transfer, stream), [&] { return ReceiveBlock(mesh_, transfer, stream); });
    const int32_t index = Append(block, Phase::kComm, step.micro_batch, step.chunk, joins);
    program_.instances[index].rendezvous =
        assembly_.Join(absl::StrCat(what, border, ".", step.micro_batch), program_index_, index);
    if (blocking_) unfinished_transfers_.push_back(index);
    return index;
  }

  // ---- passes ----

  // The instance that brings a step its input: a receive, or the pass before it
  // where that ran on this stage; -1: none.
  int32_t Fetch(const ScheduleStep& step) {
    const int64_t v = VirtualStage(step.chunk);
    if (step.phase == Phase::kForward) {
      if (Crosses(v - 1, v)) return Receive("F", v - 1, v - 1, v, StreamKind::kRecvPrev, step);
      return v > 0 ? local_forward_[step.micro_batch] : -1;
    }
    if (Crosses(v, v + 1)) return Receive("B", v, v + 1, v, StreamKind::kRecvNext, step);
    return v + 1 < virtual_stages_ ? local_backward_[step.micro_batch] : -1;
  }

  // Hands a step's result, ready with instance `feeder`, on.
  void PassOn(const ScheduleStep& step, int32_t feeder) {
    const int64_t v = VirtualStage(step.chunk);
    if (step.phase == Phase::kForward) {
      if (Crosses(v, v + 1)) {
        Send("F", v, v, v + 1, StreamKind::kSendNext, step, feeder);
      } else {
        local_forward_[step.micro_batch] = feeder;
      }
    } else if (Crosses(v - 1, v)) {
      Send("B", v - 1, v, v - 1, StreamKind::kSendPrev, step, feeder);
    } else {
      local_backward_[step.micro_batch] = feeder;
    }
  }

  int32_t Compute(const ScheduleStep& step, int32_t feeder, bool last_of_chunk) {
    return step.phase == Phase::kForward ? Forward(step, feeder)
                                         : Backward(step, feeder, last_of_chunk);
  }

  int32_t Forward(const ScheduleStep& step, int32_t feeder) {
    for (const StageRun& run : Runs(step.chunk)) {
      const int32_t block = BodyBlock(run, Phase::kForward);
      auto gathered = gathered_.find({run.segment, run.layer_begin});
      if (gathered == gathered_.end()) {
        feeder = AppendCompute(block, Phase::kForward, step, run.layer_begin, run.count, feeder);
        continue;
      }
      // The first pass after an overlapped parameter gather: piece by piece.
      for (const GatheredPiece& piece : gathered->second) {
        feeder = AppendCompute(block, Phase::kForward, step, piece.layer_begin, piece.count,
                               feeder, {{piece.instance, -1, -1}});
      }
      gathered_.erase(gathered);
    }
    return feeder;
  }

  int32_t Backward(const ScheduleStep& step, int32_t feeder, bool last_of_chunk) {
    const std::vector<StageRun>& runs = Runs(step.chunk);
    const bool reduce_now = last_of_chunk && reduces_ && overlap_grad_;
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      const int32_t block = BodyBlock(*run, Phase::kBackward);
      if (!reduce_now) {
        feeder = AppendCompute(block, Phase::kBackward, step, run->layer_begin, run->count, feeder);
        continue;
      }
      const int64_t per_layer = Reduced(*run);
      const int64_t piece = LayersPerBucket(per_layer, run->count);
      for (int64_t end = run->count; end > 0; end -= std::min(piece, end)) {
        const int64_t count = std::min(piece, end);
        feeder = AppendCompute(block, Phase::kBackward, step, run->layer_begin + end - count,
                               count, feeder);
        pending_ += per_layer * count;
        if (pending_ >= BucketElements()) ReducePending(/*whole=*/false);
      }
    }
    if (reduce_now) {
      ReducePending(/*whole=*/false);
    } else if (last_of_chunk) {
      for (const StageRun& run : runs) pending_ += Reduced(run) * run.count;
    }
    return feeder;
  }

  // ---- gradient reduction and parameters ----

  int64_t BucketElements() const {
    return std::max<int64_t>(
        1, static_cast<int64_t>(static_cast<double>(options_.bucket_bytes) /
                                ElementBytes(profile_.reduce_dtype)));
  }
  int64_t LayersPerBucket(int64_t elements_per_layer, int64_t layers) const {
    if (elements_per_layer <= 0) return layers;
    return std::clamp<int64_t>(BucketElements() / elements_per_layer, 1, layers);
  }
  int MessagesFor(int64_t elements) const {
    return static_cast<int>(std::clamp<int64_t>(elements / BucketElements(), 1,
                                                kMaxMessagesPerReduction));
  }

  // Reduces what has gathered, behind the newest compute instance.
  void ReducePending(bool whole) {
    if (pending_ == 0) return;
    const int64_t elements = pending_;
    const int messages = whole ? 1 : MessagesFor(elements);
    pending_ = 0;
    const int32_t block =
        assembly_.Block(absl::StrCat("reduce|", elements, "|", messages), [&] {
          return GradientReduction(mesh_, options_, profile_, elements, messages);
        });
    reductions_.push_back(Append(block, Phase::kComm, 0, 0, {{last_compute_, -1, -1}}));
  }

  struct GatheredPiece {
    int32_t instance;
    int64_t layer_begin, count;
  };

  int32_t AppendGather(int64_t elements, int messages, const std::vector<Join>& joins) {
    const double element_bytes = ElementBytes(StorageType(in_.dtype));
    const int32_t block =
        assembly_.Block(absl::StrCat("gather|", elements, "|", messages), [&] {
          return ParameterGather(mesh_, elements, element_bytes, messages);
        });
    return Append(block, Phase::kComm, 0, 0, joins);
  }

  // Parameter gathers at the start of the iteration, hidden behind the first
  // forward pass; each piece of layers waits for its own.
  void GatherParameters() {
    for (int32_t chunk = 0; chunk * options_.pp + stage_ < virtual_stages_; ++chunk) {
      for (const StageRun& run : Runs(chunk)) {
        const int64_t per_layer = Parameters(run);
        if (per_layer == 0) continue;
        const int64_t piece = LayersPerBucket(per_layer, run.count);
        std::vector<GatheredPiece>& pieces = gathered_[{run.segment, run.layer_begin}];
        for (int64_t begin = 0; begin < run.count; begin += piece) {
          const int64_t count = std::min(piece, run.count - begin);
          pieces.push_back({AppendGather(per_layer * count, MessagesFor(per_layer * count), {}),
                            run.layer_begin + begin, count});
        }
      }
    }
  }

  void FinishIteration() {
    if (reduces_) ReducePending(/*whole=*/true);
    std::vector<Join> joins{{last_compute_, -1, -1}};
    for (int32_t instance : unfinished_transfers_) joins.push_back({instance, -1, -1});
    for (int32_t instance : reductions_) joins.push_back({instance, -1, -1});
    ReduceOthers(&joins);
    ReduceTied(&joins);
    const int64_t shards = gathers_ ? options_.dp * options_.cp : 1;
    const int64_t elements = (parameters_ + shards - 1) / shards;
    std::vector<int> axes;
    for (int a = 0; a < mesh_.num_axes(); ++a) {
      const Purpose root = PurposeOfAxes(mesh_, {a});
      const bool data = root == Purpose::kDp || root == Purpose::kCp;
      if (mesh_.size(a) > 1 && (!data || gathers_)) axes.push_back(a);
    }
    const bool joins_programs = options_.pp > 1;
    const int32_t block = assembly_.Block(absl::StrCat("optimizer|", elements), [&] {
      return OptimizerStep(profile_, in_.dtype, elements, axes, joins_programs);
    });
    const int32_t update = Append(block, Phase::kOptimizer, 0, 0, joins);
    if (assembly_.graph().blocks[block].rendezvous_task >= 0) {
      program_.instances[update].rendezvous =
          assembly_.Join("optimizer", program_index_, update);
    }
    if (gathers_ && !overlap_param_) AppendGather(parameters_, 1, {{update, -1, -1}});
  }

  // Gradients that are partial over other axes than the data-parallel ones.
  void ReduceOthers(std::vector<Join>* joins) {
    std::map<std::vector<int>, int64_t> totals;
    for (int32_t chunk = 0; chunk * options_.pp + stage_ < virtual_stages_; ++chunk) {
      for (const StageRun& run : Runs(chunk)) {
        for (const auto& [axes, elements] : BodyOf(run).state.reduced_over_others) {
          totals[axes] += elements * run.count;
        }
      }
    }
    const std::vector<Join> before = *joins;
    for (const auto& [axes, elements] : totals) {
      const int64_t total = elements;
      const std::vector<int>& over = axes;
      const int32_t block =
          assembly_.Block(absl::StrCat("partial|", absl::StrJoin(axes, ","), "|", total), [&] {
            return PartialGradientSum(mesh_, profile_, over, total);
          });
      joins->push_back({Append(block, Phase::kComm, 0, 0, before), -1, -1});
    }
  }

  // Tied parameters on the first and the last stage swap their gradients.
  void ReduceTied(std::vector<Join>* joins) {
    const bool holder = stage_ == 0 || stage_ == options_.pp - 1;
    if (in_.tied_elements == 0 || options_.pp == 1 || !holder) return;
    CommSpec comm;
    comm.kind = CollectiveKind::kSendRecv;
    comm.bytes = static_cast<int64_t>(
        std::ceil(static_cast<double>(in_.tied_elements) * ElementBytes(profile_.reduce_dtype)));
    comm.axes = {pp_axis_};
    comm.peer_offset = static_cast<int>(stage_ == 0 ? options_.pp - 1 : 1 - options_.pp);
    const int32_t block = assembly_.Block(absl::StrCat("tied|", comm.peer_offset), [&] {
      BlockBuilder builder("tied gradient");
      builder.MarkRendezvous(
          builder.AddComm(comm, StreamKind::kGradComm, Purpose::kDp, "tied gradient", {}));
      return std::move(builder).Build();
    });
    const int32_t index = Append(block, Phase::kComm, 0, 0, *joins);
    program_.instances[index].rendezvous = assembly_.Join("tied", program_index_, index);
    joins->push_back({index, -1, -1});
  }

  const ProgramInputs& in_;
  const PlanOptions& options_;
  const SoftwareProfile& profile_;
  const DeviceMesh& mesh_;
  const int64_t stage_, virtual_stages_;
  GraphAssembly& assembly_;
  const int32_t program_index_;
  const int pp_axis_;
  Program program_;
  bool blocking_ = false, overlap_grad_ = false, overlap_param_ = false;
  bool reduces_ = false, gathers_ = false;
  int64_t parameters_ = 0, pending_ = 0;  // elements
  int32_t last_compute_ = -1;
  std::vector<int32_t> unfinished_transfers_, reductions_;
  // Newest instance per micro-batch where the next virtual stage is local too.
  std::map<int32_t, int32_t> local_forward_, local_backward_;
  std::map<std::pair<int, int64_t>, std::vector<GatheredPiece>> gathered_;
};

}  // namespace

void BuildStageProgram(const ProgramInputs& inputs, int64_t stage,
                       const std::vector<ScheduleStep>& schedule, GraphAssembly* assembly) {
  StageWriter(inputs, stage, assembly).Write(schedule);
}

}  // namespace plancast
