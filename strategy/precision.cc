#include "strategy/precision.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "strategy/plan_options.h"

namespace plancast {
namespace {

// What state may be stored or sent in: no names of units (`tf32`), no indices.
absl::StatusOr<DType> StateType(absl::string_view option, const std::string& word) {
  std::vector<absl::string_view> known;
  for (const DType type :
       {DType::kFp32, DType::kBf16, DType::kFp16, DType::kFp8, DType::kFp8Row, DType::kFp8Block,
        DType::kMxfp8, DType::kNvfp4, DType::kInt16, DType::kInt8, DType::kInt4}) {
    known.push_back(DTypeName(type));
    if (known.back() == word) return type;
  }
  if (option == "master") known.insert(known.begin(), {"on", "off"});
  return absl::InvalidArgumentError(
      absl::StrCat("`", option, "` cannot be `", word, "`.", Offer(word, known)));
}

// Fused kernels for attention are measured in these.
absl::Status TakeAttention(const std::string& word, Precision* precision) {
  std::vector<absl::string_view> known;
  for (const DType type : {DType::kBf16, DType::kFp16, DType::kFp8, DType::kMxfp8}) {
    known.push_back(DTypeName(type));
    if (known.back() == word) precision->attention = type;
  }
  if (precision->attention.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("`attention_dtype` cannot be `", word, "`.", Offer(word, known)));
}

absl::Status TakeMaster(const std::string& word, Precision* precision) {
  precision->keeps_master = word != "off";
  if (word == "on" || word == "off") return absl::OkStatus();
  ASSIGN_OR_RETURN(precision->master, StateType("master", word));
  return absl::OkStatus();
}

absl::Status TakeState(const std::string& word, Precision* precision) {
  const std::vector<std::string> parts = absl::StrSplit(word, '+');
  if (parts.size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("`state_dtype` is `", word, "`; Adam has two moments: FIRST+SECOND."));
  }
  ASSIGN_OR_RETURN(precision->state, StateType("state_dtype", parts[0]));
  if (parts.size() == 2) {
    ASSIGN_OR_RETURN(precision->second_state, StateType("state_dtype", parts[1]));
  }
  return absl::OkStatus();
}

absl::Status TakeOptimizer(const std::string& word, Precision* precision) {
  precision->optimizer = word == "adamw" ? OptimizerType::kAdam : kOptimizerTypeNames.Find(word);
  if (precision->optimizer.has_value()) return absl::OkStatus();
  std::vector<absl::string_view> known(kOptimizerTypeNames.begin(), kOptimizerTypeNames.end());
  known.push_back("adamw");
  const bool when = kStepTimeNames.Find(word).has_value();
  return absl::InvalidArgumentError(absl::StrCat(
      "`optimizer_type` cannot be `", word, "`.",
      when ? absl::StrCat(" When weights are updated is said in the strategy: `optimizer=", word,
                          "`.")
           : Offer(word, known)));
}

}  // namespace

std::string Precision::DebugString() const {
  std::string out;
  const auto add = [&out](absl::string_view what, std::optional<DType> type) {
    if (type.has_value()) absl::StrAppend(&out, " ", what, " ", DTypeName(*type));
  };
  add("grad", grad);
  add("main_grad", main_grad);
  add("reduce", reduce);
  add("gather", gather);
  add("param", param);
  add("attention", attention);
  if (keeps_master.has_value()) absl::StrAppend(&out, *keeps_master ? " master" : " no master");
  add("master", master);
  if (optimizer.has_value()) absl::StrAppend(&out, " ", kOptimizerTypeNames[*optimizer]);
  add("state", state);
  add("second_state", second_state);
  return out;
}

absl::StatusOr<Precision> ParsePrecision(const std::map<std::string, std::string>& options) {
  Precision precision;
  const std::map<std::string, std::optional<DType>*> types = {
      {"grad_dtype", &precision.grad},
      {"main_grad_dtype", &precision.main_grad},
      {"reduce_dtype", &precision.reduce},
      {"gather_dtype", &precision.gather},
      {"param_dtype", &precision.param}};
  for (const auto& [option, word] : options) {
    const auto type = types.find(option);
    if (type != types.end()) {
      ASSIGN_OR_RETURN(*type->second, StateType(option, word));
    } else if (option == "attention_dtype") {
      RETURN_IF_ERROR(TakeAttention(word, &precision));
    } else if (option == "master") {
      RETURN_IF_ERROR(TakeMaster(word, &precision));
    } else if (option == "state_dtype") {
      RETURN_IF_ERROR(TakeState(word, &precision));
    } else if (option == "optimizer_type") {
      RETURN_IF_ERROR(TakeOptimizer(word, &precision));
    } else {
      std::vector<std::string> known = {"attention_dtype", "master", "optimizer_type",
                                        "state_dtype"};
      for (const auto& [name, unused] : types) known.push_back(name);
      return absl::InvalidArgumentError(
          absl::StrCat("no type of `", option, "`.", Offer(option, known)));
    }
  }
  if (!precision.state.has_value() || !precision.optimizer.has_value()) return precision;
  const int said = precision.second_state.has_value() ? 2 : 1;
  const int moments = Moments(*precision.optimizer);  // Muon: of what it leaves to Adam
  if (said <= moments) return precision;
  return absl::InvalidArgumentError(
      absl::StrCat("`state_dtype` is `", options.at("state_dtype"), "`, but ",
                   kOptimizerTypeNames[*precision.optimizer], " keeps ",
                   moments == 0 ? "nothing of a weight; leave it out."
                                : "one number of each weight: name one type."));
}

}  // namespace plancast
