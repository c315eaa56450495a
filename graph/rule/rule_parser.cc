#include "graph/rule/rule_parser.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "graph/rule/rule_expression.h"
#include "graph/rule/rule_lexer.h"

namespace plancast {
namespace {

constexpr absl::string_view kRank = "rank";  // binds how many dims `...` stands for
constexpr int64_t kMaxRank = 8;
constexpr double kMaxCoefficient = 1e6;
using Relation = Condition::Relation;
constexpr std::pair<absl::string_view, Relation> kRelations[] = {{"<=", Relation::kLessEqual},
                                                                 {"<", Relation::kLess},
                                                                 {"==", Relation::kEqual},
                                                                 {"follows", Relation::kFollows}};

// Recursive descent over the tokens of one text.
class Parser : private ExpressionParser {
 public:
  Parser(std::vector<RuleToken> tokens, const RuleBindings& bindings)
      : ExpressionParser(std::move(tokens)), bindings_(bindings) {}

  absl::StatusOr<std::vector<OpRule>> ParseAll() {
    std::vector<OpRule> rules;
    SkipNewlines();
    while (Peek().kind != RuleToken::Kind::kEnd) {
      const RuleToken start = Peek();
      RETURN_IF_ERROR(ParseRule());
      absl::StatusOr<OpRule> rule = std::move(rule_).Build();
      if (!rule.ok()) return ErrorAt(start, rule.status().message());
      rules.push_back(*std::move(rule));
      SkipNewlines();
    }
    return rules;
  }

 private:
  // NAME(args) -> (outputs) { items }
  absl::Status ParseRule() {
    rule_ = RuleDraft();
    lets_.clear(), has_ellipsis_ = false;
    ASSIGN_OR_RETURN(RuleToken name, ExpectName("the rule's name"));
    rule_.name = std::string(name.text);
    bound_ = rule_.name == bindings_.rule;
    RETURN_IF_ERROR(Expect("("));
    RETURN_IF_ERROR(ParseDeclarations(RuleTensor::Role::kInput, &rule_.inputs));
    SkipNewlines();
    RETURN_IF_ERROR(Expect("->"));
    RETURN_IF_ERROR(Expect("("));
    RETURN_IF_ERROR(ParseDeclarations(RuleTensor::Role::kOutput, &rule_.outputs));
    RETURN_IF_ERROR(Expect("{"));
    while (true) {
      SkipNewlines();
      if (Accept("}")) break;
      RETURN_IF_ERROR(ParseItem());
      if (!Peek().Is("}") && Peek().kind != RuleToken::Kind::kNewline) {
        return ErrorAt(Peek(), absl::StrCat("unexpected ", Quote(Peek()),
                                            "; each statement stands on a line of its own."));
      }
    }
    for (size_t t = 0; t < rule_.tensors.size(); ++t) {
      if (rule_.has_dims[t]) continue;
      const bool input = rule_.tensors[t].role == RuleTensor::Role::kInput;
      return ErrorAt(
          name, absl::StrCat("`", rule_.name, "`: ", input ? "input" : "output", " `",
                             rule_.tensors[t].name, "` is never ", input ? "read." : "written."));
    }
    return CheckBindings(name);
  }

  // What the caller binds must be there.
  absl::Status CheckBindings(const RuleToken& name) const {
    if (!bound_) return absl::OkStatus();
    std::vector<std::string> known;
    for (const auto& [attribute, value] : lets_) known.push_back(attribute);
    if (has_ellipsis_) known.emplace_back(kRank);
    for (const auto& [attribute, value] : bindings_.values) {
      if (std::find(known.begin(), known.end(), attribute) != known.end()) continue;
      return ErrorAt(name,
                     absl::StrCat("rule `", rule_.name, "` has no attribute `", attribute, "`; ",
                                  known.empty() ? "it has none."
                                                : absl::StrCat("it has ", JoinQuoted(known), "."),
                                  DidYouMean(attribute, known)));
    }
    return absl::OkStatus();
  }

