#include "strategy/schedule/stage_placement.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/wrong.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {
namespace {

absl::StatusOr<std::vector<int32_t>> ParseStages(absl::string_view text, int64_t stages) {
  std::vector<int32_t> listed;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \t\n\r"), absl::SkipEmpty())) {
    int32_t stage = 0;
    if (!absl::SimpleAtoi(word, &stage)) {
      return Wrong("`", word, "` is no placement. Write `loop`, `v` or `both-ways`, or the stage ",
                   "of each virtual stage, all from 0, as in `0 1 1 0`.");
    }
    if (stage < 0 || stage >= stages) {
      return Wrong("virtual stage ", listed.size(), " is placed on stage ", stage,
                   ", and there are ", stages, " (pp), counted from 0.");
    }
    listed.push_back(stage);
  }
  return listed;
}

}  // namespace

StagePlacement::StagePlacement(int64_t stages, int64_t copies, bool loops,
                               std::vector<int32_t> stage)
    : stages_(stages),
      copies_(copies),
      loops_(loops),
      stage_(std::move(stage)),
      chunk_(stage_.size()),
      at_(stage_.size(), -1) {
  std::vector<int32_t> chunks_of(stages, 0);
  for (size_t v = 0; v < stage_.size(); ++v) {
    chunk_[v] = chunks_of[stage_[v]]++;
    at_[stage_[v] * chunks() + chunk_[v]] = static_cast<int32_t>(v);
  }
}

StagePlacement StagePlacement::Loop(int64_t stages, int64_t chunks) {
  std::vector<int32_t> stage(stages * chunks);
  for (size_t v = 0; v < stage.size(); ++v) stage[v] = static_cast<int32_t>(v % stages);
  return {stages, 1, true, std::move(stage)};
}

StagePlacement StagePlacement::Waves(int64_t stages, int64_t chunks) {
  std::vector<int32_t> stage(stages * chunks);
  for (size_t v = 0; v < stage.size(); ++v) {
    const auto along = static_cast<int32_t>(v % stages);
    stage[v] = v / stages % 2 == 0 ? along : static_cast<int32_t>(stages) - 1 - along;
  }
  return {stages, 1, chunks == 1, std::move(stage)};
}

StagePlacement StagePlacement::AndOnAll(int64_t chunks) const {
  PLANCAST_CHECK_EQ(copies_, 1);
  std::vector<int32_t> stage = stage_;
  for (int64_t i = 0; i < chunks * stages_; ++i) stage.push_back(static_cast<int32_t>(i % stages_));
  return {stages_, 1, loops_, std::move(stage)};
}

StagePlacement StagePlacement::BothWays(int64_t stages) {
  return {stages, 2, false, Waves(stages, 2).stage_};
}

absl::StatusOr<StagePlacement> StagePlacement::Parse(absl::string_view text, int64_t stages,
                                                     int64_t chunks) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty() || text == "loop") return Loop(stages, chunks);
  if (text == "v") return Waves(stages, chunks);
  if (text == "both-ways") {
    if (chunks == 1) return BothWays(stages);
    return Wrong("`both-ways` places one chunk of each copy on a stage, and there are ", chunks,
                 " (vpp). Leave vpp out, or list the stages of both copies.");
  }
  std::vector<int32_t> stage;
  int64_t copies = 0;
  for (const absl::string_view copy : absl::StrSplit(text, '+')) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> listed, ParseStages(copy, stages));
    if (static_cast<int64_t>(listed.size()) != stages * chunks) {
      return Wrong("the placement lists ", listed.size(), " virtual stages, and pp*vpp is ", stages,
                   "*", chunks, ". List the stage of each, in the order of the model.");
    }
    stage.insert(stage.end(), listed.begin(), listed.end());
    ++copies;
  }
  for (int32_t s = 0; s < stages; ++s) {
    const int64_t held = std::count(stage.begin(), stage.end(), s);
    if (held == copies * chunks) continue;
    return Wrong("the placement gives stage ", s, " ", held, held == 1 ? " chunk" : " chunks",
                 ", and ", copies * chunks, " are its part of the ", stage.size(),
                 ". Give each stage as many.");
  }
  for (size_t v = 0; v < stage.size(); ++v) {
    for (size_t other = v + stages * chunks; other < stage.size(); other += stages * chunks) {
      if (stage[v] != stage[other]) continue;
      return Wrong("the placement puts virtual stage ", v % (stages * chunks), " of two copies on ",
                   "stage ", stage[v], ". Put its copies on different stages.");
    }
  }
  const bool loops = copies == 1 && stage == Loop(stages, chunks).stage_;
  return StagePlacement(stages, copies, loops, std::move(stage));
}

std::string StagePlacement::Text() const {
  if (loops_) return "";
  if (copies_ == 1 && stage_ == Waves(stages_, chunks()).stage_) return "v";
  if (copies_ == 2 && chunks() == 2 && stage_ == BothWays(stages_).stage_) return "both-ways";
  std::string text;
  for (int64_t v = 0; v < virtual_stages(); ++v) {
    const bool next_copy = v > 0 && v % depth() == 0;
    absl::StrAppend(&text, next_copy ? " + " : v > 0 ? " " : "", stage_[v]);
  }
  return text;
}

StagePlacement PlacementOf(const PlanOptions& options) {
  if (!options.schedule_table.empty()) {
    absl::StatusOr<StagePlacement> placement =
        StagePlacement::Parse(PlacementText(options.schedule_table), options.pp, options.vpp);
    PLANCAST_CHECK_OK(placement.status());
    return *std::move(placement);
  }
  if (RunsBothWays(options.schedule)) return StagePlacement::BothWays(options.pp);
  const StagePlacement layers = Turns(options.schedule)
                                    ? StagePlacement::Waves(options.pp, options.vpp)
                                    : StagePlacement::Loop(options.pp, options.vpp);
  // The output and the input layer (VocabularySchedule).
  return options.spreads_vocabulary() ? layers.AndOnAll(2) : layers;
}

}  // namespace plancast
