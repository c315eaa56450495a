// A pipeline that repeats: when everything stands as it stood a while ago, only so
// many steps or turns further, the same will happen again, and is skipped.

#include <algorithm>
#include <functional>
#include <limits>

#include "executor/chunks/simulator.h"

namespace plancast {

// The block that does most: its steps and turns say when to look.
void ChunkSimulator::ChooseClock() {
  int64_t most = 0;
  clock_ = -1;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].phase == Phase::kDone) continue;
    const ChunkGraph::Block& block = graph_.blocks[b];
    const int64_t steps =
        graph_.scripts[block.script].steps * graph_.programs[block.program].turns -
        blocks_[b].done_steps;
    if (steps <= most) continue;
    most = steps;
    clock_ = static_cast<int32_t>(b);
  }
  if (clock_ < 0) return;
  clock_turn_ = blocks_[clock_].turn;
  clock_rep_ = blocks_[clock_].rep;
}

void ChunkSimulator::Describe(Moment& moment) {
  moment.state.clear();
  moment.turn.clear();
  moment.rep.clear();
  moment.time = now_;
  moment.valid = true;
  std::vector<int64_t>& state = moment.state;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const BlockState& block = blocks_[b];
    moment.turn.push_back(block.turn);
    moment.rep.push_back(block.rep);
    state.push_back(int64_t{block.run} << 4 | static_cast<int64_t>(block.phase));
    state.push_back(block.piece);
    if (block.activity < 0) continue;
    const Fluid::Progress progress = fluid_.ProgressOf(block.activity);
    const int128 left = progress.LeftAt(now_);
    state.push_back(static_cast<int64_t>(left >> 62));
    state.push_back(static_cast<int64_t>(left & ((int128{1} << 62) - 1)));
    state.push_back(progress.rate_q16);
    state.push_back(progress.end - now_);
  }
  for (const Queue& queue : queues_) {
    state.push_back(queue.sent - queue.consumed);
    state.push_back(queue.arrived - queue.consumed);
  }
  const size_t before = state.size();
  std::vector<Event> events = events_;
  std::sort(events.begin(), events.end());
  for (const Event& event : events) {
    state.push_back(event.time - now_);
    state.push_back(int64_t{event.id} << 2 | static_cast<int64_t>(event.kind));
  }
  state.push_back(static_cast<int64_t>(before));
}

// Steps inside runs, or whole turns; of one program all blocks the same.
bool ChunkSimulator::JumpFrom(const Moment& before, const Moment& now) {
  if (before.state != now.state) return false;
  int64_t periods = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> turns_of_program(graph_.programs.size(), -1);
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].phase == Phase::kDone) continue;
    const int64_t turns = now.turn[b] - before.turn[b], reps = now.rep[b] - before.rep[b];
    const int32_t program = graph_.blocks[b].program;
    if (turns_of_program[program] < 0) turns_of_program[program] = turns;
    if (turns != turns_of_program[program] || reps < 0 || (turns > 0 && reps > 0)) return false;
    if (turns > 0) {  // the last turn has other chunks
      const int64_t left = graph_.programs[program].turns - 2 - now.turn[b];
      periods = std::min(periods, left / turns);
    } else if (reps > 0) {
      const int64_t left = RunOf(static_cast<int32_t>(b)).repeat - 1 - now.rep[b];
      periods = std::min(periods, left / reps);
    }
  }
  if (periods <= 0 || periods == std::numeric_limits<int64_t>::max()) return false;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    BlockState& block = blocks_[b];
    if (block.phase == Phase::kDone) continue;
    const int64_t turns = periods * (now.turn[b] - before.turn[b]);
    const int64_t reps = periods * (now.rep[b] - before.rep[b]);
    block.turn += turns;
    block.rep += reps;
    block.done_steps += turns * graph_.scripts[graph_.blocks[b].script].steps + reps;
  }
  const int64_t time = periods * (now.time - before.time);
  now_ += time;
  fluid_.Shift(time);
  for (Event& event : events_) event.time += time;  // the order stays
  ++result_.jumps;
  return true;
}

// Compares with a moment ever longer ago, so that any period is found in time.
void ChunkSimulator::Check(Moment& before, int64_t& checks) {
  ++checks;
  // Looking takes no longer than what happened since.
  if (result_.messages - messages_when_seen_ < static_cast<int64_t>(now_is_.state.size()) / 16) {
    return;
  }
  messages_when_seen_ = result_.messages;
  Describe(now_is_);
  if (before.valid && JumpFrom(before, now_is_)) {
    before.valid = false;
    checks = 0;
    return;
  }
  if (before.valid && checks < 2 * before.taken_at) return;
  std::swap(before, now_is_);
  before.taken_at = checks;
}

void ChunkSimulator::MaybeJump() {
  if (blocks_[clock_].phase == Phase::kDone) ChooseClock();
  if (clock_ < 0) return;
  const BlockState& clock = blocks_[clock_];
  if (clock.turn != clock_turn_) {
    of_step_.valid = false;
    step_checks_ = 0;
    Check(of_turn_, turn_checks_);
  } else if (clock.rep > clock_rep_ && RunOf(clock_).repeat >= 16) {
    Check(of_step_, step_checks_);
  }
  clock_turn_ = clock.turn;
  clock_rep_ = clock.rep;
}

}  // namespace plancast