  // [param] name[:type], ... up to the closing bracket.
  absl::Status ParseDeclarations(RuleTensor::Role role, std::vector<int>* list) {
    SkipNewlines();
    while (!Accept(")")) {
      RuleTensor tensor;
      tensor.role = role;
      if (role == RuleTensor::Role::kInput) tensor.parameter = Accept("param");
      ASSIGN_OR_RETURN(RuleToken name, ExpectName("a tensor"));
      tensor.name = std::string(name.text);
      if (rule_.FindTensor(name.text) >= 0) {
        return ErrorAt(name, absl::StrCat("tensor `", name.text, "` is declared twice."));
      }
      RETURN_IF_ERROR(ParseOptionalType(&tensor));
      list->push_back(rule_.AddTensor(std::move(tensor)));
      SkipNewlines();
      if (!Peek().Is(")")) {
        RETURN_IF_ERROR(Expect(","));
      }
      SkipNewlines();
    }
    return absl::OkStatus();
  }

  absl::Status ParseOptionalType(RuleTensor* tensor) {
    if (!Accept(":")) return absl::OkStatus();
    ASSIGN_OR_RETURN(RuleToken type, ExpectName("an element type"));
    if (type.text == "f32")
      tensor->dtype = DType::kFp32;
    else if (type.text == "u8")
      tensor->dtype = DType::kUint8;
    else if (type.text == "i64")
      tensor->dtype = DType::kInt64;
    else
      return ErrorAt(type, absl::StrCat("no element type `", type.text,
                                        "`; rules know `f32`, `u8` and `i64`, and the compute "
                                        "type if nothing is said."));
    return absl::OkStatus();
  }

  absl::Status ParseItem() {
    if (Accept("save")) {
      while (Peek().kind == RuleToken::Kind::kName) {
        ASSIGN_OR_RETURN(RuleToken name, ExpectName("a tensor"));
        const int tensor = rule_.FindTensor(name.text);
        if (tensor < 0) return UnknownTensor(name);
        rule_.saves.push_back(tensor);
        Accept(",");
      }
      return absl::OkStatus();
    }
    if (Accept("let")) return ParseLet();
    if (Accept("fused")) {
      ASSIGN_OR_RETURN(RuleToken name, ExpectName("a cost family"));
      rule_.fused = std::string(name.text);
      return absl::OkStatus();
    }
    if (Accept("factors")) {
      while (Peek().kind == RuleToken::Kind::kName) {
        ASSIGN_OR_RETURN(RuleToken name, ExpectName("a factor"));
        rule_.FindOrAddFactor(name.text);
        Accept(",");
      }
      return absl::OkStatus();
    }
    return ParseStatement();
  }

  // let stride = 1, stride_w = stride: attributes of index maps and their defaults.
  absl::Status ParseLet() {
    do {
      ASSIGN_OR_RETURN(RuleToken name, ExpectName("an attribute"));
      RETURN_IF_ERROR(Expect("="));
      int64_t value = 0;
      if (const int64_t* other = FindLet(Peek().text)) {
        value = *other;
        Next();
      } else {
        ASSIGN_OR_RETURN(value, ExpectWhole(Accept("-")));
      }
      if (FindLet(name.text) != nullptr) {
        return ErrorAt(name, absl::StrCat("attribute `", name.text, "` is declared twice."));
      }
      auto given = bindings_.values.find(std::string(name.text));
      if (bound_ && given != bindings_.values.end()) value = given->second;
      lets_.emplace_back(name.text, value);
    } while (Accept(","));
    return absl::OkStatus();
  }

  // target[dims][:type] (= | += | max=) expr [where conditions]
  absl::Status ParseStatement() {
    ASSIGN_OR_RETURN(RuleToken name, ExpectName("a statement"));
    Statement statement;
    statement.target = rule_.FindTensor(name.text);
    if (statement.target < 0) {
      RuleTensor tensor;
      tensor.name = std::string(name.text);
      statement.target = rule_.AddTensor(std::move(tensor));
    }
    maps_.clear();
    RETURN_IF_ERROR(ParseDims(name, statement.target));
    RETURN_IF_ERROR(ParseOptionalType(&rule_.tensors[statement.target]));
    if (Accept("+=")) {
      statement.combine = Combine::kSum;
    } else if (Accept("max")) {
      RETURN_IF_ERROR(Expect("="));
      statement.combine = Combine::kMax;
    } else if (Accept("scan")) {
      RETURN_IF_ERROR(ParseScan(&statement));
    } else if (Accept("opaque")) {
      RETURN_IF_ERROR(ParseOpaque(&statement));
    } else {
      RETURN_IF_ERROR(Expect("="));
    }
    SkipNewlines();
    ASSIGN_OR_RETURN(statement.value, ParseValue(statement.combine == Combine::kScan));
    if (Accept("where")) {
      do {
        ASSIGN_OR_RETURN(Condition condition, ParseCondition());
        statement.where.push_back(condition);
      } while (Accept("and"));
    }
    for (Condition& map : maps_) {
      if (std::find(statement.where.begin(), statement.where.end(), map) == statement.where.end()) {
        statement.where.push_back(std::move(map));
      }
    }
    rule_.statements.push_back(std::move(statement));
    return absl::OkStatus();
  }

