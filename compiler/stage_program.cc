#include "compiler/stage_program.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/types/span.h"
#include "base/check.h"
#include "compiler/activations/offload_flow.h"
#include "compiler/activations/parking_flow.h"
#include "compiler/pair_run.h"
#include "compiler/plain_passes.h"
#include "compiler/program/program_writer.h"
#include "compiler/program/repeated_turns.h"
#include "compiler/schedule/vocabulary_schedule.h"
#include "compiler/sharding/gradient_flow.h"
#include "compiler/sharding/layer_slices.h"
#include "compiler/sharding/sharded_flow.h"
#include "compiler/spread_flow.h"
#include "compiler/stage_blocks.h"
#include "compiler/stage_crossings.h"

namespace plancast {
namespace {

// Writes the passes of one stage and the transfers between them.
class StageWriter {
 public:
  StageWriter(const ProgramInputs& in, int64_t stage, BlockCatalogue* catalogue,
              GraphAssembly* assembly, Program* program, bool joins = true)
      : in_(in),
        options_(*in.options),
        stage_(stage),
        contents_(in, stage),
        writer_(catalogue, assembly, program, joins),
        transfers_(in, stage, &writer_),
        sharded_(ShardsBodies(options_, contents_)
                     ? std::make_unique<ShardedFlow>(in, contents_, &writer_)
                     : nullptr),
        syncs_whole_each_(in.homes == nullptr ? options_.sync_each : options_.sync_whole_each),
        gradients_(in, stage, contents_, sharded_ ? &sharded_->stage() : nullptr, &writer_),
        slices_(&gradients_),
        offload_(in, contents_, &writer_),
        parking_(in.parking == nullptr
                     ? nullptr
                     : std::make_unique<ParkingFlow>(in, stage, FirstFreeSlot(in), &writer_)),
        spread_(options_.spreads_vocabulary()
                    ? std::make_unique<SpreadFlow>(in, stage, contents_, &writer_)
                    : nullptr),
        chunks_(CrossingsOf(in, contents_)),
        plain_(chunks_.size(), &writer_),
        turns_(&writer_),
        blocks_(in, contents_, catalogue),
        has_gradients_(contents_.chunks(), false) {}

  void Write(const std::vector<ScheduleStep>& schedule) {
    SayWhere(in_, stage_, &writer_.program());
    Reserve(schedule);
    gradients_.Begin();
    const LastPasses last_pass = Prepare(schedule);
    const BlockedSteps blocked(options_, *in_.profile, schedule);
    if (!parking_ && !spread_) turns_.Begin(schedule, last_pass, options_.pp);
    for (size_t begin = 0; begin < schedule.size();) {
      begin += turns_.Append(begin);
      const size_t end = begin + BatchSize(schedule, begin);
      transfers_.Block(blocked.OfReceive(begin));
      int32_t feeders[kMaxBatch];
      for (size_t i = begin; i < end; ++i) feeders[i - begin] = Fetch(schedule[i]);
      const bool pairs = schedule[begin].pairs;
      if (pairs) RunPair(&schedule[begin], last_pass.GoesBackAt(begin + 1), feeders);
      for (size_t i = pairs ? end : begin; i < end; ++i) {
        int32_t& feeder = feeders[i - begin];
        if (parking_) parking_->BeforeStep(static_cast<int64_t>(i));
        feeder = Run(schedule[i], feeder, last_pass.GoesBackAt(i));
        if (parking_) parking_->AfterStep(static_cast<int64_t>(i), feeder);
      }
      transfers_.Block(blocked.OfSend(begin));
      for (size_t i = begin; i < end; ++i) PassOn(schedule[i], feeders[i - begin]);
      begin = end;
    }
    if (parking_) parking_->Finish();
    gradients_.Finish();
  }

