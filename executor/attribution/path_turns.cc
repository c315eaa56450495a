#include "executor/attribution/path_turns.h"

#include <algorithm>

namespace plancast {

PathTurns::Step PathTurns::Look(int32_t entity, const TaskRef& task) {
  const SimTrace::Jump& jump = trace_.jumps[jump_];
  const SimTrace::Repeat& own = jump.repeats[entity];
  const bool before = task.instance < own.all;
  if (before || task.instance >= own.first + own.length * jump.periods) {
    // Nor does a turn lead out of the periods left out.
    turn_.clear();
    longest_ = 1;
    jump_ -= before ? 1 : 0;
    return Step::kNothing;
  }
  turn_.push_back({entity, task});
  const Place& first = turn_.front();
  const int32_t way = first.task.instance - task.instance;
  if (way > 0 && entity == first.entity && task.layer == first.task.layer &&
      task.task == first.task.task && way % own.length == 0) {
    times_ = TimesAhead(way / own.length);
    instances_ = way;
    if (times_ != kNotYet) --jump_;
    turn_.clear();
    longest_ = 1;
    return times_ > 0 ? Step::kEnds : Step::kNothing;
  }
  // Where it does not come to the first again, it may to a later one (Brent 1980).
  if (turn_.size() > longest_) {
    longest_ *= 2;
    turn_.assign(1, {entity, task});
  }
  return turn_.size() == 1 ? Step::kBegins : Step::kNothing;
}

int32_t PathTurns::TimesAhead(int32_t periods) const {
  int32_t room = std::numeric_limits<int32_t>::max();
  for (const Place& place : turn_) {
    const int32_t program = in_.ProgramOf(place.entity), at = place.task.instance;
    if (!Repeats(program, at, &room)) return kNotYet;
    const Instance& instance = in_.index.InstanceOf(program, at);
    if (instance.rendezvous >= 0) {
      for (const Rendezvous::Party& party : in_.graph.rendezvous[instance.rendezvous].parties) {
        if (!Repeats(party.program, party.instance, &room)) return kNotYet;
      }
    }
    // Others meet in the order of their streams, as do those of one program: with this instance.
    const Block& block = in_.graph.blocks[instance.block];
    for (int32_t task = 0; task < block.size(); ++task) {
      if (block.kind[task] != TaskKind::kComm || task == block.rendezvous_task) continue;
      const int32_t group = in_.GroupOf(place.entity, {at, 0, task});
      for (const int32_t member : in_.sim.MembersOf(in_.sim.groups[group])) {
        if (in_.ProgramOf(member) != program) return 0;
      }
    }
  }
  return room / periods;
}

bool PathTurns::Repeats(int32_t program, int32_t at, int32_t* periods) const {
  const SimTrace::Jump& jump = trace_.jumps[jump_];
  const auto entities = static_cast<int32_t>(in_.sim.entities.size());
  for (int32_t e = 0; e < entities; ++e) {
    if (in_.ProgramOf(e) != program) continue;
    const SimTrace::Repeat& own = jump.repeats[e];
    if (at < own.all || at >= own.first + own.length * jump.periods) return false;
    const Instance& instance = in_.index.InstanceOf(program, at);
    const Instance& before = in_.index.InstanceOf(program, at - own.length);
    const Join* const joins = in_.index.program(program).joins;
    // Its streams were a period ago where they come from.
    int32_t earliest = at - own.length;
    for (int32_t j = 0; j < instance.join_end - instance.join_begin; ++j) {
      const int32_t from = joins[instance.join_begin + j].from;
      // What both wait for was over long ago.
      if (from != joins[before.join_begin + j].from) earliest = std::min(earliest, from);
    }
    const int32_t since = own.all - own.length;
    *periods = std::min(*periods, std::max(earliest - since, 0) / own.length);
  }
  return true;
}

}  // namespace plancast
