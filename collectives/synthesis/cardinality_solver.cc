#include "collectives/synthesis/cardinality_solver.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace plancast {
namespace {

constexpr double kDecay = 0.95;
constexpr double kRescale = 1e100;
constexpr int64_t kRestartUnit = 128;
constexpr int64_t kForgetFrom = 4000;  // learned clauses

// 1 1 2 1 1 2 4 1 ... (Luby, Sinclair and Zuckerman 1993), from index 0.
int64_t Luby(int64_t index) {
  int64_t size = 1, power = 0;
  while (size < index + 1) {
    size = 2 * size + 1;
    ++power;
  }
  while (size - 1 != index) {
    size = (size - 1) / 2;
    --power;
    index %= size;
  }
  return int64_t{1} << power;
}

}  // namespace

Literal CardinalitySolver::NewVariable(bool first_guess) {
  const int32_t variable = num_variables();
  value_.push_back(-1);
  guess_.push_back(first_guess ? 1 : 0);
  seen_.push_back(0);
  level_of_.push_back(0);
  reason_.push_back(kGuess);
  position_.push_back(0);
  activity_.push_back(0);
  place_.push_back(-1);
  watches_.resize(watches_.size() + 2);
  member_of_.resize(member_of_.size() + 2);
  HeapInsert(variable);
  return {2 * variable};
}

void CardinalitySolver::AddClause(std::vector<Literal> literals) {
  if (contradiction_) return;
  size_t kept = 0;
  for (const Literal literal : literals) {
    const int8_t value = Value(literal);
    if (value == 1) return;
    if (value < 0) literals[kept++] = literal;
  }
  literals.resize(kept);
  if (literals.empty()) {
    contradiction_ = true;
  } else if (literals.size() == 1) {
    Set(literals[0], kGuess);
  } else {
    clauses_.push_back({std::move(literals)});
    Attach(static_cast<int32_t>(clauses_.size()) - 1);
  }
}

void CardinalitySolver::AddAtMost(std::vector<Literal> literals, int32_t most) {
  if (most < 0) {
    contradiction_ = true;
    return;
  }
  if (static_cast<int32_t>(literals.size()) <= most) return;
  if (most == 0) {
    for (const Literal literal : literals) AddClause({!literal});
    return;
  }
  // Literals already set are counted when the trail is propagated.
  PLANCAST_CHECK(propagated_ == 0);
  const auto index = static_cast<int32_t>(at_mosts_.size());
  for (const Literal literal : literals) member_of_[literal.code].push_back(index);
  at_mosts_.push_back({std::move(literals), most, 0});
}

void CardinalitySolver::Attach(int32_t clause) {
  const std::vector<Literal>& literals = clauses_[clause].literals;
  watches_[literals[0].code].push_back({clause, literals[1]});
  watches_[literals[1].code].push_back({clause, literals[0]});
}

void CardinalitySolver::Set(Literal literal, int32_t reason) {
  const int32_t variable = literal.variable();
  value_[variable] = (literal.code & 1) == 0 ? 1 : 0;
  level_of_[variable] = level();
  reason_[variable] = reason;
  position_[variable] = static_cast<int32_t>(trail_.size());
  trail_.push_back(literal);
}

int32_t CardinalitySolver::PropagateClauses(Literal literal) {
  const Literal gone = !literal;
  std::vector<Watch>& watches = watches_[gone.code];
  work_ += static_cast<int64_t>(watches.size());
  size_t kept = 0;
  for (size_t i = 0; i < watches.size(); ++i) {
    const Watch watch = watches[i];
    if (Value(watch.other) == 1) {
      watches[kept++] = watch;
      continue;
    }
    Clause& clause = clauses_[watch.clause];
    if (clause.deleted) continue;
    std::vector<Literal>& literals = clause.literals;
    if (literals[0] == gone) std::swap(literals[0], literals[1]);
    if (Value(literals[0]) == 1) {
      watches[kept++] = {watch.clause, literals[0]};
      continue;
    }
    bool moved = false;
    for (size_t k = 2; k < literals.size() && !moved; ++k) {
      if (Value(literals[k]) == 0) continue;
      std::swap(literals[1], literals[k]);
      watches_[literals[1].code].push_back({watch.clause, literals[0]});
      moved = true;
    }
    if (moved) continue;
    watches[kept++] = {watch.clause, literals[0]};
    if (Value(literals[0]) == 0) {
      for (++i; i < watches.size(); ++i) watches[kept++] = watches[i];
      watches.resize(kept);
      return watch.clause;
    }
    Set(literals[0], watch.clause);
  }
  watches.resize(kept);
  return kGuess;
}