  // Of a writer without joins.
  void Outline(const ShortOrder& order, ProgramOutline* outline) {
    const std::vector<ScheduleStep>& schedule = order.steps;
    outline_ = outline;
    alike_ = AlikeChunks(in_, contents_, chunks_, offload_.active());
    parts_.assign(kActs * 8 * kPasses * chunks_.size(), -1);
    AddPart(0, [&] { gradients_.Begin(); });
    const LastPasses last_pass = Prepare(schedule);
    const auto act = [&](Act act, size_t i) { AddTurn(act, schedule[i], last_pass.GoesBackAt(i)); };
    for (size_t begin = 0; begin < schedule.size();) {
      const size_t end = begin + BatchSize(schedule, begin);
      const auto turns = static_cast<int32_t>(outline->turns.size());
      if (begin <= order.turn_begin) outline->like_begin = turns;
      if (begin <= order.turn_end) outline->like_end = turns;
      if (end == begin + 1) {
        act(Act::kAll, begin);
      } else if (schedule[begin].pairs) {
        AddPairTurn(&schedule[begin], last_pass.GoesBackAt(begin + 1));
      } else {
        for (size_t i = begin; i < end; ++i) act(Act::kFetch, i);
        for (size_t i = begin; i < end; ++i) act(Act::kRun, i);
        for (size_t i = begin; i < end; ++i) act(Act::kPassOn, i);
      }
      begin = end;
    }
    AddPart(0, [&] { gradients_.Finish(); });
  }

 private:
  static constexpr size_t kMaxBatch = 2, kPasses = 3, kActs = 4;  // F, B, W; of Act
  // What a step does, all in turn or together with another step.
  enum class Act : uint8_t { kFetch, kRun, kPassOn, kAll };

  // The pass of a chunk that makes gradients of weights: one of their own, or the backward one.
  Phase MakesGradients(int32_t chunk) const {
    return SplitsBackward(options_, chunk) ? Phase::kWeight : Phase::kBackward;
  }

  LastPasses Prepare(const std::vector<ScheduleStep>& schedule) {
    int32_t most = 0;
    for (const ScheduleStep& step : schedule) most = std::max(most, step.micro_batch);
    for (std::vector<int32_t>& local : local_) local.resize(most + 1, -1);
    went_back_.resize(chunks_.size());
    for (std::vector<int32_t>& went_back : went_back_) went_back.resize(most + 1, -1);
    return {schedule, chunks_.size()};
  }

  // What `write` appends is a part that runs now.
  template <typename WriteIt>
  int32_t AddPart(int32_t micro_batch, const WriteIt& write) {
    const auto begin = static_cast<int32_t>(writer_.program().instances.size());
    write();
    const auto end = static_cast<int32_t>(writer_.program().instances.size());
    const auto part = static_cast<int32_t>(outline_->parts.size());
    outline_->parts.push_back({begin, end, micro_batch});
    outline_->turns.push_back({part, 0});
    return part;
  }

  // Passes of chunks that are alike are so but in the first and the last micro-batch, where
  // gradients are made, and where they fill buckets that passes before have begun.
  void AddTurn(Act act, const ScheduleStep& step, bool last) {
    const bool backward = step.phase == Phase::kBackward;
    const bool fills = step.phase == MakesGradients(step.chunk) && gradients_.HasBuckets() &&
                       (last || syncs_whole_each_);
    const bool makes = backward && !has_gradients_[step.chunk];
    size_t alike = kPasses * alike_[step.chunk] + static_cast<size_t>(step.phase);
    for (const bool bit : {last, BeginsCopy(step), makes}) alike = 2 * alike + (bit ? 1 : 0);
    int32_t& known = parts_[alike * kActs + static_cast<size_t>(act)];
    const bool runs = act == Act::kRun || act == Act::kAll;
    if (known >= 0 && !fills) {
      outline_->turns.push_back({known, step.micro_batch - outline_->parts[known].micro_batch});
      if (backward && runs) has_gradients_[step.chunk] = true;
      return;
    }
    known = AddPart(step.micro_batch, [&] {
      int32_t feeder = -1;
      if (act == Act::kFetch || act == Act::kAll) feeder = Fetch(step);
      if (runs) feeder = Run(step, feeder, last);
      if (act == Act::kPassOn || act == Act::kAll) PassOn(step, feeder);
    });
  }