  // (factor[, reverse][, before])= of a recurrence.
  absl::Status ParseScan(Statement* statement) {
    statement->combine = Combine::kScan;
    RETURN_IF_ERROR(Expect("("));
    ASSIGN_OR_RETURN(RuleToken factor, ExpectName("the factor that the recurrence runs along"));
    statement->scan.factor = rule_.FindOrAddFactor(factor.text);
    while (Accept(",")) {
      ASSIGN_OR_RETURN(RuleToken word, ExpectName("`reverse` or `before`"));
      if (word.text != "reverse" && word.text != "before") {
        return ErrorAt(
            word, absl::StrCat("expected `reverse` or `before` instead of ", Quote(word), "."));
      }
      (word.text == "reverse" ? statement->scan.reversed : statement->scan.before) = true;
    }
    RETURN_IF_ERROR(Expect(")"));
    return Expect("=");
  }

  // (factors)= of an opaque statement.
  absl::Status ParseOpaque(Statement* statement) {
    statement->combine = Combine::kOpaque;
    RETURN_IF_ERROR(Expect("("));
    while (!Accept(")")) {
      if (Accept("...")) {
        ASSIGN_OR_RETURN(std::vector<int> rest, EllipsisFactors());
        statement->pointwise.insert(statement->pointwise.end(), rest.begin(), rest.end());
      } else {
        ASSIGN_OR_RETURN(RuleToken factor, ExpectName("a factor"));
        statement->pointwise.push_back(rule_.FindOrAddFactor(factor.text));
      }
      if (!Peek().Is(")")) {
        RETURN_IF_ERROR(Expect(","));
      }
    }
    return Expect("=");
  }

  // [b,s,h] after the name of `tensor`: fixes its dims, or must repeat them.
  // An index like `i + k` stands for the dim's factor, which it maps.
  absl::Status ParseDims(const RuleToken& name, int tensor) override {
    RETURN_IF_ERROR(Expect("["));
    std::vector<int> dims;
    while (!Accept("]")) {
      if (Accept("...")) {
        ASSIGN_OR_RETURN(std::vector<int> rest, EllipsisFactors());
        dims.insert(dims.end(), rest.begin(), rest.end());
      } else if (Peek().kind == RuleToken::Kind::kName && !Peek().Is("size") &&
                 FindLet(Peek().text) == nullptr && (Peek(1).Is(",") || Peek(1).Is("]"))) {
        ASSIGN_OR_RETURN(RuleToken factor, ExpectName("a factor"));
        dims.push_back(rule_.FindOrAddFactor(factor.text));
      } else {
        Condition map;
        map.relation = Condition::Relation::kEqual;
        RETURN_IF_ERROR(ParseAffine(&map));
        const size_t d = dims.size();
        map.left = rule_.has_dims[tensor] && d < rule_.tensors[tensor].factors.size()
                       ? rule_.tensors[tensor].factors[d]
                       : rule_.FindOrAddFactor(absl::StrCat(name.text, ".", d));
        dims.push_back(map.left);
        maps_.push_back(std::move(map));
      }
      if (Peek().Is("]")) continue;
      RETURN_IF_ERROR(Expect(","));
    }
    if (!rule_.has_dims[tensor]) {
      rule_.tensors[tensor].factors = std::move(dims);
      rule_.has_dims[tensor] = true;
    } else if (rule_.tensors[tensor].factors != dims) {
      return ErrorAt(
          name, absl::StrCat("`", rule_.ElementText(name.text, dims), "` differs from the dims `",
                             rule_.ElementText(name.text, rule_.tensors[tensor].factors),
                             "` it has elsewhere; a tensor has one dim list."));
    }
    return absl::OkStatus();
  }

