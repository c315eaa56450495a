#ifndef PLANCAST_COLLECTIVES_SYNTHESIS_CARDINALITY_SOLVER_H_
#define PLANCAST_COLLECTIVES_SYNTHESIS_CARDINALITY_SOLVER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace plancast {

// A variable or its negation.
struct Literal {
  int32_t code = 0;  // 2 * variable, + 1 if negated

  int32_t variable() const { return code >> 1; }
  Literal operator!() const { return {code ^ 1}; }
  friend bool operator==(Literal a, Literal b) { return a.code == b.code; }
  friend bool operator!=(Literal a, Literal b) { return a.code != b.code; }
};

// Decides clauses and "at most k of these" over Boolean variables: depth-first
// search that learns a clause from every conflict (conflict-driven clause
// learning, Marques-Silva and Sakallah 1996; activities, restarts and watched
// literals as in Een and Sorensson 2003). Deterministic. Complete: without a
// limit it ends with a model or with the proof that there is none.
class CardinalitySolver {
 public:
  enum class Answer { kSatisfiable, kUnsatisfiable, kUnknown };

  Literal NewVariable(bool first_guess = false);
  int32_t num_variables() const { return static_cast<int32_t>(value_.size()); }

  // One of `literals`, of distinct variables, holds.
  void AddClause(std::vector<Literal> literals);
  // No more than `most` of `literals`, of distinct variables, hold.
  void AddAtMost(std::vector<Literal> literals, int32_t most);

  // kUnknown once `conflicts` were met or `work` done. May be called once.
  Answer Solve(int64_t conflicts, int64_t work = INT64_MAX);
  // Of the model found.
  bool Holds(Literal literal) const { return Value(literal) == 1; }
  int64_t conflicts() const { return num_conflicts_; }
  // Looks at clauses and bounds, some 10 ns each.
  int64_t work() const { return work_; }

 private:
  struct Clause {
    std::vector<Literal> literals;
    float activity = 0;
    int32_t levels = 0;  // distinct ones when learned; 0: given
    bool deleted = false;
  };
  struct AtMost {
    std::vector<Literal> literals;
    int32_t most = 0;
    int32_t held = 0;  // of those propagated
  };
  struct Watch {
    int32_t clause;
    Literal other;  // holds: the clause needs no look
  };
  // Why a literal was set: a clause (>= 0), an at-most (<= -2) or a guess.
  static constexpr int32_t kGuess = -1;
  static int32_t AtMostReason(int32_t index) { return -2 - index; }

  int8_t Value(Literal literal) const {  // 1 holds, 0 does not, -1 open
    const int8_t value = value_[literal.variable()];
    return value < 0 ? value : static_cast<int8_t>(value ^ (literal.code & 1));
  }
  int32_t level() const { return static_cast<int32_t>(level_starts_.size()); }

  void Set(Literal literal, int32_t reason);
  // The reason that cannot hold, or kGuess.
  int32_t Propagate();
  int32_t PropagateClauses(Literal literal);
  int32_t PropagateAtMosts(Literal literal);
  void Undo(int32_t level);
  // Literals that hold and imply `implied` (or the conflict, if null).
  void Explain(int32_t reason, const Literal* implied, std::vector<Literal>& out) const;
  // Learns from a conflict; gives the level to return to.
  int32_t Learn(int32_t conflict, std::vector<Literal>& learned);
  void Attach(int32_t clause);
  int32_t AddLearned(std::vector<Literal> literals);
  void Forget();
  Literal Guess();

  void Bump(int32_t variable);
  void HeapUp(int32_t place);
  void HeapDown(int32_t place);
  void HeapInsert(int32_t variable);

  bool contradiction_ = false;
  std::vector<int8_t> value_, guess_, seen_;
  std::vector<int32_t> level_of_, reason_, position_;  // by variable
  std::vector<double> activity_;
  double bump_ = 1;
  std::vector<int32_t> heap_, place_;  // open variables by activity
  std::vector<Literal> trail_;
  std::vector<int32_t> level_starts_;
  size_t propagated_ = 0;
  std::vector<Clause> clauses_;
  std::vector<std::vector<Watch>> watches_;  // by the literal that stops holding
  std::vector<AtMost> at_mosts_;
  std::vector<std::vector<int32_t>> member_of_;  // by literal: at-mosts
  int64_t num_conflicts_ = 0, num_learned_ = 0, work_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_SYNTHESIS_CARDINALITY_SOLVER_H_
