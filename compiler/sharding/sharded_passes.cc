#include "compiler/sharding/sharded_passes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/schedule/vocabulary_schedule.h"
#include "compiler/sharding/gradient_blocks.h"
#include "compiler/sharding/stage_state.h"

namespace plancast {
namespace {

std::string KeyOf(const ShardUnit* unit) {
  if (unit == nullptr) return "-";
  std::string key =
      absl::StrCat(unit->name, ":", unit->elements(), ":", unit->padded(), ":", unit->parts.size());
  const int64_t weights = unit->host_weights(), gradients = unit->host_gradients();
  if (weights > 0 || gradients > 0) absl::StrAppend(&key, " host ", weights, ",", gradients);
  for (const ShardUnit::Part& part : unit->parts) {
    if (part.again > 0) absl::StrAppend(&key, " again ", part.again);
    if (!part.homes.over.has_value()) continue;
    absl::StrAppend(&key, ":", part.axes.KeyText(), "=", part.padded, "/", part.count);
  }
  return key;
}

// Bytes of elements are means over a stage, and stages share blocks.
std::string KeyOf(const ShardTypes& types) {
  std::string key;
  for (const double bytes : {types.at_rest, types.wire, types.gathered}) {
    absl::StrAppend(&key, absl::bit_cast<uint64_t>(bytes), ",");
  }
  return key;
}

}  // namespace

ShardedPasses::ShardedPasses(const ProgramInputs& inputs, const StageContents& contents,
                             const ShardedStage& stage, ProgramWriter* writer)
    : in_(inputs), contents_(contents), writer_(*writer), stage_(stage) {
  style_.types = ShardTypesOf(inputs, contents);
  types_ = KeyOf(style_.types);
  style_.cut = in_.profile->data_parallel.shard_cut;
  if (const double launch_s = in_.profile->host.launch_s; launch_s > 0) {
    style_.launches_per_part = in_.profile->data_parallel.list_part_s / launch_s;
    style_.hook_calls = in_.profile->data_parallel.parameter_hook_s / launch_s;
  }
  style_.in_step = in_.options->tp;
  style_.secondary = in_.options->reshard_ranks > 1;
  const bool accumulates = !in_.options->sync_each && in_.options->micro_batches > 1;
  style_.whole_gradient = accumulates ? style_.types.reduced : style_.types.gradient;
}

// One pass, worked out run by run.
class ShardedPasses::Maker {
 public:
  Maker(const ProgramInputs& in, const StageContents& contents, const ShardedStage& stage,
        const ShardStyle& style, const std::string& types, ProgramWriter& writer, int32_t chunk,
        Phase phase, bool first, bool last)
      : in_(in),
        options_(*in.options),
        contents_(contents),
        stage_(stage),
        style_(style),
        types_(types),
        writer_(writer),
        backward_(phase != Phase::kForward),
        weights_(phase == Phase::kWeight),
        first_(first),
        last_(last),
        reduces_((weights_ || !SplitsBackward(options_, chunk)) && (options_.sync_each || last)) {
    const std::vector<StageRun>& runs = contents.Runs(chunk);
    for (size_t i = 0; i < runs.size(); ++i) {
      const size_t r = backward_ ? runs.size() - 1 - i : i;
      if (backward_ && !contents.HasBackward(runs[r])) continue;
      turns_.push_back({&runs[r], stage.UnitOf(chunk, r)});
    }
    for (size_t t = 0; t < turns_.size(); ++t) {
      Settle(t);
      if (HasTasks(*turns_[t].run) || (weights_ && turns_[t].reduces)) last_turn_ = t;
    }
    ports_ = static_cast<int>(std::min(options_.prefetch, needs_));
  }

  Pass Make() {
    Pass pass;
    const bool at_once = !turns_.empty() && turns_[0].needs;
    const int64_t ahead = at_once ? ports_ : std::max(ports_ - 1, 0);
    for (int64_t i = 0; i < ahead; ++i) pass.ahead.push_back(Ahead(*Needed(i)));
    if (!turns_.empty()) {
      pass.own_ports = PlainBlock(*turns_[0].run).block.num_in_ports;
    }
    for (size_t t = 0; t < turns_.size(); ++t) {
      const bool nothing = weights_ && !HasTasks(*turns_[t].run) && !turns_[t].reduces;
      if (!nothing) Append(t, &pass);
    }
    return pass;
  }

