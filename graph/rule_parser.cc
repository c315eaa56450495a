#include "graph/rule_parser.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "graph/rule_lexer.h"

namespace plancast {
namespace {

// Deeper nesting than anybody writes; keeps hostile input off the stack's end.
constexpr int kMaxDepth = 100;
constexpr int kMaxOperators = 2000;  // of one statement
constexpr absl::string_view kKeywords[] = {"param", "save", "fused", "factors", "where",
                                           "and",   "max",  "size",  "random"};

// Recursive descent over the tokens of one text.
class Parser {
 public:
  explicit Parser(std::vector<RuleToken> tokens) : tokens_(std::move(tokens)) {}

  absl::StatusOr<std::vector<OpRule>> ParseAll() {
    std::vector<OpRule> rules;
    SkipNewlines();
    while (Peek().kind != RuleToken::Kind::kEnd) {
      const RuleToken start = Peek();
      RETURN_IF_ERROR(ParseRule());
      absl::StatusOr<OpRule> rule =
          OpRule::Create(name_, factors_, tensors_, inputs_, outputs_, statements_, saves_, fused_);
      if (!rule.ok()) return ErrorAt(start, rule.status().message());
      rules.push_back(*std::move(rule));
      SkipNewlines();
    }
    return rules;
  }

 private:
  const RuleToken& Peek(int ahead = 0) const {
    return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
  }
  RuleToken Next() {
    RuleToken token = Peek();
    if (position_ + 1 < tokens_.size()) ++position_;
    return token;
  }
  bool Accept(absl::string_view word) {
    if (!Peek().Is(word)) return false;
    Next();
    return true;
  }
  void SkipNewlines() {
    while (Peek().kind == RuleToken::Kind::kNewline) Next();
  }

  static absl::Status ErrorAt(const RuleToken& token, absl::string_view message) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", token.line, ", column ", token.column, ": ", message));
  }
  static std::string Quote(const RuleToken& token) {
    if (token.kind == RuleToken::Kind::kEnd) return "the end of the text";
    if (token.kind == RuleToken::Kind::kNewline) return "the end of the line";
    return absl::StrCat("`", token.text, "`");
  }
  absl::Status Expect(absl::string_view word) {
    if (Accept(word)) return absl::OkStatus();
    return ErrorAt(Peek(), absl::StrCat("expected `", word, "` before ", Quote(Peek()), "."));
  }
  absl::StatusOr<RuleToken> ExpectName(absl::string_view what) {
    if (Peek().kind != RuleToken::Kind::kName) {
      return ErrorAt(Peek(), absl::StrCat("expected ", what, " before ", Quote(Peek()), "."));
    }
    if (std::find(std::begin(kKeywords), std::end(kKeywords), Peek().text) != std::end(kKeywords)) {
      return ErrorAt(Peek(), absl::StrCat("expected ", what, ", but ", Quote(Peek()),
                                          " is a word of the rule language."));
    }
    return Next();
  }