  // Of the two steps of a pair, which begin at `pair`.
  void AddPairTurn(const ScheduleStep* pair, bool last) {
    const ScheduleStep &f = pair[0], &b = pair[1];
    const bool makes = !has_gradients_[b.chunk];
    const bool fills = MakesGradients(b.chunk) == Phase::kBackward && gradients_.HasBuckets() &&
                       (last || syncs_whole_each_);
    const PairKey key(alike_[f.chunk], alike_[b.chunk], f.micro_batch - b.micro_batch, last, makes,
                      BeginsCopy(f), BeginsCopy(b));
    const auto [known, is_new] = pair_parts_.try_emplace(key, -1);
    if (!is_new && !fills) {
      outline_->turns.push_back(
          {known->second, b.micro_batch - outline_->parts[known->second].micro_batch});
      return;
    }
    known->second = AddPart(b.micro_batch, [&] {
      int32_t feeders[] = {Fetch(f), Fetch(b)};
      RunPair(pair, last, feeders);
      PassOn(f, feeders[0]);
      PassOn(b, feeders[1]);
    });
  }

  void Reserve(const std::vector<ScheduleStep>& schedule) {
    size_t runs = 1;
    const auto chunks = static_cast<int32_t>(chunks_.size());
    for (int32_t c = 0; c < chunks; ++c) runs = std::max(runs, contents_.Runs(c).size());
    writer_.program().instances.reserve(schedule.size() * (runs + 2));  // receive, runs, send
    writer_.program().joins.reserve(schedule.size() * (runs + 3));
  }

  // The first micro-batch of its copy of the model.
  bool BeginsCopy(const ScheduleStep& step) const {
    return step.micro_batch < in_.placement->copies();
  }

  // Steps between two batches of transfers. Megatron's interleaved schedule without overlap has two
  // for a forward-backward pair (schedules.py, send_forward_backward_recv_forward_backward).
  size_t BatchSize(const std::vector<ScheduleStep>& schedule, size_t i) const {
    const bool pair =
        options_.vpp > 1 && i + 1 < schedule.size() && schedule[i].phase == Phase::kForward &&
        schedule[i + 1].phase == Phase::kBackward && TransfersBlock(options_, *in_.profile);
    // Of two micro-batches at one visit results are summed behind the second (VocabularySchedule).
    const bool visit = options_.vocab_parallel == VocabParallel::kVocab1 &&
                       i + 1 < schedule.size() && schedule[i].phase == Phase::kBackward &&
                       schedule[i].chunk == VocabularyChunks(options_).output() &&
                       schedule[i + 1].chunk == schedule[i].chunk;
    return pair || visit || schedule[i].pairs ? kMaxBatch : 1;
  }

  // The instance that brings a step its input: a receive, or the pass before it
  // where that ran on this stage; -1: none.
  int32_t Fetch(const ScheduleStep& step) {
    if (step.phase == Phase::kWeight) return -1;
    if (spread_ && spread_->Brings(step)) return spread_->Fetch(step);
    ChunkCrossings& chunk = chunks_[step.chunk];
    const int phase = static_cast<int>(step.phase);
    if (chunk.receive[phase].crosses) return transfers_.Receive(&chunk.receive[phase], step);
    if (chunk.receive[phase].silent) return -1;
    const bool begins = in_.placement->Before(chunk.v, step.phase) < 0;
    return begins ? -1 : local_[phase][step.micro_batch];
  }

  // Hands a step's result, ready with instance `feeder`, on.
  void PassOn(const ScheduleStep& step, int32_t feeder) {
    if (step.phase == Phase::kWeight) return;
    if (spread_) spread_->PassOn(step, feeder);
    Crossing& send = chunks_[step.chunk].send[static_cast<int>(step.phase)];
    if (send.crosses) {
      transfers_.Send(&send, step, feeder);
    } else if (!send.silent) {
      turns_.Leave(&local_[static_cast<int>(step.phase)], step.micro_batch, feeder);
    }
  }

