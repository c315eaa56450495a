#include "compiler/activations/offload_flow.h"

#include <algorithm>

#include "compiler/activations/kept_parts.h"

namespace plancast {
namespace {

// One layer of a chunk, in forward order.
struct Layer {
  const StageRun* run = nullptr;
  int64_t layer = 0;
  bool offloaded = false;
};

void Append(const Layer& layer, int beside, bool waits, bool backward,
            std::vector<OffloadFlow::Part>* parts) {
  if (!parts->empty()) {
    OffloadFlow::Part& last = parts->back();
    if (last.run == layer.run && last.beside == beside && last.waits == waits) {
      ++last.count;
      if (backward) last.layer_begin = layer.layer;
      return;
    }
  }
  parts->push_back({layer.run, layer.layer, 1, beside, waits});
}

}  // namespace

OffloadFlow::OffloadFlow(const ProgramInputs& inputs, const StageContents& contents,
                         ProgramWriter* writer)
    : in_(inputs),
      contents_(contents),
      writer_(*writer),
      plan_offloads_(inputs.options->offload.count(Offload::kActivations) > 0),
      active_(plan_offloads_ || (inputs.homes != nullptr && inputs.homes->OffloadsActivations())) {
  const int32_t chunks = contents.chunks();
  forward_.resize(chunks);
  backward_.resize(chunks);
  last_body_.assign(chunks, -1);
  tensors_.resize(inputs.bodies->size());
  int64_t budget = inputs.options->offload_layers;
  for (int32_t chunk = 0; chunk < chunks; ++chunk) MakeParts(chunk, &budget);
}

std::optional<bool> OffloadFlow::OnHost(const StageRun& run) const {
  if (in_.homes == nullptr) return std::nullopt;
  const std::optional<Home>& said = in_.homes->ActivationsOf(run);
  return said.has_value() ? std::optional<bool>(said->on_host) : std::nullopt;
}

void OffloadFlow::MakeParts(int32_t chunk, int64_t* budget) {
  const std::vector<StageRun>& runs = contents_.Runs(chunk);
  if (!active_) {
    forward_[chunk].reserve(runs.size());
    for (const StageRun& run : runs) forward_[chunk].push_back({&run, run.layer_begin, run.count});
    backward_[chunk].assign(forward_[chunk].rbegin(), forward_[chunk].rend());
    return;
  }
  std::vector<Layer> layers;
  int64_t repeated = 0;
  for (const StageRun& run : runs) {
    for (int64_t i = 0; i < run.count; ++i) layers.push_back({&run, run.layer_begin + i});
    if (contents_.BodyOf(run).is_layer && !OnHost(run).has_value()) repeated += run.count;
  }
  // Unless told, all but the last, whose tensors would come straight back.
  int64_t left = *budget < 0 ? repeated - 1 : *budget;
  for (Layer& layer : layers) {
    if (const std::optional<bool> on_host = OnHost(*layer.run); on_host.has_value()) {
      if (!*on_host) continue;
    } else if (!contents_.BodyOf(*layer.run).is_layer || !plan_offloads_ || left <= 0) {
      continue;
    } else {
      --left;
    }
    std::vector<KeptTensor>& tensors = tensors_[layer.run->bound_body];
    if (tensors.empty()) tensors = CopiedOf(*layer.run);
    layer.offloaded = !tensors.empty();
  }
  if (*budget >= 0) *budget = left;
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool copies = i > 0 && layers[i - 1].offloaded;
    Append(layers[i], copies ? layers[i - 1].run->bound_body : -1, false, /*backward=*/false,
           &forward_[chunk]);
  }
  for (size_t i = layers.size(); i-- > 0;) {
    const bool copies = i > 0 && layers[i - 1].offloaded;
    Append(layers[i], copies ? layers[i - 1].run->bound_body : -1, layers[i].offloaded,
           /*backward=*/true, &backward_[chunk]);
  }
  if (!layers.empty() && layers.back().offloaded) {
    last_body_[chunk] = layers.back().run->bound_body;
  }
}

std::vector<KeptCopies> OffloadFlow::SharedOut(const StageRun& run) const {
  if (in_.homes == nullptr || in_.homes->ActivationsOver(run).empty()) return {};
  return KeptOver(contents_.BodyOf(run).blocks, in_.homes->ActivationsOver(run));
}