 private:
  struct Turn {
    const StageRun* run;
    const ShardedStage::Unit* unit;
    bool begins = false, ends = false;  // the first, the last run of its unit
    bool needs = false;                 // its unit is gathered for it
    bool frees = false, reduces = false;
    int64_t base = 0;  // units gathered for runs before
  };

  // The last turn of a unit, with tasks if there is one: what only hands on does nothing.
  size_t LastOf(const ShardedStage::Unit* unit) const {
    size_t last = 0;
    bool works = false;
    for (size_t t = 0; t < turns_.size(); ++t) {
      if (turns_[t].unit != unit || (works && !HasTasks(*turns_[t].run))) continue;
      last = t;
      works = HasTasks(*turns_[t].run);
    }
    return last;
  }

  const BlockTemplate& PlainBlock(const StageRun& run) const {
    const BodyBlocks& blocks = contents_.BodyOf(run).blocks;
    return weights_ ? blocks.weights : backward_ ? blocks.backward : blocks.forward;
  }
  bool HasTasks(const StageRun& run) const { return PlainBlock(run).block.size() > 0; }

  void Settle(size_t t) {
    Turn& turn = turns_[t];
    const auto same = [&](const Turn& other) { return other.unit == turn.unit; };
    turn.begins = std::none_of(turns_.begin(), turns_.begin() + static_cast<int64_t>(t), same);
    turn.ends = t == LastOf(turn.unit);
    const ShardedStage::Unit& unit = *turn.unit;
    const bool gathered = unit.weights.gathers();
    // Pipelines keep what stays through all micro-batches, and so do those who keep
    // whole gradients, where the profile says so.
    const bool through =
        unit.stays && (options_.pp > 1 || (!options_.sync_each && !Reshards(options_) &&
                                           in_.profile->data_parallel.stays()));
    if (backward_) {
      // What is put off reads no weights.
      const bool works = gathered && unit.backward && !weights_;
      turn.needs = works && !unit.stays;
      turn.frees = works && turn.ends && (!through || last_);
      turn.reduces = turn.ends && reduces_ && unit.trained.elements() > 0;
    } else {
      turn.needs = gathered && turn.begins && (!through || first_);
      turn.frees = gathered && turn.ends && !unit.stays;
    }
    turn.base = needs_;
    if (turn.needs) needs_ += turn.run->count;
  }

  // The unit that is gathered as number `index` of the pass; null: none.
  const ShardUnit* Needed(int64_t index) const {
    for (const Turn& turn : turns_) {
      if (turn.needs && index >= turn.base && index < turn.base + turn.run->count) {
        return &turn.unit->weights;
      }
    }
    return nullptr;
  }

  int32_t Ahead(const ShardUnit& unit) {
    return writer_.BlockOf(writer_.catalogue().NumberOfText(
        absl::StrCat("ahead|", backward_, "|", KeyOf(&unit), "|", types_),
        [&] { return GatherAhead(unit, backward_, style_); }));
  }

  const ShardUnit* ReducedBefore(size_t t, int64_t repeat) const {
    if (repeat > 0 && turns_[t].reduces) return &turns_[t].unit->trained;
    while (t > 0) {
      if (turns_[--t].reduces) return &turns_[t].unit->trained;
    }
    return nullptr;
  }

  // What repeat `repeat` of turn `t` does, in the order of the pass.
  ShardedStep StepOf(size_t t, int64_t repeat) const {
    const Turn& turn = turns_[t];
    ShardedStep step;
    step.unit = &turn.unit->trained;
    step.backward = backward_;
    step.ports = ports_;
    step.tells_begin = stage_.gathers() && !weights_;
    step.whole = contents_.WholeGradients(*turn.run);
    step.keeps_part = style_.secondary && !turn.unit->stays && turn.unit->backward;
    if (turn.needs) {
      step.own = &turn.unit->weights;
      step.gather = Needed(turn.base + repeat + ports_);
    } else if (t == 0 && repeat == 0 && ports_ > 0) {
      step.gather = Needed(ports_ - 1);
    }
    if (turn.frees) step.frees = &turn.unit->weights;
    if (!backward_) return step;
    step.accumulates = !options_.sync_each && !first_;
    if (!reduces_) return step;
    step.reduced_before = ReducedBefore(t, repeat);
    if (turn.reduces) {
      step.reduce = &turn.unit->trained;
      step.reduced_gradients = turn.unit->gradients;
      const bool shards_are_new = options_.sync_each ? first_ : last_;
      const ShardUnit& reduced = turn.unit->trained;
      step.makes_shards = shards_are_new && !in_.profile->update.zero_grad &&
                          reduced.host_gradients() < reduced.shard();
    }
    step.ends_reductions = t == last_turn_ && repeat + 1 == turn.run->count;
    return step;
  }