  // NAME(args) -> (outputs) { items }
  absl::Status ParseRule() {
    factors_.clear(), tensors_.clear(), has_dims_.clear(), inputs_.clear(), outputs_.clear();
    statements_.clear(), saves_.clear(), fused_.clear();
    ASSIGN_OR_RETURN(RuleToken name, ExpectName("the rule's name"));
    name_ = std::string(name.text);
    RETURN_IF_ERROR(Expect("("));
    RETURN_IF_ERROR(ParseDeclarations(RuleTensor::Role::kInput, &inputs_));
    SkipNewlines();
    RETURN_IF_ERROR(Expect("->"));
    RETURN_IF_ERROR(Expect("("));
    RETURN_IF_ERROR(ParseDeclarations(RuleTensor::Role::kOutput, &outputs_));
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
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (has_dims_[t]) continue;
      const bool input = tensors_[t].role == RuleTensor::Role::kInput;
      return ErrorAt(
          name, absl::StrCat("`", name_, "`: ", input ? "input" : "output", " `", tensors_[t].name,
                             "` is never ", input ? "read." : "written."));
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
      if (FindTensor(name.text) >= 0) {
        return ErrorAt(name, absl::StrCat("tensor `", name.text, "` is declared twice."));
      }
      RETURN_IF_ERROR(ParseOptionalType(&tensor));
      list->push_back(AddTensor(std::move(tensor)));
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
        const int tensor = FindTensor(name.text);
        if (tensor < 0) return UnknownTensor(name);
        saves_.push_back(tensor);
        Accept(",");
      }
      return absl::OkStatus();
    }
    if (Accept("fused")) {
      ASSIGN_OR_RETURN(RuleToken name, ExpectName("a cost family"));
      fused_ = std::string(name.text);
      return absl::OkStatus();
    }
    if (Accept("factors")) {
      while (Peek().kind == RuleToken::Kind::kName) {
        ASSIGN_OR_RETURN(RuleToken name, ExpectName("a factor"));
        FindOrAddFactor(name.text);
        Accept(",");
      }
      return absl::OkStatus();
    }
    return ParseStatement();
  }

  // target[dims][:type] (= | += | max=) expr [where conditions]
  absl::Status ParseStatement() {
    ASSIGN_OR_RETURN(RuleToken name, ExpectName("a statement"));
    Statement statement;
    statement.target = FindTensor(name.text);
    if (statement.target < 0) {
      RuleTensor tensor;
      tensor.name = std::string(name.text);
      statement.target = AddTensor(std::move(tensor));
    }
    RETURN_IF_ERROR(ParseDims(name, statement.target));
    RETURN_IF_ERROR(ParseOptionalType(&tensors_[statement.target]));
    if (Accept("+=")) {
      statement.combine = Combine::kSum;
    } else if (Accept("max")) {
      RETURN_IF_ERROR(Expect("="));
      statement.combine = Combine::kMax;
    } else {
      RETURN_IF_ERROR(Expect("="));
    }
    SkipNewlines();
    operators_ = 0;
    ASSIGN_OR_RETURN(statement.value, ParseSum(0));
    if (Accept("where")) {
      do {
        ASSIGN_OR_RETURN(Condition condition, ParseCondition());
        statement.where.push_back(condition);
      } while (Accept("and"));
    }
    statements_.push_back(std::move(statement));
    return absl::OkStatus();
  }

  // [b,s,h] after the name of `tensor`: fixes its dims, or must repeat them.
  absl::Status ParseDims(const RuleToken& name, int tensor) {
    RETURN_IF_ERROR(Expect("["));
    std::vector<int> dims;
    while (!Accept("]")) {
      ASSIGN_OR_RETURN(RuleToken factor, ExpectName("a factor"));
      dims.push_back(FindOrAddFactor(factor.text));
      if (!Peek().Is("]")) {
        RETURN_IF_ERROR(Expect(","));
      }
    }
    if (!has_dims_[tensor]) {
      tensors_[tensor].factors = std::move(dims);
      has_dims_[tensor] = true;
    } else if (tensors_[tensor].factors != dims) {
      return ErrorAt(name,
                     absl::StrCat("`", ElementText(name.text, dims), "` differs from the dims `",
                                  ElementText(name.text, tensors_[tensor].factors),
                                  "` it has elsewhere; a tensor has one dim list."));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Condition> ParseCondition() {
    Condition condition;
    ASSIGN_OR_RETURN(RuleToken left, ExpectName("a factor"));
    condition.left = FindOrAddFactor(left.text);
    if (Accept("<="))
      condition.relation = Condition::Relation::kLessEqual;
    else if (Accept("<"))
      condition.relation = Condition::Relation::kLess;
    else if (Accept("=="))
      condition.relation = Condition::Relation::kEqual;
    else
      return ErrorAt(Peek(),
                     absl::StrCat("expected `<=`, `<` or `==` before ", Quote(Peek()), "."));
    ASSIGN_OR_RETURN(RuleToken right, ExpectName("a factor"));
    condition.right = FindOrAddFactor(right.text);
    const bool minus = Peek().Is("-");
    if (minus || Peek().Is("+")) {
      Next();
      const RuleToken number = Next();
      if (number.kind != RuleToken::Kind::kNumber || number.number > 1e15 ||
          number.number != static_cast<int64_t>(number.number)) {
        return ErrorAt(number,
                       absl::StrCat("expected a whole number instead of ", Quote(number), "."));
      }
      condition.offset = static_cast<int64_t>(number.number) * (minus ? -1 : 1);
    }
    return condition;
  }

  absl::StatusOr<Expr> ParseSum(int depth) {
    ASSIGN_OR_RETURN(Expr left, ParseProduct(depth));
    while (Peek().Is("+") || Peek().Is("-")) {
      const ExprKind kind = Next().Is("+") ? ExprKind::kSum : ExprKind::kDifference;
      SkipNewlines();
      if (++operators_ > kMaxOperators) return ErrorAt(Peek(), "the expression is too long.");
      ASSIGN_OR_RETURN(Expr right, ParseProduct(depth));
      left = Expr::Binary(kind, std::move(left), std::move(right));
    }
    return left;
  }

  absl::StatusOr<Expr> ParseProduct(int depth) {
    ASSIGN_OR_RETURN(Expr left, ParseUnary(depth));
    while (Peek().Is("*") || Peek().Is("/")) {
      const ExprKind kind = Next().Is("*") ? ExprKind::kProduct : ExprKind::kQuotient;
      SkipNewlines();
      if (++operators_ > kMaxOperators) return ErrorAt(Peek(), "the expression is too long.");
      ASSIGN_OR_RETURN(Expr right, ParseUnary(depth));
      left = Expr::Binary(kind, std::move(left), std::move(right));
    }
    return left;
  }

  absl::StatusOr<Expr> ParseUnary(int depth) {
    if (depth > kMaxDepth) return ErrorAt(Peek(), "the expression is nested too deeply.");
    if (!Accept("-")) return ParseAtom(depth);
    if (Peek().kind == RuleToken::Kind::kNumber) return Expr::Number(-Next().number);
    ASSIGN_OR_RETURN(Expr operand, ParseUnary(depth + 1));
    return Expr::Negate(std::move(operand));
  }

  absl::StatusOr<Expr> ParseAtom(int depth) {
    if (Peek().kind == RuleToken::Kind::kNumber) return Expr::Number(Next().number);
    if (Accept("(")) {
      SkipNewlines();
      ASSIGN_OR_RETURN(Expr inner, ParseSum(depth + 1));
      SkipNewlines();
      RETURN_IF_ERROR(Expect(")"));
      return inner;
    }
    if (Accept("[")) return ParseIndicator();
    if (Accept("random")) {
      RETURN_IF_ERROR(Expect("("));
      RETURN_IF_ERROR(Expect(")"));
      return Expr::Random();
    }
    if (Accept("size")) {
      RETURN_IF_ERROR(Expect("("));
      ASSIGN_OR_RETURN(RuleToken factor, ExpectName("a factor"));
      RETURN_IF_ERROR(Expect(")"));
      return Expr::Size(FindOrAddFactor(factor.text));
    }
    ASSIGN_OR_RETURN(RuleToken name, ExpectName("an expression"));
    if (Peek().Is("[")) return ParseElement(name);
    if (!Accept("(")) return Expr::Attribute(name.text);
    const std::optional<Function> function = FindFunction(name.text);
    if (!function.has_value()) return UnknownFunction(name);
    SkipNewlines();
    ASSIGN_OR_RETURN(Expr operand, ParseSum(depth + 1));
    SkipNewlines();
    RETURN_IF_ERROR(Expect(")"));
    return Expr::Apply(*function, std::move(operand));
  }

  absl::StatusOr<Expr> ParseElement(const RuleToken& name) {
    const int tensor = FindTensor(name.text);
    if (tensor < 0) return UnknownTensor(name);
    RETURN_IF_ERROR(ParseDims(name, tensor));
    return Expr::Element(tensor);
  }

  // After `[`: i == id[b] ] or i == j ]
  absl::StatusOr<Expr> ParseIndicator() {
    ASSIGN_OR_RETURN(RuleToken left, ExpectName("a factor"));
    const int factor = FindOrAddFactor(left.text);
    RETURN_IF_ERROR(Expect("=="));
    ASSIGN_OR_RETURN(RuleToken right, ExpectName("a factor or an index tensor"));
    Expr indicator;
    if (Peek().Is("[")) {
      ASSIGN_OR_RETURN(Expr element, ParseElement(right));
      indicator = Expr::Indicator(factor, element.tensor());
    } else {
      indicator = Expr::FactorsEqual(factor, FindOrAddFactor(right.text));
    }
    RETURN_IF_ERROR(Expect("]"));
    return indicator;
  }

  absl::Status UnknownTensor(const RuleToken& name) {
    std::vector<std::string> known;
    for (const RuleTensor& tensor : tensors_) known.push_back(absl::StrCat("`", tensor.name, "`"));
    return ErrorAt(
        name, absl::StrCat("no tensor `", name.text, "` here; so far there are ",
                           absl::StrJoin(known, ", "), ". A tensor is written before it is read."));
  }
  absl::Status UnknownFunction(const RuleToken& name) {
    std::string known;
    for (int f = 0; f <= static_cast<int>(Function::kStep); ++f) {
      absl::StrAppend(&known, f ? ", `" : "`", FunctionName(static_cast<Function>(f)), "`");
    }
    return ErrorAt(name, absl::StrCat("no function `", name.text, "`; known: ", known, "."));
  }

  int FindTensor(absl::string_view name) const {
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (tensors_[t].name == name) return static_cast<int>(t);
    }
    return -1;
  }
  int AddTensor(RuleTensor tensor) {
    tensors_.push_back(std::move(tensor));
    has_dims_.push_back(false);
    return static_cast<int>(tensors_.size()) - 1;
  }
  int FindOrAddFactor(absl::string_view name) {
    for (size_t f = 0; f < factors_.size(); ++f) {
      if (factors_[f] == name) return static_cast<int>(f);
    }
    factors_.emplace_back(name);
    return static_cast<int>(factors_.size()) - 1;
  }
  std::string ElementText(absl::string_view name, const std::vector<int>& dims) const {
    return absl::StrCat(
        name, "[",
        absl::StrJoin(dims, ",", [&](std::string* out, int f) { out->append(factors_[f]); }), "]");
  }

  std::vector<RuleToken> tokens_;
  size_t position_ = 0;
  int operators_ = 0;  // in the statement being read
  // The rule being read.
  std::string name_, fused_;
  std::vector<std::string> factors_;
  std::vector<RuleTensor> tensors_;
  std::vector<bool> has_dims_;  // by tensor: its dim list is known
  std::vector<int> inputs_, outputs_, saves_;
  std::vector<Statement> statements_;
};

}  // namespace

absl::StatusOr<std::vector<OpRule>> ParseRules(absl::string_view text) {
  ASSIGN_OR_RETURN(std::vector<RuleToken> tokens, LexRules(text));
  return Parser(std::move(tokens)).ParseAll();
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