int32_t CardinalitySolver::PropagateAtMosts(Literal literal) {
  int32_t conflict = kGuess;
  // All counts are raised even after a conflict, as Undo lowers them all.
  for (const int32_t index : member_of_[literal.code]) {
    AtMost& at_most = at_mosts_[index];
    ++at_most.held;
    ++work_;
    if (conflict != kGuess || at_most.held < at_most.most) continue;
    if (at_most.held > at_most.most) {
      conflict = AtMostReason(index);
      continue;
    }
    work_ += static_cast<int64_t>(at_most.literals.size());
    int32_t holding = 0;
    for (const Literal other : at_most.literals) holding += Value(other) == 1 ? 1 : 0;
    if (holding > at_most.most) {
      conflict = AtMostReason(index);
      continue;
    }
    for (const Literal other : at_most.literals) {
      if (Value(other) < 0) Set(!other, AtMostReason(index));
    }
  }
  return conflict;
}

int32_t CardinalitySolver::Propagate() {
  while (propagated_ < trail_.size()) {
    const Literal literal = trail_[propagated_++];
    int32_t conflict = PropagateAtMosts(literal);
    if (conflict == kGuess) conflict = PropagateClauses(literal);
    if (conflict != kGuess) return conflict;
  }
  return kGuess;
}

void CardinalitySolver::Undo(int32_t level) {
  if (this->level() <= level) return;
  const auto start = static_cast<size_t>(level_starts_[level]);
  for (size_t i = trail_.size(); i-- > start;) {
    const Literal literal = trail_[i];
    if (i < propagated_) {
      for (const int32_t index : member_of_[literal.code]) --at_mosts_[index].held;
    }
    const int32_t variable = literal.variable();
    guess_[variable] = value_[variable];
    value_[variable] = -1;
    HeapInsert(variable);
  }
  trail_.resize(start);
  propagated_ = std::min(propagated_, start);
  level_starts_.resize(level);
}

void CardinalitySolver::Explain(int32_t reason, const Literal* implied,
                                std::vector<Literal>& out) const {
  out.clear();
  if (reason >= 0) {
    for (const Literal literal : clauses_[reason].literals) {
      if (implied == nullptr || literal != *implied) out.push_back(!literal);
    }
    return;
  }
  const AtMost& at_most = at_mosts_[-2 - reason];
  const int32_t before =
      implied == nullptr ? static_cast<int32_t>(trail_.size()) : position_[implied->variable()];
  for (const Literal literal : at_most.literals) {
    if (Value(literal) == 1 && position_[literal.variable()] < before) out.push_back(literal);
  }
  // The earliest suffice.
  const size_t enough = static_cast<size_t>(at_most.most) + (implied == nullptr ? 1 : 0);
  if (out.size() > enough) {
    std::sort(out.begin(), out.end(), [&](Literal a, Literal b) {
      return position_[a.variable()] < position_[b.variable()];
    });
    out.resize(enough);
  }
}

int32_t CardinalitySolver::Learn(int32_t conflict, std::vector<Literal>& learned) {
  learned.assign(1, Literal());
  std::vector<Literal> because;
  Explain(conflict, nullptr, because);
  int32_t open = 0;
  size_t at = trail_.size();
  Literal pivot;
  std::vector<int32_t> marked;
  for (;;) {
    for (const Literal literal : because) {
      const int32_t variable = literal.variable();
      if (seen_[variable] != 0 || level_of_[variable] == 0) continue;
      seen_[variable] = 1;
      marked.push_back(variable);
      Bump(variable);
      if (level_of_[variable] == level()) {
        ++open;
      } else {
        learned.push_back(!literal);
      }
    }
    do {
      pivot = trail_[--at];
    } while (seen_[pivot.variable()] == 0);
    if (--open == 0) break;
    const int32_t reason = reason_[pivot.variable()];
    if (reason >= 0 && clauses_[reason].levels > 0) ++clauses_[reason].activity;
    Explain(reason, &pivot, because);
  }
  learned[0] = !pivot;
  // Drop what the rest implies.
  size_t kept = 1;
  for (size_t i = 1; i < learned.size(); ++i) {
    const Literal literal = !learned[i];
    const int32_t reason = reason_[literal.variable()];
    bool needed = reason == kGuess;
    if (!needed) {
      Explain(reason, &literal, because);
      for (const Literal other : because) {
        if (seen_[other.variable()] == 0 && level_of_[other.variable()] > 0) needed = true;
      }
    }
    if (needed) learned[kept++] = learned[i];
  }
  learned.resize(kept);
  for (const int32_t variable : marked) seen_[variable] = 0;
  if (kept == 1) return 0;
  size_t highest = 1;
  for (size_t i = 2; i < kept; ++i) {
    if (level_of_[learned[i].variable()] > level_of_[learned[highest].variable()]) highest = i;
  }
  std::swap(learned[1], learned[highest]);
  return level_of_[learned[1].variable()];
}

