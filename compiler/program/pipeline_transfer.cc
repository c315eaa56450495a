#include "compiler/program/pipeline_transfer.h"

#include <algorithm>
#include <numeric>

namespace plancast {
namespace {

CommSpec Wire(const PipelineTransfer& transfer) {
  CommSpec comm;
  comm.kind = CollectiveKind::kSendRecv;
  comm.bytes = transfer.wire_bytes;
  if (transfer.reshard >= 0) {
    comm.kind = CollectiveKind::kReshard;
    comm.reshard = transfer.reshard;
    return comm;
  }
  comm.axes = {transfer.pp_axis};
  comm.peer_offset = transfer.peer_offset;
  return comm;
}

bool GoesForward(StreamKind stream) {
  return stream == StreamKind::kSendNext || stream == StreamKind::kRecvPrev ||
         stream == StreamKind::kForwardToPrev || stream == StreamKind::kForwardFromNext;
}

}  // namespace

int64_t PipelineTransfer::buffer_bytes() const {
  return std::accumulate(port_bytes.begin(), port_bytes.end(), int64_t{0});
}

bool CrossesIn(const ProgramInputs& inputs, Phase phase, int64_t border) {
  if (inputs.borders != nullptr) return (*inputs.borders)[border].Of(phase).reshard >= 0;
  if (phase == Phase::kForward) return true;
  const CompiledBody& body = *(*inputs.bodies)[(*inputs.stages)[border].back().bound_body];
  return std::any_of(body.grad_port_bytes.begin(), body.grad_port_bytes.end(),
                     [](int64_t bytes) { return bytes > 0; });
}

PipelineTransfer TransferOver(const ProgramInputs& inputs, const CompiledBody& body, Phase phase,
                              int64_t offset) {
  const PlanOptions& options = *inputs.options;
  const SoftwareProfile& profile = *inputs.profile;
  PipelineTransfer transfer;
  transfer.port_bytes = phase == Phase::kForward ? body.out_port_bytes : body.grad_port_bytes;
  transfer.wire_bytes = transfer.buffer_bytes();
  if (profile.pipeline.p2p_scatter_gather && body.out_ports_replicated && options.tp > 1) {
    for (int axis : inputs.mesh->AxesOf("tp")) {
      if (inputs.mesh->size(axis) > 1) transfer.gather_axes.push_back(axis);
    }
    transfer.wire_bytes = (transfer.buffer_bytes() + options.tp - 1) / options.tp;
  }
  transfer.pp_axis = inputs.mesh->FindAxis("pp").value();
  transfer.peer_offset = static_cast<int>(offset);
  transfer.host_sync = profile.pipeline.p2p_host_sync && CanBlock(options);
  return transfer;
}

PipelineTransfer TransferOverBorder(const ProgramInputs& inputs, const BorderCrossing& border,
                                    Phase phase, bool before) {
  const BorderCrossing::Way& way = border.Of(phase);
  PipelineTransfer transfer;
  transfer.port_bytes = before ? way.before_bytes : way.after_bytes;
  transfer.wire_bytes = way.bytes;
  transfer.reshard = way.reshard;
  transfer.host_sync = inputs.profile->pipeline.p2p_host_sync && CanBlock(*inputs.options);
  return transfer;
}

bool CanBlock(const PlanOptions& options) {
  if (!MayBlock(options.schedule) || options.spreads_vocabulary()) return false;
  return options.vpp == 1 ||
         (options.micro_batches % options.pp == 0 && options.micro_batches > options.pp);
}

BlockTemplate SendBlock(const PipelineTransfer& transfer, StreamKind stream) {
  BlockBuilder builder(GoesForward(stream) ? "send activation" : "send gradient", transfer.ports());
  std::vector<int> deps;
  for (int port = 0; port < transfer.ports(); ++port) deps.push_back(~port);
  const int task = builder.AddComm(Wire(transfer), stream, Purpose::kPp, "send", deps);
  builder.MarkRendezvous(task);
  for (int64_t bytes : transfer.port_bytes) {
    if (bytes == 0) continue;
    const uint16_t tensor = builder.AddTensor(builder.name());
    builder.Take(tensor, bytes);
    builder.AddMemory(task, true, MemoryKind::kActivations, tensor, -bytes);
  }
  return std::move(builder).Build();
}

BlockTemplate ReceiveBlock(const DeviceMesh& mesh, const PipelineTransfer& transfer,
                           StreamKind stream) {
  BlockBuilder builder(GoesForward(stream) ? "receive activation" : "receive gradient");
  int task = builder.AddComm(Wire(transfer), stream, Purpose::kPp, "receive", {});
  builder.MarkRendezvous(task);
  if (transfer.host_sync) builder.MarkHostSync(task);
  for (int64_t bytes : transfer.port_bytes) {
    if (bytes == 0) continue;
    const uint16_t tensor = builder.AddTensor(builder.name());
    builder.AddMemory(task, false, MemoryKind::kActivations, tensor, bytes);
    builder.Give(tensor, bytes);
  }
  if (!transfer.gather_axes.empty()) {
    CommSpec gather;
    gather.kind = CollectiveKind::kAllGather;
    gather.bytes = transfer.buffer_bytes();
    gather.axes = transfer.gather_axes;
    task = builder.AddComm(gather, StreamKind::kModelComm,
                           PurposeOfAxes(mesh, transfer.gather_axes), "gather received", {task});
  }
  for (int port = 0; port < transfer.ports(); ++port) builder.AddOutPort(task);
  return std::move(builder).Build();
}

std::string TransferKey(const PipelineTransfer& t, StreamKind stream) {
  std::string key = "p2p|";
  const auto add = [&key](int64_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  for (const int64_t bytes : t.port_bytes) add(bytes);
  add(-1);
  for (const int axis : t.gather_axes) add(axis);
  for (const int64_t number : {t.wire_bytes, int64_t{t.peer_offset}, int64_t{t.reshard},
                               2 * static_cast<int64_t>(stream) + (t.host_sync ? 1 : 0)}) {
    add(number);
  }
  return key;
}

}  // namespace plancast
