#include "compiler/spread_flow.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

// The instance under `key`, which is not asked for again; -1: there is none.
template <typename Map, typename Key>
int32_t Take(Map* map, const Key& key) {
  const auto node = map->extract(key);
  return node.empty() ? -1 : node.mapped();
}

}  // namespace

SpreadFlow::SpreadFlow(const ProgramInputs& inputs, int64_t stage, const StageContents& contents,
                       ProgramWriter* writer)
    : in_(inputs),
      options_(*inputs.options),
      stage_(stage),
      contents_(contents),
      writer_(*writer),
      chunks_(options_),
      last_layers_(options_.pp * options_.vpp - 1),
      pp_axis_(inputs.mesh->FindAxis("pp").value()) {}

const std::vector<int64_t>& SpreadFlow::PortBytes(int32_t chunk, Phase phase) const {
  const StageRun& run =
      chunk == chunks_.input() ? contents_.Runs(chunk).back() : (*in_.stages)[last_layers_].back();
  const CompiledBody& body = contents_.BodyOf(run);
  return phase == Phase::kForward ? body.out_port_bytes : body.grad_port_bytes;
}

bool SpreadFlow::AtRoot(int32_t chunk) const {
  return stage_ == in_.placement->StageOf(chunk == chunks_.input() ? 0 : last_layers_);
}

bool SpreadFlow::AtEnd(const ScheduleStep& step, Phase first) const {
  return contents_.VirtualStage(step.chunk) == (step.phase == first ? 0 : last_layers_);
}

bool SpreadFlow::Brings(const ScheduleStep& step) const {
  if (step.phase == Phase::kWeight) return false;
  return !chunks_.AreLayers(step.chunk) || BeginsLayers(step);
}

int32_t SpreadFlow::Fetch(const ScheduleStep& step) {
  const bool forward = step.phase == Phase::kForward;
  if (chunks_.AreLayers(step.chunk)) {
    return Take(&brought_, std::pair(step.phase, step.micro_batch));
  }
  if (forward != (step.chunk == chunks_.output())) return -1;
  return Broadcast(step, Take(&handed_, std::pair(step.phase, step.micro_batch)));
}

void SpreadFlow::BeforeRun(const ScheduleStep& step) {
  const Phase corrected = options_.splits_output() ? Phase::kWeight : Phase::kBackward;
  if (step.chunk != chunks_.output() || step.phase != corrected || AtOnce()) return;
  if (const int32_t sums = Take(&summed_, step.micro_batch); sums >= 0) writer_.HoldCompute(sums);
  const double bytes = BodyOf(chunks_.output()).blocks.forward.corrected_bytes;
  const int32_t block = writer_.BlockOf(writer_.catalogue().NumberOfText("correction", [&] {
    BlockBuilder builder("correction");
    builder.AddKernel(CopyKernel("correction", bytes, bytes), Purpose::kBackward, "correction", {});
    return std::move(builder).Build();
  }));
  writer_.AppendCompute(block, step.phase, step, 0, 1, /*feeder=*/-1);
}

void SpreadFlow::PassOn(const ScheduleStep& step, int32_t feeder) {
  const bool forward = step.phase == Phase::kForward;
  if (step.phase == Phase::kWeight) return;
  if (chunks_.AreLayers(step.chunk)) {
    if (EndsLayers(step)) handed_[{step.phase, step.micro_batch}] = feeder;
    return;
  }
  const CompiledBody& body = BodyOf(step.chunk);
  const std::vector<CommSpec>& made =
      forward ? body.blocks.forward.outside : body.blocks.backward.outside;
  const bool hands_on = forward == (step.chunk == chunks_.input());
  std::vector<CommSpec> inner;
  if (step.chunk == chunks_.output() && forward != options_.splits_output() && !AtOnce()) {
    inner = body.blocks.forward.outside;
  }
  if (!hands_on && inner.empty()) return;
  const int32_t sums =
      Sum(step, inner, hands_on ? made : std::vector<CommSpec>(), hands_on ? feeder : -1);
  if (!inner.empty()) summed_[step.micro_batch] = sums;
  if (hands_on && AtRoot(step.chunk)) brought_[{step.phase, step.micro_batch}] = sums;
  if (AtOnce()) writer_.HoldCompute(sums);
}