int32_t CardinalitySolver::AddLearned(std::vector<Literal> literals) {
  std::vector<int32_t> levels;
  for (const Literal literal : literals) levels.push_back(level_of_[literal.variable()]);
  std::sort(levels.begin(), levels.end());
  const auto distinct = std::unique(levels.begin(), levels.end()) - levels.begin();
  clauses_.push_back({std::move(literals), 0, static_cast<int32_t>(distinct)});
  const auto index = static_cast<int32_t>(clauses_.size()) - 1;
  Attach(index);
  ++num_learned_;
  return index;
}

void CardinalitySolver::Forget() {
  std::vector<int32_t> candidates;
  for (int32_t i = 0; i < static_cast<int32_t>(clauses_.size()); ++i) {
    const Clause& clause = clauses_[i];
    if (clause.deleted || clause.levels <= 3) continue;
    const int32_t variable = clause.literals[0].variable();
    if (value_[variable] >= 0 && reason_[variable] == i) continue;
    candidates.push_back(i);
  }
  std::sort(candidates.begin(), candidates.end(), [&](int32_t a, int32_t b) {
    const Clause &x = clauses_[a], &y = clauses_[b];
    if (x.levels != y.levels) return x.levels > y.levels;
    return x.activity != y.activity ? x.activity < y.activity : a < b;
  });
  candidates.resize(candidates.size() / 2);
  for (const int32_t i : candidates) {
    clauses_[i].deleted = true;
    std::vector<Literal>().swap(clauses_[i].literals);
    --num_learned_;
  }
}

Literal CardinalitySolver::Guess() {
  while (!heap_.empty()) {
    const int32_t variable = heap_[0];
    place_[variable] = -1;
    heap_[0] = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) {
      place_[heap_[0]] = 0;
      HeapDown(0);
    }
    if (value_[variable] < 0) return {2 * variable + (guess_[variable] != 0 ? 0 : 1)};
  }
  return {-1};
}

CardinalitySolver::Answer CardinalitySolver::Solve(int64_t conflicts, int64_t work) {
  if (contradiction_) return Answer::kUnsatisfiable;
  std::vector<Literal> learned;
  int64_t restarts = 0, until_restart = kRestartUnit, room = kForgetFrom;
  for (;;) {
    const int32_t conflict = Propagate();
    if (conflict != kGuess) {
      ++num_conflicts_;
      --until_restart;
      if (level() == 0) return Answer::kUnsatisfiable;
      const int32_t back = Learn(conflict, learned);
      Undo(back);
      const Literal first = learned[0];
      Set(first, learned.size() == 1 ? kGuess : AddLearned(learned));
      bump_ /= kDecay;
      if (num_conflicts_ >= conflicts || work_ >= work) return Answer::kUnknown;
      continue;
    }
    if (until_restart <= 0) {
      until_restart = kRestartUnit * Luby(++restarts);
      Undo(0);
      if (num_learned_ > room) {
        Forget();
        room += room / 10;
      }
      continue;
    }
    if (work_ >= work) return Answer::kUnknown;
    const Literal guess = Guess();
    if (guess.code < 0) return Answer::kSatisfiable;
    level_starts_.push_back(static_cast<int32_t>(trail_.size()));
    Set(guess, kGuess);
  }
}

void CardinalitySolver::Bump(int32_t variable) {
  activity_[variable] += bump_;
  if (activity_[variable] > kRescale) {
    for (double& activity : activity_) activity /= kRescale;
    bump_ /= kRescale;
  }
  if (place_[variable] >= 0) HeapUp(place_[variable]);
}

void CardinalitySolver::HeapInsert(int32_t variable) {
  if (place_[variable] >= 0) return;
  place_[variable] = static_cast<int32_t>(heap_.size());
  heap_.push_back(variable);
  HeapUp(place_[variable]);
}

void CardinalitySolver::HeapUp(int32_t place) {
  const int32_t variable = heap_[place];
  while (place > 0) {
    const int32_t above = (place - 1) / 2;
    if (activity_[heap_[above]] >= activity_[variable]) break;
    heap_[place] = heap_[above];
    place_[heap_[place]] = place;
    place = above;
  }
  heap_[place] = variable;
  place_[variable] = place;
}

void CardinalitySolver::HeapDown(int32_t place) {
  const int32_t variable = heap_[place];
  const auto size = static_cast<int32_t>(heap_.size());
  for (;;) {
    int32_t below = 2 * place + 1;
    if (below >= size) break;
    if (below + 1 < size && activity_[heap_[below + 1]] > activity_[heap_[below]]) ++below;
    if (activity_[heap_[below]] <= activity_[variable]) break;
    heap_[place] = heap_[below];
    place_[heap_[place]] = place;
    place = below;
  }
  heap_[place] = variable;
  place_[variable] = place;
}

}  // namespace plancast
