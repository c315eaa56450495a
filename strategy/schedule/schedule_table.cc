#include "strategy/schedule/schedule_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace plancast {
namespace {

constexpr int32_t kMostMicroBatches = 1 << 24, kMostChunks = 1 << 16;

std::optional<Phase> PhaseOf(char letter) {
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kWeight}) {
    if (kPhaseNames[phase][0] == letter) return phase;
  }
  return std::nullopt;
}

std::optional<ScheduleStep> ParseStep(absl::string_view word) {
  if (word.empty()) return std::nullopt;
  const std::optional<Phase> phase = PhaseOf(word[0]);
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(word.substr(1), absl::MaxSplits('.', 1));
  ScheduleStep step;
  const auto number = [](absl::string_view text, int32_t most, int32_t* value) {
    return !text.empty() && absl::ascii_isdigit(text[0]) && absl::SimpleAtoi(text, value) &&
           *value < most;
  };
  if (!phase || !number(parts.first, kMostMicroBatches, &step.micro_batch)) return std::nullopt;
  const bool says_chunk = parts.first.size() + 1 < word.size();
  if (says_chunk && !number(parts.second, kMostChunks, &step.chunk)) return std::nullopt;
  step.phase = *phase;
  return step;
}

constexpr char kBehindPlacement = ':';
constexpr char kPair = '&';

// The steps of a word: one, or the two of a pair.
std::optional<std::vector<ScheduleStep>> ParseSteps(absl::string_view word) {
  std::vector<ScheduleStep> steps;
  for (const absl::string_view part : absl::StrSplit(word, kPair)) {
    const std::optional<ScheduleStep> step = ParseStep(part);
    if (!step.has_value()) return std::nullopt;
    steps.push_back(*step);
  }
  if (steps.size() > 2) return std::nullopt;
  if (steps.size() == 2) {
    if (steps[0].phase != Phase::kForward || steps[1].phase != Phase::kBackward) {
      return std::nullopt;
    }
    steps[0].pairs = true;
  }
  return steps;
}

absl::string_view RowsOf(absl::string_view text) {
  const size_t end = text.find(kBehindPlacement);
  return end == absl::string_view::npos ? text : text.substr(end + 1);
}

}  // namespace

bool ListsWeights(const ScheduleTable& table) {
  const auto is_weight = [](const ScheduleStep& step) { return step.phase == Phase::kWeight; };
  return std::any_of(table.stages.begin(), table.stages.end(), [&](const auto& steps) {
    return std::any_of(steps.begin(), steps.end(), is_weight);
  });
}

bool ListsWeights(absl::string_view text) {
  return RowsOf(text).find(kPhaseNames[Phase::kWeight][0]) != absl::string_view::npos;
}

bool ListsPairs(const ScheduleTable& table) {
  const auto pairs = [](const ScheduleStep& step) { return step.pairs; };
  return std::any_of(table.stages.begin(), table.stages.end(), [&](const auto& steps) {
    return std::any_of(steps.begin(), steps.end(), pairs);
  });
}

bool ListsPairs(absl::string_view text) { return text.find(kPair) != absl::string_view::npos; }

std::string StepString(const ScheduleStep& step) {
  return absl::StrCat(kPhaseNames[step.phase], step.micro_batch, ".", step.chunk);
}

std::string ScheduleString(const std::vector<ScheduleStep>& steps) {
  std::string text;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i > 0) text += steps[i - 1].pairs ? kPair : ' ';
    absl::StrAppend(&text, StepString(steps[i]));
  }
  return text;
}

std::string PrintScheduleTable(const ScheduleTable& table) {
  return absl::StrCat(table.placement, table.placement.empty() ? "" : ": ",
                      absl::StrJoin(table.stages, ";",
                                    [](std::string* out, const std::vector<ScheduleStep>& steps) {
                                      absl::StrAppend(out, ScheduleString(steps));
                                    }));
}

absl::StatusOr<ScheduleTable> ParseScheduleTable(absl::string_view text) {
  ScheduleTable table;
  table.placement = std::string(PlacementText(text));
  for (const absl::string_view row : absl::StrSplit(RowsOf(text), ';')) {
    std::vector<ScheduleStep>& steps = table.stages.emplace_back();
    for (const absl::string_view word :
         absl::StrSplit(row, absl::ByAnyChar(" \t\n\r"), absl::SkipEmpty())) {
      const std::optional<std::vector<ScheduleStep>> read = ParseSteps(word);
      if (!read.has_value()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "stage ", table.stages.size() - 1, ", position ", steps.size(), ": `", word,
            "` is no step. Write phase, micro-batch and chunk, all from 0, as in `F0.0` or "
            "`B12.1`; phases are `F` (forward), `B` (backward) and `W` (gradients of weights, "
            "where B leaves them to it). F and B that run as a pair have `&` between them, as in "
            "`F1.0&B0.0`."));
      }
      steps.insert(steps.end(), read->begin(), read->end());
    }
    if (steps.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", table.stages.size() - 1,
                       " has no steps. Write a row of steps for each stage, with `;` between "
                       "rows, as in `F0.0 F1.0 B0.0 B1.0;F0.0 B0.0 F1.0 B1.0`."));
    }
  }
  return table;
}

bool LooksLikeScheduleTable(absl::string_view text) {
  for (const absl::string_view word : {"search:", "varuna:", "ongoing:"}) {  // schedule_word.h
    if (absl::StartsWith(text, word)) return false;
  }
  if (text.find(kBehindPlacement) != absl::string_view::npos) return true;
  text = absl::StripLeadingAsciiWhitespace(text);
  return ParseStep(text.substr(0, text.find_first_of("& ;\t\n\r"))).has_value();
}

absl::string_view PlacementText(absl::string_view text) {
  const size_t end = text.find(kBehindPlacement);
  if (end == absl::string_view::npos) return {};
  return absl::StripAsciiWhitespace(text.substr(0, end));
}

}  // namespace plancast