  void Append(size_t t, Pass* pass) {
    const StageRun& run = *turns_[t].run;
    // Repeats differ at the beginning of a run and towards its end.
    std::vector<int64_t> ends;
    if (run.count > 1) ends.push_back(1);
    for (int64_t repeat = std::max<int64_t>(2, run.count - std::max(ports_, 1)); repeat < run.count;
         ++repeat) {
      ends.push_back(repeat);
    }
    ends.push_back(run.count);
    int64_t begin = 0;
    const size_t pieces = pass->pieces.size();
    for (const int64_t end : ends) {
      const int32_t number = NumberOf(run, StepOf(t, begin));
      const int32_t block = writer_.BlockOf(number);
      const int64_t layers = end - begin;
      const int64_t layer = backward_ ? run.layer_begin + run.count - end : run.layer_begin + begin;
      if (pass->pieces.size() > pieces && pass->pieces.back().block == block) {
        Piece& piece = pass->pieces.back();
        piece.layer_begin = std::min(piece.layer_begin, layer);
        piece.count += layers;
      } else {
        pass->pieces.push_back({block, layer, layers, turns_[t].reduces, &run, number});
      }
      begin = end;
    }
  }

  // The body's own block; backward, with what happens to gradients that are not sharded.
  const BlockTemplate& OwnBlock(const StageRun& run) {
    const BlockTemplate& own = PlainBlock(run);
    if (!backward_) return own;
    const std::vector<bool>* const whole = contents_.WholeGradients(run);
    if (whole == nullptr || !in_.profile->update.fresh_gradients) return own;
    BlockCatalogue& catalogue = writer_.catalogue();
    const int32_t plain = catalogue.Number({BlockKey::kBackward, run.bound_body},
                                           [&]() -> const BlockTemplate& { return own; });
    return catalogue[WithGradients(plain,
                                   {first_, WholeParameters(contents_, run, &stage_),
                                    in_.profile->types.grad_dtype, StorageType(in_.dtype), whole},
                                   &catalogue)];
  }

  int32_t NumberOf(const StageRun& run, const ShardedStep& s) {
    std::string key = absl::StrCat(
        "sharded|", run.bound_body, "|", weights_ ? "W" : "", backward_, s.keeps_part,
        s.ends_reductions, s.accumulates, s.makes_shards, "|", s.ports, "|", KeyOf(s.gather), "|",
        KeyOf(s.own), "|", KeyOf(s.frees), "|", KeyOf(s.reduce), "|", KeyOf(s.reduced_before), "|",
        absl::StrJoin(s.reduced_gradients, ","), "|", types_);
    if (s.whole != nullptr) absl::StrAppend(&key, "|", run.segment, "|", first_);
    const BlockTemplate& own = OwnBlock(run);  // before the catalogue looks for this one
    return writer_.catalogue().NumberOfText(key, [&] {
      if (!weights_ || own.block.size() > 0) return ShardBlock(own, s, style_);
      // All was made in the backward pass.
      BlockTemplate nothing =
          BlockBuilder(contents_.BodyOf(run).blocks.backward.block.name).Build();
      nothing.block.layers = contents_.BodyOf(run).blocks.backward.block.layers;
      nothing.block.name.back() = 'W';
      return ShardBlock(nothing, s, style_);
    });
  }

  const ProgramInputs& in_;
  const PlanOptions& options_;
  const StageContents& contents_;
  const ShardedStage& stage_;
  const ShardStyle& style_;
  const std::string& types_;
  ProgramWriter& writer_;
  const bool backward_, weights_;  // a pass of that phase; those of weights go back, too
  const bool first_, last_, reduces_;
  std::vector<Turn> turns_;
  int64_t needs_ = 0;
  size_t last_turn_ = 0;  // with tasks: behind it modules only hand on
  int ports_ = 0;
};

const ShardedPasses::Pass& ShardedPasses::Of(int32_t chunk, Phase phase, bool first, bool last) {
  const auto [it, inserted] = passes_.try_emplace({chunk, phase, first, last});
  if (inserted) {
    it->second =
        Maker(in_, contents_, stage_, style_, types_, writer_, chunk, phase, first, last).Make();
  }
  return it->second;
}

}  // namespace plancast