  // A pass of blocks that gather their parameters, and reduce their gradients, themselves.
  int32_t RunSharded(const ScheduleStep& step, int32_t feeder, bool last) {
    turns_.NoteOther();
    const ShardedPasses::Pass& pass = sharded_->Of(step, BeginsCopy(step), last);
    const bool weights = step.phase == Phase::kWeight;
    std::vector<Join> joins =
        sharded_->Begin(step, pass, weights ? went_back_[step.chunk][step.micro_batch] : -1);
    int32_t reduced = -1;
    bool begins = true;
    const Phase makes = MakesGradients(step.chunk);
    const bool fills =
        step.phase == makes && gradients_.HasBuckets() && (last || syncs_whole_each_);
    const Phase way = step.phase == Phase::kForward ? Phase::kForward : Phase::kBackward;
    if (step.phase == Phase::kBackward) offload_.BeginBackward(step);
    for (const ShardedPasses::Piece& piece : pass.pieces) {
      for (const OffloadFlow::Part& part :
           offload_.Cut(step.chunk, way, *piece.run, piece.layer_begin, piece.count)) {
        const int32_t block = weights ? writer_.BlockOf(piece.number)
                                      : offload_.BlockOf(part, step.phase, piece.number);
        if (!begins) joins = offload_.JoinsOf();
        for (const LayerSlices::Slice& slice : slices_.Of(part, way, fills)) {
          joins.insert(joins.end(), slice.joins.begin(), slice.joins.end());
          feeder = writer_.AppendCompute(
              block, step.phase, step, contents_.LayerAt(*part.run, slice.layer_begin), slice.count,
              feeder, joins, begins ? pass.own_ports : ProgramWriter::kAllPorts);
          if (fills) gradients_.NoteBackward(*part.run, slice.count);
          joins.clear();
          begins = false;
        }
        if (!weights) offload_.Note(part, piece.number, feeder);
      }
      if (piece.reduces) reduced = feeder;
    }
    if (step.phase == Phase::kBackward && makes == Phase::kWeight) {
      turns_.Leave(&went_back_[step.chunk], step.micro_batch, writer_.last_compute());
    }
    if (step.phase == Phase::kForward) offload_.EndForward(step, feeder);
    EndReductions(reduced, last, fills);
    return feeder;
  }

  // Of a pass whose last block that reduces gradients is `reduced` (-1: none does).
  void EndReductions(int32_t reduced, bool last, bool fills) {
    if (reduced >= 0) {
      gradients_.NoteReductions(reduced);
      writer_.HoldCompute(reduced);
    }
    if (fills) gradients_.EndChunk(last);
  }

  // `last`: the chunk makes no gradients of weights after it.
  int32_t Run(const ScheduleStep& step, int32_t feeder, bool last) {
    if (spread_) spread_->BeforeRun(step);
    if (step.phase == Phase::kForward) return Forward(step, feeder);
    if (step.phase == Phase::kBackward) return Backward(step, feeder, last);
    if (sharded_) {
      RunSharded(step, /*feeder=*/-1, last);
    } else {
      MakeWeightGradients(step, last);
    }
    return -1;
  }

  int32_t Forward(const ScheduleStep& step, int32_t feeder) {
    if (sharded_ && sharded_->Runs(step.phase)) return RunSharded(step, feeder, /*last=*/false);
    if (plain_.Knows(step)) return plain_.Run(step, feeder);
    turns_.NoteOther();
    bool is_plain = !offload_.active();
    for (const OffloadFlow::Part& part : offload_.Parts(step.chunk, Phase::kForward)) {
      const int32_t plain = blocks_.Of(*part.run, Phase::kForward);
      const int32_t block = offload_.BlockOf(part, Phase::kForward, plain);
      std::vector<Join> joins = offload_.JoinsOf();
      for (const LayerSlices::Slice& slice : slices_.Of(part, Phase::kForward, false)) {
        joins.insert(joins.end(), slice.joins.begin(), slice.joins.end());
        const int64_t layer = contents_.LayerAt(*part.run, slice.layer_begin);
        feeder =
            writer_.AppendCompute(block, Phase::kForward, step, layer, slice.count, feeder, joins);
        is_plain = is_plain && joins.empty();
        plain_.Note(step, block, layer, slice.count);
        joins.clear();
      }
      offload_.Note(part, plain, feeder);
    }
    if (!is_plain) plain_.Forget(step);
    offload_.EndForward(step, feeder);
    return feeder;
  }

  int32_t Backward(const ScheduleStep& step, int32_t feeder, bool last) {
    const bool first = !has_gradients_[step.chunk];
    has_gradients_[step.chunk] = true;
    if (sharded_) return RunSharded(step, feeder, last);
    const bool splits = MakesGradients(step.chunk) == Phase::kWeight;
    const bool reduces = !splits && (last || syncs_whole_each_);
    const bool is_plain = !offload_.active() && !reduces && !first;
    feeder = is_plain && plain_.Knows(step) ? plain_.Run(step, feeder)
                                            : RunBack(step, feeder, first, reduces, is_plain);
    if (splits) turns_.Leave(&went_back_[step.chunk], step.micro_batch, writer_.last_compute());
    if (reduces) gradients_.EndChunk(last);
    return feeder;
  }