std::vector<KeptTensor> OffloadFlow::CopiedOf(const StageRun& run) const {
  const BlockTemplate& forward = contents_.BodyOf(run).blocks.forward;
  const std::vector<KeptCopies> shared = SharedOut(run);
  const int64_t least = in_.profile->tensors.offload_least_bytes;
  if (shared.empty()) return KeptTensors(forward.block, least);
  return KeptTensors(KeepingParts(forward, shared, *in_.mesh).block, least);
}

int32_t OffloadFlow::InParts(const StageRun& run, Phase phase, int32_t plain) {
  const std::vector<KeptCopies> kept = SharedOut(run);
  if (kept.empty()) return plain;
  BlockCatalogue& catalogue = writer_.catalogue();
  return catalogue.Number(
      {BlockKey::kKeptParts, plain, run.joined < 0 ? run.segment : -1 - run.joined}, [&] {
        return phase == Phase::kForward ? KeepingParts(catalogue[plain], kept, *in_.mesh)
                                        : GatheringParts(catalogue[plain], kept, *in_.mesh);
      });
}

int32_t OffloadFlow::BlockOf(const Part& part, Phase phase, int32_t plain) {
  plain = InParts(*part.run, phase, plain);
  if (part.beside < 0 && !part.waits) return writer_.BlockOf(plain);
  const bool forward = phase == Phase::kForward;
  const BodyBlocks& body = contents_.BodyOf(*part.run).blocks;
  const int data_ports = (forward ? body.forward : body.backward).block.num_in_ports;
  const int64_t how = 2 * (part.beside + 1) + (part.waits ? 1 : 0);
  BlockCatalogue& catalogue = writer_.catalogue();
  return writer_.BlockOf(catalogue.Number(
      {forward ? BlockKey::kCopyOutBeside : BlockKey::kCopyInBeside, plain, how}, [&] {
        static const std::vector<KeptTensor>& kNone = *new std::vector<KeptTensor>;
        const std::vector<KeptTensor>& beside = part.beside < 0 ? kNone : TensorsOf(part.beside);
        return forward ? WithCopiesOut(catalogue[plain], beside, data_ports)
                       : WithCopiesIn(catalogue[plain], beside, part.waits, data_ports);
      }));
}

std::vector<OffloadFlow::Part> OffloadFlow::Cut(int32_t chunk, Phase phase, const StageRun& run,
                                                int64_t layer_begin, int64_t count) const {
  std::vector<Part> cut;
  for (Part part : Parts(chunk, phase)) {
    if (part.run != &run) continue;
    const int64_t end = std::min(part.layer_begin + part.count, layer_begin + count);
    part.layer_begin = std::max(part.layer_begin, layer_begin);
    part.count = end - part.layer_begin;
    if (part.count > 0) cut.push_back(part);
  }
  return cut;
}

std::vector<Join> OffloadFlow::JoinsOf() const {
  if (copying_ < 0) return {};
  return {{copying_, static_cast<int16_t>(copying_port_), -1}};
}

void OffloadFlow::Note(const Part& part, int32_t plain, int32_t instance) {
  copying_ = part.beside >= 0 ? instance : -1;
  if (part.beside >= 0) copying_port_ = CopiesPort(writer_.catalogue()[plain].block);
}

void OffloadFlow::EndForward(const ScheduleStep& step, int32_t feeder) {
  if (!active_) return;
  if (copying_ >= 0) writer_.HoldCompute(copying_);
  copying_ = -1;
  const int body = LastBody(step.chunk);
  if (body < 0) return;
  const int32_t block =
      writer_.BlockOf({BlockKey::kCopyOut, body}, [&] { return CopiesOut(TensorsOf(body)); });
  writer_.HoldCompute(
      writer_.Append(block, Phase::kComm, step.micro_batch, step.chunk, {{feeder, -1, -1}}));
}

void OffloadFlow::BeginBackward(const ScheduleStep& step) {
  const int body = active_ ? LastBody(step.chunk) : -1;
  if (body < 0) return;
  const int32_t block =
      writer_.BlockOf({BlockKey::kCopyIn, body}, [&] { return CopiesIn(TensorsOf(body)); });
  const Join behind{writer_.last_compute(), -1, -1};
  writer_.HoldCompute(writer_.Append(block, Phase::kComm, step.micro_batch, step.chunk,
                                     absl::MakeConstSpan(&behind, behind.from < 0 ? 0 : 1)));
}

}  // namespace plancast