  // The factors that `...` stands for: as many as the caller says, else one.
  absl::StatusOr<std::vector<int>> EllipsisFactors() override {
    has_ellipsis_ = true;
    int64_t rank = 1;
    if (auto given = bindings_.values.find(std::string(kRank));
        bound_ && given != bindings_.values.end()) {
      rank = given->second;
    }
    if (rank < 0 || rank > kMaxRank) {
      return ErrorAt(Peek(), absl::StrCat("`", kRank, "` is ", rank, "; `...` stands for 0 to ",
                                          kMaxRank, " dims."));
    }
    std::vector<int> factors;
    for (int64_t i = 1; i <= rank; ++i)
      factors.push_back(rule_.FindOrAddFactor(absl::StrCat("_", i)));
    return factors;
  }

  absl::StatusOr<Condition> ParseCondition() {
    Condition condition;
    ASSIGN_OR_RETURN(RuleToken left, ExpectName("a factor"));
    condition.left = rule_.FindOrAddFactor(left.text);
    const auto* relation = std::find_if(std::begin(kRelations), std::end(kRelations),
                                        [this](const auto& r) { return Accept(r.first); });
    if (relation == std::end(kRelations)) {
      return ErrorAt(Peek(), "expected `<=`, `<`, `==` or `follows` before " + Quote(Peek()) + ".");
    }
    condition.relation = relation->second;
    RETURN_IF_ERROR(ParseAffine(&condition));
    return condition;
  }

  // stride * i + dilation * k - pad, into the right side of `condition`.
  absl::Status ParseAffine(Condition* condition) {
    const RuleToken start = Peek();
    bool minus = Accept("-");
    while (true) {
      AffineTerm term;
      term.number = minus ? -1 : 1;
      do {
        RETURN_IF_ERROR(ParseAffineAtom(&term));
      } while (Accept("*"));
      if (std::abs(static_cast<double>(term.number)) > kMaxCoefficient && term.factor >= 0) {
        return ErrorAt(start, "a coefficient of this index is above a million.");
      }
      if (term.factor < 0 && term.sizes.empty()) {
        condition->offset += term.number;
      } else if (term.number != 0) {
        condition->terms.push_back(std::move(term));
      }
      minus = Peek().Is("-");
      if (!minus && !Peek().Is("+")) break;
      Next();
      if (++operators_ > kMaxOperators) return ErrorAt(Peek(), "the index is too long.");
    }
    return absl::OkStatus();
  }

  // A number, `size(f)`, an attribute of `let`, or a factor (one in a term).
  absl::Status ParseAffineAtom(AffineTerm* term) {
    if (Peek().kind == RuleToken::Kind::kNumber) {
      ASSIGN_OR_RETURN(const int64_t number, ExpectWhole(false));
      return Scale(number, term);
    }
    if (Accept("size")) {
      RETURN_IF_ERROR(Expect("("));
      ASSIGN_OR_RETURN(RuleToken factor, ExpectName("a factor"));
      RETURN_IF_ERROR(Expect(")"));
      if (term->sizes.size() > kMaxRank) return ErrorAt(factor, "too many sizes in one product.");
      term->sizes.push_back(rule_.FindOrAddFactor(factor.text));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(RuleToken name, ExpectName("a factor, a whole number or `size`"));
    if (const int64_t* value = FindLet(name.text)) return Scale(*value, term);
    if (term->factor >= 0) {
      return ErrorAt(
          name, absl::StrCat("an index is a sum of factors times numbers; here `",
                             rule_.factors[term->factor], "` is multiplied by `", name.text, "`."));
    }
    term->factor = rule_.FindOrAddFactor(name.text);
    return absl::OkStatus();
  }

  absl::Status Scale(int64_t number, AffineTerm* term) const {
    if (std::abs(static_cast<double>(term->number) * number) > RuleCursor::kMaxWhole) {
      return ErrorAt(Peek(), "a number of this index is out of range.");
    }
    term->number *= number;
    return absl::OkStatus();
  }

  const RuleBindings& bindings_;
  std::vector<Condition> maps_;  // from indices of the statement being read
  bool has_ellipsis_ = false;
  bool bound_ = false;  // the bindings are for this rule
};

}  // namespace

absl::StatusOr<std::vector<OpRule>> ParseRules(absl::string_view text,
                                               const RuleBindings& bindings) {
  ASSIGN_OR_RETURN(std::vector<RuleToken> tokens, LexRules(text));
  return Parser(std::move(tokens), bindings).ParseAll();
}

absl::StatusOr<OpRule> OpRule::Parse(absl::string_view text) {
  ASSIGN_OR_RETURN(std::vector<OpRule> rules, ParseRules(text));
  if (rules.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected one rule, the text has ", rules.size(), "."));
  }
  return std::move(rules.front());
}

}  // namespace plancast
