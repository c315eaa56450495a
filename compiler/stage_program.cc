#include "compiler/stage_program.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/gradient_flow.h"
#include "compiler/pipeline_transfer.h"
#include "compiler/program_writer.h"

namespace plancast {
namespace {

// Writes the passes of one stage and the transfers between them.
class StageWriter {
 public:
  StageWriter(const ProgramInputs& in, int64_t stage, GraphAssembly* assembly)
      : in_(in),
        options_(*in.options),
        profile_(*in.profile),
        mesh_(in.bound->mesh),
        virtual_stages_(static_cast<int64_t>(in.bound->stages.size())),
        pp_axis_(mesh_.FindAxis("pp").value()),
        // Stages that block exchange batch n with their neighbours' batches n - 1
        // and n + 1 in lockstep. That holds while every stage has all its warm-up
        // passes; with no more micro-batches than stages some have fewer, and the
        // ring would lock up (Megatron runs that case without pairs).
        blocks_(options_.vpp == 1 || (options_.micro_batches % options_.pp == 0 &&
                                      options_.micro_batches > options_.pp)),
        blocking_(profile_.p2p_blocking && blocks_ &&
                  (options_.vpp == 1 || !profile_.interleaved_p2p_overlaps)),
        contents_(in, stage),
        writer_(assembly),
        gradients_(in, stage, contents_, &writer_) {
    writer_.program().name = absl::StrCat("stage ", stage);
    writer_.program().where = {{pp_axis_, stage}};
  }

  void Write(const std::vector<ScheduleStep>& schedule) {
    gradients_.Begin();
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
        feeder = schedule[i].phase == Phase::kForward
                     ? Forward(schedule[i], feeder)
                     : Backward(schedule[i], feeder, last_backward[schedule[i].chunk] == i);
      }
      for (size_t i = begin; i < end; ++i) PassOn(schedule[i], feeders[i - begin]);
      begin = end;
    }
    gradients_.Finish();
    writer_.Finish();
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

  int32_t BodyBlock(const StageRun& run, Phase phase) {
    const bool forward = phase == Phase::kForward;
    return writer_.assembly().Block(absl::StrCat("body|", run.bound_body, forward ? "|F" : "|B"),
                                    [&] {
                                      const BodyBlocks& blocks = contents_.BodyOf(run).blocks;
                                      return forward ? blocks.forward : blocks.backward;
                                    });
  }

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
    transfer.host_sync = profile_.p2p_host_sync && blocks_;
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
    ProgramWriter::JoinPorts(feeder, transfer.ports, &joins);
    const int32_t block = writer_.assembly().Block(TransferKey(transfer, stream),
                                                   [&] { return SendBlock(transfer, stream); });
    const int32_t index = writer_.Append(block, Phase::kComm, step.micro_batch, step.chunk, joins);
    writer_.Meet(index, absl::StrCat(what, border, ".", step.micro_batch));
    if (blocking_) writer_.HoldCompute(index);
  }

  int32_t Receive(const char* what, int64_t border, int64_t from, int64_t to, StreamKind stream,
                  const ScheduleStep& step) {
    const PipelineTransfer transfer = Border(border, StageOf(to) - StageOf(from));
    std::vector<Join> joins;
    if (blocking_ && writer_.last_compute() >= 0) {
      joins.push_back({writer_.last_compute(), -1, -1});
    }
    const int32_t block = writer_.assembly().Block(
        TransferKey(transfer, stream), [&] { return ReceiveBlock(mesh_, transfer, stream); });
    const int32_t index = writer_.Append(block, Phase::kComm, step.micro_batch, step.chunk, joins);
    writer_.Meet(index, absl::StrCat(what, border, ".", step.micro_batch));
    if (blocking_) writer_.HoldCompute(index);
    return index;
  }

  // The instance that brings a step its input: a receive, or the pass before it
  // where that ran on this stage; -1: none.
  int32_t Fetch(const ScheduleStep& step) {
    const int64_t v = contents_.VirtualStage(step.chunk);
    if (step.phase == Phase::kForward) {
      if (Crosses(v - 1, v)) return Receive("F", v - 1, v - 1, v, StreamKind::kRecvPrev, step);
      return v > 0 ? local_forward_[step.micro_batch] : -1;
    }
    if (Crosses(v, v + 1)) return Receive("B", v, v + 1, v, StreamKind::kRecvNext, step);
    return v + 1 < virtual_stages_ ? local_backward_[step.micro_batch] : -1;
  }

  // Hands a step's result, ready with instance `feeder`, on.
  void PassOn(const ScheduleStep& step, int32_t feeder) {
    const int64_t v = contents_.VirtualStage(step.chunk);
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

  int32_t Forward(const ScheduleStep& step, int32_t feeder) {
    for (const StageRun& run : contents_.Runs(step.chunk)) {
      const int32_t block = BodyBlock(run, Phase::kForward);
      // The first pass after an overlapped parameter gather: piece by piece.
      const auto pieces = gradients_.TakeGathered(run);
      for (const GradientFlow::GatheredPiece& piece : pieces) {
        feeder = writer_.AppendCompute(block, Phase::kForward, step, piece.layer_begin, piece.count,
                                       feeder, {{piece.instance, -1, -1}});
      }
      if (pieces.empty()) {
        feeder =
            writer_.AppendCompute(block, Phase::kForward, step, run.layer_begin, run.count, feeder);
      }
    }
    return feeder;
  }

  int32_t Backward(const ScheduleStep& step, int32_t feeder, bool last) {
    const std::vector<StageRun>& runs = contents_.Runs(step.chunk);
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      const int32_t block = BodyBlock(*run, Phase::kBackward);
      const int64_t piece = gradients_.LayersPerPiece(*run, last);
      for (int64_t end = run->count; end > 0; end -= std::min(piece, end)) {
        const int64_t count = std::min(piece, end);
        feeder = writer_.AppendCompute(block, Phase::kBackward, step,
                                       run->layer_begin + end - count, count, feeder);
        if (last) gradients_.NoteLastBackward(*run, count);
      }
    }
    if (last) gradients_.EndChunk();
    return feeder;
  }

  const ProgramInputs& in_;
  const PlanOptions& options_;
  const SoftwareProfile& profile_;
  const DeviceMesh& mesh_;
  const int64_t virtual_stages_;
  const int pp_axis_;
  const bool blocks_;    // transfers can block at all
  const bool blocking_;  // compute waits for transfers, sends included
  StageContents contents_;
  ProgramWriter writer_;
  GradientFlow gradients_;
  // Newest instance per micro-batch where the next virtual stage is local too.
  std::map<int32_t, int32_t> local_forward_, local_backward_;
};

}  // namespace

void BuildStageProgram(const ProgramInputs& inputs, int64_t stage,
                       const std::vector<ScheduleStep>& schedule, GraphAssembly* assembly) {
  StageWriter(inputs, stage, assembly).Write(schedule);
}

}  // namespace plancast