  int32_t RunBack(const ScheduleStep& step, int32_t feeder, bool first, bool reduces,
                  bool is_plain) {
    turns_.NoteOther();
    offload_.BeginBackward(step);
    for (const OffloadFlow::Part& part : offload_.Parts(step.chunk, Phase::kBackward)) {
      if (!contents_.HasBackward(*part.run)) continue;
      const int32_t plain = blocks_.Backward(*part.run, first);
      const int32_t block = offload_.BlockOf(part, Phase::kBackward, plain);
      std::vector<Join> joins = offload_.JoinsOf();
      for (const LayerSlices::Slice& slice : slices_.Of(part, Phase::kBackward, reduces)) {
        const int64_t layer = contents_.LayerAt(*part.run, slice.layer_begin);
        feeder =
            writer_.AppendCompute(block, Phase::kBackward, step, layer, slice.count, feeder, joins);
        if (is_plain) plain_.Note(step, block, layer, slice.count);
        joins.clear();
        if (reduces) gradients_.NoteBackward(*part.run, slice.count);
      }
      offload_.Note(part, plain, feeder);
    }
    return feeder;
  }

  std::vector<PassLayers> LayersOf(const ScheduleStep& step, bool last, bool reduces) {
    if (sharded_ && sharded_->Runs(step.phase)) return ShardedLayersOf(step, last, reduces);
    const bool back = step.phase == Phase::kBackward;
    const bool first = back && !has_gradients_[step.chunk];
    std::vector<PassLayers> all;
    for (const OffloadFlow::Part& part : offload_.Parts(step.chunk, step.phase)) {
      if (back && !contents_.HasBackward(*part.run)) continue;
      const int32_t number =
          back ? blocks_.Backward(*part.run, first) : blocks_.Of(*part.run, Phase::kForward);
      for (const LayerSlices::Slice& slice : slices_.Of(part, step.phase, reduces)) {
        all.push_back({part.run, number, slice.layer_begin, slice.count, slice.joins});
      }
    }
    if (back) has_gradients_[step.chunk] = true;
    return all;
  }

  std::vector<PassLayers> ShardedLayersOf(const ScheduleStep& step, bool last, bool fills) {
    const ShardedPasses::Pass& pass = sharded_->Of(step, BeginsCopy(step), last);
    std::vector<Join> joins = sharded_->Begin(step, pass, /*went_back=*/-1);
    int ports = pass.own_ports;
    std::vector<PassLayers> all;
    for (const ShardedPasses::Piece& piece : pass.pieces) {
      const OffloadFlow::Part part{piece.run, piece.layer_begin, piece.count};
      for (const LayerSlices::Slice& slice : slices_.Of(part, step.phase, fills)) {
        joins.insert(joins.end(), slice.joins.begin(), slice.joins.end());
        all.push_back({piece.run, piece.number, slice.layer_begin, slice.count, std::move(joins),
                       ports, piece.reduces});
        joins.clear();
        ports = ProgramWriter::kAllPorts;
      }
    }
    if (step.phase == Phase::kBackward) has_gradients_[step.chunk] = true;
    return all;
  }

  // `last`: the chunk makes no gradients of weights after it.
  void RunPair(const ScheduleStep* pair, bool last, int32_t* feeders) {
    PLANCAST_CHECK(!offload_.active()) << "plan_conflicts.h refuses them";
    turns_.NoteOther();
    const ScheduleStep& back = pair[1];
    const bool splits = MakesGradients(back.chunk) == Phase::kWeight;
    const bool buckets = !sharded_ || gradients_.HasBuckets();
    const bool reduces = !splits && buckets && (last || syncs_whole_each_);
    std::vector<PassLayers> forward = LayersOf(pair[0], /*last=*/false, /*reduces=*/false);
    PairRun run(*in_.segments, contents_, &writer_, reduces ? &gradients_ : nullptr);
    run.Run({&pair[0], std::move(forward), &feeders[0]},
            {&pair[1], LayersOf(pair[1], last, reduces), &feeders[1]});
    if (splits) turns_.Leave(&went_back_[back.chunk], back.micro_batch, run.went_back());
    EndReductions(run.reduced(), last, reduces);
  }