int32_t SpreadFlow::Broadcast(const ScheduleStep& step, int32_t feeder) {
  const bool root = AtRoot(step.chunk);
  const char* const name =
      step.chunk == chunks_.output() ? "broadcast to output layer" : "broadcast to input layer";
  const std::vector<int64_t>& bytes = PortBytes(step.chunk, step.phase);
  const int32_t block = writer_.BlockOf(writer_.catalogue().NumberOfText(
      absl::StrCat(name, root), [&] { return BroadcastBlock(bytes, root, name); }));
  return writer_.AppendTransfer(block, step.micro_batch, step.chunk, feeder,
                                root && feeder >= 0 ? static_cast<int>(bytes.size()) : 0);
}

int32_t SpreadFlow::Sum(const ScheduleStep& step, const std::vector<CommSpec>& inner,
                        const std::vector<CommSpec>& results, int32_t feeder) {
  const bool root = AtRoot(step.chunk);
  const char* const name = step.chunk == chunks_.input() ? "sum of input layer"
                           : results.empty()             ? "sums of loss"
                           : inner.empty()               ? "sum of output layer"
                                                         : "sums of loss and output layer";
  static const std::vector<int64_t> kNothing;
  const std::vector<int64_t>& bytes =
      results.empty() ? kNothing : PortBytes(step.chunk, step.phase);
  const int32_t block = writer_.BlockOf(writer_.catalogue().NumberOfText(
      absl::StrCat(name, root), [&] { return SumBlock(inner, results, bytes, root, name); }));
  if (feeder >= 0) {
    return writer_.AppendTransfer(block, step.micro_batch, step.chunk, feeder,
                                  static_cast<int>(bytes.size()));
  }
  const Join behind{writer_.last_compute(), -1, -1};
  return writer_.Append(block, Phase::kComm, step.micro_batch, step.chunk,
                        absl::MakeConstSpan(&behind, 1));
}

BlockTemplate SpreadFlow::BroadcastBlock(const std::vector<int64_t>& bytes, bool root,
                                         const char* name) const {
  BlockBuilder builder(name, root ? static_cast<int>(bytes.size()) : 0);
  CommSpec comm;
  comm.kind = CollectiveKind::kBroadcast;
  comm.axes = {pp_axis_};
  std::vector<int> ports;
  for (size_t port = 0; port < bytes.size(); ++port) {
    comm.bytes += bytes[port];
    if (root) ports.push_back(~static_cast<int>(port));
  }
  const int task = builder.AddComm(comm, stream(), Purpose::kPp, "broadcast", ports);
  for (size_t port = 0; port < bytes.size(); ++port) {
    builder.AddOutPort(root ? ports[port] : task);
    if (bytes[port] == 0) continue;
    const uint16_t tensor = builder.AddTensor(builder.name());
    if (root) {
      builder.Take(tensor, bytes[port]);
    } else {
      builder.AddMemory(task, false, MemoryKind::kActivations, tensor, bytes[port]);
    }
    builder.Give(tensor, bytes[port]);
  }
  return std::move(builder).Build();
}

BlockTemplate SpreadFlow::SumBlock(const std::vector<CommSpec>& inner,
                                   const std::vector<CommSpec>& results,
                                   const std::vector<int64_t>& bytes, bool root,
                                   const char* name) const {
  BlockBuilder builder(name, static_cast<int>(bytes.size()));
  std::vector<int> behind;
  int task = BlockBuilder::kNone;
  const auto add = [&](CommSpec comm, const char* label) {
    task = builder.AddComm(comm, stream(), Purpose::kPp, label, behind);
    behind = {task};
  };
  for (size_t port = 0; port < bytes.size(); ++port) behind.push_back(~static_cast<int>(port));
  for (const CommSpec& comm : inner) add(comm, "all_reduce");
  for (CommSpec comm : results) {
    if (!AtOnce()) comm.kind = CollectiveKind::kReduce;
    add(comm, AtOnce() ? "all_reduce" : "reduce");
  }
  for (const int64_t own : bytes) {
    if (root) builder.AddOutPort(task);
    if (own == 0) continue;
    const uint16_t tensor = builder.AddTensor(builder.name());
    builder.Take(tensor, own);
    if (root) {
      builder.Give(tensor, own);
    } else {
      builder.AddMemory(task, true, MemoryKind::kActivations, tensor, -own);
    }
  }
  return std::move(builder).Build();
}

}  // namespace plancast
