#include "graph/model/program.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "graph/model/builder.h"
#include "graph/rule/op_rule.h"

namespace plancast {
namespace {

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// How the rule language writes a type: ``, `:f32`.
std::string Suffix(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
      return ":f32";
    case DType::kInt64:
      return ":i64";
    case DType::kUint8:
      return ":u8";
    default:
      return "";
  }
}

// A step, taken apart.
struct Step {
  std::string name;
  std::vector<std::string> results, arguments;
  std::string result_type;  // of a statement's: ``, `:f32`
  std::string text;         // a statement, or the call of a rule
  bool is_statement = false;
};

// Names that stand before an opening bracket, in order, each once.
std::vector<std::string> Indexed(absl::string_view text) {
  std::vector<std::string> names;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '[') continue;
    size_t begin = i;
    while (begin > 0 && IsWord(text[begin - 1])) --begin;
    std::string name(text.substr(begin, i - begin));
    if (name.empty() || std::count(names.begin(), names.end(), name) > 0) continue;
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> Listed(absl::string_view text) {
  std::vector<std::string> names;
  for (const absl::string_view name : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    names.emplace_back(absl::StripAsciiWhitespace(name));
  }
  return names;
}

// `product: ` in front of a statement names the step.
void TakeName(absl::string_view* text, Step* step) {
  size_t end = 0;
  while (end < text->size() && (IsWord((*text)[end]) || (*text)[end] == '.')) ++end;
  if (end == 0 || end + 1 >= text->size() || (*text)[end] != ':' || (*text)[end + 1] != ' ') return;
  step->name = std::string(text->substr(0, end));
  *text = absl::StripAsciiWhitespace(text->substr(end + 1));
}

absl::StatusOr<Step> Parse(absl::string_view given) {
  Step step;
  absl::string_view text = absl::StripAsciiWhitespace(given);
  TakeName(&text, &step);
  size_t word = 0;
  while (word < text.size() && IsWord(text[word])) ++word;
  size_t type = word;
  if (type < text.size() && text[type] == ':') {
    do ++type;
    while (type < text.size() && IsWord(text[type]));
  }
  step.is_statement = word > 0 && type < text.size() && text[type] == '[';
  if (step.is_statement) {
    step.results = {std::string(text.substr(0, word))};
    step.result_type = std::string(text.substr(word, type - word));
    step.text = absl::StrCat(step.results[0], text.substr(type));
    for (const std::string& name : Indexed(step.text)) {
      if (name != step.results[0]) step.arguments.push_back(name);
    }
  } else {
    const size_t equals = text.find('=');
    const size_t open = text.rfind('(');
    if (equals == absl::string_view::npos || open == absl::string_view::npos || open < equals ||
        text.back() != ')') {
      return absl::InvalidArgumentError(
          "is neither a statement, as in `A[i,j] += B[i,k] * C[k,j]`, nor the call of a rule, as "
          "in `y = gelu(x)`.");
    }
    step.results = Listed(text.substr(0, equals));
    step.arguments = Listed(text.substr(open + 1, text.size() - open - 2));
    step.text = std::string(absl::StripAsciiWhitespace(text.substr(equals + 1, open - equals - 1)));
  }
  if (step.results.empty()) return absl::InvalidArgumentError("names nothing that it makes.");
  if (step.name.empty()) step.name = step.results[0];
  return step;
}

class ProgramBuilder {
 public:
  ProgramBuilder(const IndexProgram& program, const ModuleBuilder& module)
      : program_(program), module_(module) {}

  absl::Status Give(const IndexProgram::Given& given) {
    const std::string indices = absl::StrJoin(given.dims, ",");
    const std::string type = Suffix(given.dtype), data = absl::StrCat(given.name, ".data");
    RETURN_IF_ERROR(module_.Input(data, given.dtype, given.dims));
    ASSIGN_OR_RETURN(OpRule rule, OpRule::Parse(absl::StrCat(
                                      "given(data", type, ") -> (", given.name, type, ") {\n  ",
                                      given.name, "[", indices, "] = data[", indices, "]\n}")));
    return module_.Call(given.name, std::make_shared<const OpRule>(std::move(rule)), {data},
                        {given.name}, {});
  }

  absl::Status Run(absl::string_view text) {
    ASSIGN_OR_RETURN(const Step step, Parse(text));
    if (!step.is_statement) {
      return module_.Call(step.name, step.text, step.arguments, step.results);
    }
    std::vector<std::string> arguments;
    for (const std::string& name : step.arguments) {
      const auto& tensors = module_.body().tensors;
      const auto found = std::find_if(tensors.begin(), tensors.end(),
                                      [&](const TensorInfo& t) { return t.name == name; });
      arguments.push_back(absl::StrCat(name, found == tensors.end() ? "" : Suffix(found->dtype)));
    }
    ASSIGN_OR_RETURN(OpRule rule,
                     OpRule::Parse(absl::StrCat(
                         step.results[0], "(", absl::StrJoin(arguments, ", "), ") -> (",
                         step.results[0], step.result_type, ") {\n  ", step.text, "\n}")));
    ModuleBuilder::CallOptions options;
    for (const auto& [dim, size] : program_.dims) {
      if (rule.FindFactor(dim).ok()) options.factor_dims.emplace_back(dim, dim);
    }
    return module_.Call(step.name, std::make_shared<const OpRule>(std::move(rule)), step.arguments,
                        step.results, options);
  }

  const ModuleBuilder& module() const { return module_; }

 private:
  const IndexProgram& program_;
  ModuleBuilder module_;
};

}  // namespace

absl::StatusOr<ModelGraph> BuildProgram(const IndexProgram& program) {
  ModelBuilder model(program.name);
  RETURN_IF_ERROR(model.AddDim("batch", 0));
  for (const auto& [name, size] : program.dims) RETURN_IF_ERROR(model.AddDim(name, size));
  ProgramBuilder builder(program, model.Module(program.name));
  for (const IndexProgram::Given& given : program.given) RETURN_IF_ERROR(builder.Give(given));
  for (const std::string& step : program.steps) {
    const absl::Status done = builder.Run(step);
    if (!done.ok()) {
      return absl::Status(done.code(), absl::StrCat("step `", step, "`: ", done.message()));
    }
  }
  if (program.steps.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", program.name,
                     "` has no steps. Say what it computes, as in `A[i,j] += "
                     "B[i,k] * C[k,j]`."));
  }
  RETURN_IF_ERROR(model.Append(program.name, builder.module()));
  return model.Build();
}

}  // namespace plancast