  // What the backward pass left; where modules left nothing, buckets take what that made.
  void MakeWeightGradients(const ScheduleStep& step, bool last) {
    const bool reduces = last || syncs_whole_each_;
    const Join behind{went_back_[step.chunk][step.micro_batch], -1, -1};
    int waits = behind.from >= 0 ? 1 : 0;
    const bool is_plain = !offload_.active() && !reduces;
    if (is_plain && plain_.Knows(step)) {
      return plain_.RunApart(step, absl::MakeConstSpan(&behind, waits));
    }
    turns_.NoteOther();
    for (const OffloadFlow::Part& part : offload_.Parts(step.chunk, Phase::kBackward)) {
      if (!contents_.HasBackward(*part.run)) continue;
      const bool left = contents_.BodyOf(*part.run).blocks.weights.block.size() > 0;
      for (const LayerSlices::Slice& slice : slices_.Of(part, Phase::kBackward, reduces)) {
        if (left) {
          const int32_t block = writer_.BlockOf(blocks_.Of(*part.run, Phase::kWeight));
          const int64_t layer = contents_.LayerAt(*part.run, slice.layer_begin);
          writer_.AppendCompute(block, Phase::kWeight, step, layer, slice.count,
                                /*feeder=*/-1, absl::MakeConstSpan(&behind, waits));
          waits = 0;
          if (is_plain) plain_.Note(step, block, layer, slice.count);
        }
        if (reduces) gradients_.NoteBackward(*part.run, slice.count);
      }
    }
    if (reduces) gradients_.EndChunk(last);
  }

  const ProgramInputs& in_;
  const PlanOptions& options_;
  const int64_t stage_;
  StageContents contents_;
  ProgramWriter writer_;
  StageTransfers transfers_;
  std::unique_ptr<ShardedFlow> sharded_;  // null: bodies know nothing of data parallelism
  const bool syncs_whole_each_;           // gradients in buckets, in each micro-batch
  GradientFlow gradients_;
  LayerSlices slices_;
  OffloadFlow offload_;
  std::unique_ptr<ParkingFlow> parking_;  // null: no stage keeps another's activations
  std::unique_ptr<SpreadFlow> spread_;    // null: only the ends have the vocabulary
  std::vector<ChunkCrossings> chunks_;
  PlainPasses plain_;  // that neither wait for gathers, nor are the first back or reduce gradients
  RepeatedTurns turns_;
  StageBlocks blocks_;
  std::vector<bool> has_gradients_;  // per chunk: it has run backward
  // Newest instance per phase and micro-batch where the next virtual stage is local.
  std::vector<int32_t> local_[2];
  // By chunk and micro-batch, the last instance of a backward pass, which W waits for; -1.
  std::vector<std::vector<int32_t>> went_back_;
  ProgramOutline* outline_ = nullptr;
  std::vector<size_t> alike_;   // AlikeChunks
  std::vector<int32_t> parts_;  // of the outline, by what makes turns alike; -1: none yet
  using PairKey = std::tuple<size_t, size_t, int32_t, bool, bool, bool, bool>;
  std::map<PairKey, int32_t> pair_parts_;  // likewise
};

}  // namespace

void BuildStageProgram(const ProgramInputs& inputs, int64_t stage,
                       const std::vector<ScheduleStep>& schedule, BlockCatalogue* catalogue,
                       GraphAssembly* assembly) {
  Program program = assembly->TakeProgram();
  StageWriter(inputs, stage, catalogue, assembly, &program).Write(schedule);
  assembly->AddProgram(std::move(program));
}

void DraftStageProgram(const ProgramInputs& inputs, int64_t stage,
                       const std::vector<ScheduleStep>& schedule, BlockCatalogue* catalogue,
                       Program* program) {
  StageWriter(inputs, stage, catalogue, /*assembly=*/nullptr, program).Write(schedule);
}

void OutlineStageProgram(const ProgramInputs& inputs, int64_t stage, const ShortOrder& order,
                         BlockCatalogue* catalogue, ProgramOutline* outline) {
  outline->Clear();
  StageWriter(inputs, stage, catalogue, /*assembly=*/nullptr, &outline->written, /*joins=*/false)
      .Outline(order, outline);
}

}  // namespace plancast
