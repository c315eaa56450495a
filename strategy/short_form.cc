#include "strategy/short_form.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "strategy/byte_size.h"
#include "strategy/context_parallel.h"
#include "strategy/plan_options.h"
#include "strategy/profile/optimizer_type.h"
#include "strategy/schedule/schedule_table.h"
#include "strategy/schedule/schedule_word.h"

namespace plancast {
namespace {

// Far above any machine, and low enough that two counts multiply in 64 bits.
constexpr int64_t kMaxCount = 1'000'000'000;
constexpr size_t kMaxVirtualStages = 100'000;
constexpr int64_t kMaxBucketBytes = 1'000'000'000'000'000;

using Strings = std::vector<std::string>;

template <typename Names>
Strings AllOf(const Names& names) {
  return Strings(names.begin(), names.end());
}

Strings Join(Strings words, const Strings& others) {
  words.insert(words.end(), others.begin(), others.end());
  return words;
}

// How one key is read and written. `parse` gets what follows the `=`; `print`
// gives that text back, or "" where the form does not say the key.
struct Key {
  std::string name;
  bool takes_value = true;
  std::function<absl::Status(absl::string_view value, ShortForm& form)> parse;
  std::function<std::string(const ShortForm& form)> print;
};

absl::StatusOr<int64_t> ParseCount(absl::string_view text, int64_t low, int64_t high) {
  int64_t count;
  if (!absl::SimpleAtoi(text, &count) || count < low || count > high) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` is not a whole number from ", low, " to ", high, "."));
  }
  return count;
}

Key Count(std::string name, std::optional<int64_t> ShortForm::*field, int64_t low = 1,
          int64_t high = kMaxCount) {
  return {std::move(name), true,
          [=](absl::string_view value, ShortForm& form) -> absl::Status {
            ASSIGN_OR_RETURN(form.*field, ParseCount(value, low, high));
            return absl::OkStatus();
          },
          [=](const ShortForm& form) {
            return (form.*field).has_value() ? absl::StrCat(*(form.*field)) : "";
          }};
}

Key Flag(std::string name, bool ShortForm::*field) {
  return {std::move(name), false,
          [=](absl::string_view, ShortForm& form) {
            form.*field = true;
            return absl::OkStatus();
          },
          [=](const ShortForm& form) { return form.*field ? "said" : ""; }};
}

absl::Status NotOneOf(absl::string_view value, const Strings& choices) {
  return absl::InvalidArgumentError(absl::StrCat(
      "`", value, "` is not one of ", JoinQuoted(choices), ".", DidYouMean(value, choices)));
}

bool Contains(const Strings& words, absl::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Key Choice(std::string name, std::optional<std::string> ShortForm::*field, Strings choices) {
  return {std::move(name), true,
          [=](absl::string_view value, ShortForm& form) {
            if (!Contains(choices, value)) return NotOneOf(value, choices);
            form.*field = std::string(value);
            return absl::OkStatus();
          },
          [=](const ShortForm& form) { return (form.*field).value_or(""); }};
}

// When weights are updated; what updates them is no part of a strategy.
absl::Status ParseOptimizer(absl::string_view value, ShortForm& form) {
  if (kOptimizerTypeNames.Find(value).has_value() || value == "adamw") {
    return absl::InvalidArgumentError(
        absl::StrCat("it says when weights are updated: ", JoinQuoted(kStepTimeNames),
                     ". What updates them stands beside the strategy: --optimizer-type ", value,
                     ", in Python optimizer_type=\"", value, "\"."));
  }
  const Strings choices = AllOf(kStepTimeNames);
  if (!Contains(choices, value)) return NotOneOf(value, choices);
  form.optimizer = std::string(value);
  return absl::OkStatus();
}

// A subset, written `a+b` and kept in the order of `choices`.
Key Subset(std::string name, Strings ShortForm::*field, Strings choices) {
  return {std::move(name), true,
          [=](absl::string_view value, ShortForm& form) {
            const Strings said = absl::StrSplit(value, '+');
            for (const std::string& word : said) {
              if (!Contains(choices, word)) return NotOneOf(word, choices);
              if (word == "none" && said.size() > 1) {
                return absl::InvalidArgumentError("`none` stands alone or not at all.");
              }
            }
            for (const std::string& choice : choices) {
              if (Contains(said, choice)) (form.*field).push_back(choice);
            }
            return absl::OkStatus();
          },
          [=](const ShortForm& form) { return absl::StrJoin(form.*field, "+"); }};
}

// `selective:core_attn+layernorm`: what the words stand for is the compiler's to say.
absl::Status ParseRecomputeOps(absl::string_view words, ShortForm& form) {
  std::set<std::string> ops;
  for (const absl::string_view word : absl::StrSplit(words, '+')) {
    const auto plain = [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; };
    if (word.empty() || absl::ascii_isdigit(word[0]) ||
        !std::all_of(word.begin(), word.end(), plain)) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", word,
                       "` is not the name of a set of ops. Write `selective`, or names "
                       "joined by `+`, as in `selective:core_attn+layernorm`."));
    }
    ops.emplace(word);
  }
  form.recompute_ops.assign(ops.begin(), ops.end());
  return absl::OkStatus();
}

absl::Status ParseRecompute(absl::string_view value, ShortForm& form) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(value, absl::MaxSplits(':', 1));
  const Strings choices = Join(AllOf(kRecomputeNames), {"every", "uniform"});
  if (!Contains(choices, parts.first)) {
    return NotOneOf(
        value, {"none", "selective", "selective:OPS", "full", "full:N", "every:N", "uniform:N"});
  }
  const bool plain = parts.first.size() == value.size();
  form.recompute = std::string(parts.first);
  if (parts.first == "selective" && !plain) return ParseRecomputeOps(parts.second, form);
  if (plain && parts.first == "every") {
    return absl::InvalidArgumentError(
        "`every` needs a number: `every:2` recomputes every other layer.");
  }
  if (plain && parts.first == "uniform") {
    return absl::InvalidArgumentError(
        "`uniform` needs a number: `uniform:2` recomputes two layers at a time.");
  }
  if (plain) return absl::OkStatus();
  if (parts.first == "none") {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", value, "` has a number of layers, which `full`, `every` and `uniform` take."));
  }
  ASSIGN_OR_RETURN(form.recompute_layers, ParseCount(parts.second, 1, kMaxCount));
  return absl::OkStatus();
}

std::string PrintRecompute(const ShortForm& form) {
  if (!form.recompute_ops.empty()) {
    return absl::StrCat("selective:", absl::StrJoin(form.recompute_ops, "+"));
  }
  if (!form.recompute_layers.has_value()) return form.recompute.value_or("");
  return absl::StrCat(*form.recompute, ":", *form.recompute_layers);
}

absl::Status ParseCpType(absl::string_view value, ShortForm& form) {
  ASSIGN_OR_RETURN(const ContextParallel said, ContextParallel::Parse(value));
  form.cp_type = said.DebugString();
  return absl::OkStatus();
}

absl::Status ParseReshard(absl::string_view value, ShortForm& form) {
  int64_t ranks;
  const bool words = value == "on" || value == "off";
  if (!words && !absl::SimpleAtoi(value, &ranks)) return NotOneOf(value, {"on", "off", "N"});
  if (words) {
    form.reshard = std::string(value);
  } else {
    ASSIGN_OR_RETURN(ranks, ParseCount(value, 2, kMaxCount));
    form.reshard = absl::StrCat(ranks);
  }
  return absl::OkStatus();
}

// `optimizer+activations:8`: the optimizer, and activations of the first 8 layers of a stage.
absl::Status ParseOffload(absl::string_view value, ShortForm& form) {
  const Strings choices = AllOf(kOffloadNames);
  std::set<std::string> said;
  for (const absl::string_view item : absl::StrSplit(value, '+')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits(':', 1));
    if (!Contains(choices, parts.first)) {
      return NotOneOf(item, Join(AllOf(kOffloadNames), {"activations:N"}));
    }
    said.emplace(parts.first);
    if (parts.first.size() == item.size()) continue;
    if (parts.first != "activations") {
      return absl::InvalidArgumentError(
          absl::StrCat("`", item, "` has a number of layers, which only `activations` takes."));
    }
    ASSIGN_OR_RETURN(form.offload_layers, ParseCount(parts.second, 1, kMaxCount));
  }
  for (const std::string& choice : choices) {
    if (said.count(choice) > 0) form.offload.push_back(choice);
  }
  return absl::OkStatus();
}

std::string PrintOffload(const ShortForm& form) {
  const std::string text = absl::StrJoin(form.offload, "+");
  // `activations` is the last word.
  return form.offload_layers.has_value() ? absl::StrCat(text, ":", *form.offload_layers) : text;
}

// A name, a table (schedule_table.h), or the name of a file that has one.
absl::Status ParseSchedule(absl::string_view value, ShortForm& form) {
  static const auto* names = new Strings([] {
    Strings all = AllOf(kScheduleNames);
    // What stands for no word.
    all.erase(std::remove_if(all.begin(), all.end(),
                             [](const std::string& s) {
                               return s == "none" || s == "table" || s == "ongoing";
                             }),
              all.end());
    return all;
  }());
  form.schedule = std::string(value);
  if (Contains(*names, value)) return absl::OkStatus();
  if (absl::StartsWith(value, "search:")) {
    if (ReadScheduleWord(value).has_value()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("`", value,
                     "` says how much a search may keep, in times of what 1f1b keeps "
                     "on the first stage, from 0.01 on, as in `search:1` or `search:1.5`."));
  }
  for (const absl::string_view counts : {"ongoing", "varuna"}) {
    if (!absl::StartsWith(value, absl::StrCat(counts, ":"))) continue;
    if (ReadScheduleWord(value).has_value()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("`", value, "` says how many micro-batches of each stage may be forward and ",
                     "not yet back, as in `", counts, ":4-3-2-1`, or one number for all."));
  }
  if (LooksLikeScheduleTable(value)) {
    ASSIGN_OR_RETURN(const ScheduleTable table, ParseScheduleTable(value));
    form.schedule = PrintScheduleTable(table);
    return absl::OkStatus();
  }
  const bool file = value.find_first_of("./") != absl::string_view::npos;
  return file ? absl::OkStatus() : NotOneOf(value, *names);
}

// A size of buckets.
Key Bucket(std::string name, std::optional<int64_t> ShortForm::*field) {
  return {std::move(name), true,
          [field](absl::string_view value, ShortForm& form) -> absl::Status {
            ASSIGN_OR_RETURN(const int64_t bytes, ParseByteSize(value));
            if (bytes > kMaxBucketBytes) {
              return absl::InvalidArgumentError(absl::StrCat("`", value, "` is more than ",
                                                             PrintByteSize(kMaxBucketBytes),
                                                             ", the largest bucket."));
            }
            form.*field = bytes;
            return absl::OkStatus();
          },
          [field](const ShortForm& form) {
            return (form.*field).has_value() ? PrintByteSize(*(form.*field)) : "";
          }};
}

// `13+14x7+12`: one stage of 13 layers, seven of 14, one of 12.
absl::Status ParseLayout(absl::string_view value, ShortForm& form) {
  for (absl::string_view run : absl::StrSplit(value, '+')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(run, absl::MaxSplits('x', 1));
    ASSIGN_OR_RETURN(const int64_t layers, ParseCount(parts.first, 0, kMaxCount));
    int64_t stages = 1;
    if (parts.first.size() != run.size()) {
      ASSIGN_OR_RETURN(stages, ParseCount(parts.second, 1, kMaxVirtualStages));
    }
    if (form.layout.size() + stages > kMaxVirtualStages) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", value, "` has more than ", kMaxVirtualStages, " virtual stages."));
    }
    form.layout.insert(form.layout.end(), stages, layers);
  }
  return absl::OkStatus();
}

absl::Status ParseOrder(absl::string_view value, ShortForm& form) {
  const Strings axes = {"tp", "cp", "ep", "dp", "pp"};
  for (const absl::string_view axis : absl::StrSplit(value, '-')) {
    if (!Contains(axes, axis)) return NotOneOf(axis, axes);
    if (Contains(form.order, axis)) {
      return absl::InvalidArgumentError(absl::StrCat("`", value, "` names `", axis, "` twice."));
    }
    form.order.emplace_back(axis);
  }
  for (const absl::string_view needed : {"tp", "dp", "pp"}) {
    if (!Contains(form.order, needed)) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", value, "` leaves out `", needed,
                       "`. Name every axis, fastest first, as in `tp-cp-ep-dp-pp`; only `cp` and "
                       "`ep` may be missing."));
    }
  }
  return absl::OkStatus();
}

// The language: parser, printer and key list are this table. Its order is the
// canonical one.
const std::vector<Key>& Keys() {
  static const auto* keys = new std::vector<Key>{
      Count("dp", &ShortForm::dp),
      Count("tp", &ShortForm::tp),
      Flag("sp", &ShortForm::sp),
      Count("pp", &ShortForm::pp),
      Count("vpp", &ShortForm::vpp),
      Count("cp", &ShortForm::cp),
      {"cp_type", true, ParseCpType,
       [](const ShortForm& form) { return form.cp_type.value_or(""); }},
      Count("ep", &ShortForm::ep),
      Count("etp", &ShortForm::etp),
      Count("zero", &ShortForm::zero, 0, 3),
      Count("hsdp", &ShortForm::hsdp),
      {"reshard", true, ParseReshard,
       [](const ShortForm& form) { return form.reshard.value_or(""); }},
      Count("prefetch", &ShortForm::prefetch, 0, 1000),
      Count("unit", &ShortForm::unit),
      Choice("sync", &ShortForm::sync, {"each", "last"}),
      Count("mb", &ShortForm::mb),
      Count("accum", &ShortForm::accum),
      {"recompute", true, ParseRecompute, PrintRecompute},
      {"schedule", true, ParseSchedule,
       [](const ShortForm& form) { return form.schedule.value_or(""); }},
      Choice("attn", &ShortForm::attn, AllOf(kAttentionNames)),
      Subset("overlap", &ShortForm::overlap, Join({"none"}, AllOf(kOverlapNames))),
      Bucket("bucket", &ShortForm::bucket_bytes),
      Bucket("first_bucket", &ShortForm::first_bucket_bytes),
      {"optimizer", true, ParseOptimizer,
       [](const ShortForm& form) { return form.optimizer.value_or(""); }},
      Choice("vocab_parallel", &ShortForm::vocab_parallel,
             {"redis", "vocab1", "vocab2", "interlaced"}),
      {"offload", true, ParseOffload, PrintOffload},
      {"layout", true, ParseLayout, [](const ShortForm& form) { return PrintLayout(form.layout); }},
      {"order", true, ParseOrder,
       [](const ShortForm& form) { return absl::StrJoin(form.order, "-"); }},
  };
  return *keys;
}

absl::StatusOr<const Key*> FindKey(absl::string_view name) {
  for (const Key& key : Keys()) {
    if (key.name == name) return &key;
  }
  return absl::InvalidArgumentError(absl::StrCat("no strategy key `", name, "`.",
                                                 Offer(name, ShortFormKeys()),
                                                 " docs/strategy.md explains each."));
}

bool IsKey(absl::string_view text) {
  const auto named = [&](const Key& key) { return key.name == text; };
  return std::any_of(Keys().begin(), Keys().end(), named);
}

// Items that are joined by something else than commas, `tp=8 pp=2`, or keys and values by
// something else than `=`, `tp:8`: says how they are.
absl::Status CheckSigns(absl::string_view item) {
  std::vector<absl::string_view> items =
      absl::StrSplit(item, absl::ByAnyChar(" \t\n;"), absl::SkipEmpty());
  if (items.size() > 1 && std::all_of(items.begin(), items.end(), [](absl::string_view one) {
        return IsKey(one.substr(0, one.find('=')));
      })) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", item, "`: items are joined by commas. Write `", absl::StrJoin(items, ","), "`."));
  }
  const size_t colon = item.find(':');
  if (item.find('=') == absl::string_view::npos && colon != absl::string_view::npos &&
      IsKey(item.substr(0, colon))) {
    return absl::InvalidArgumentError(absl::StrCat("`", item, "` has no value. Write `",
                                                   item.substr(0, colon), "=",
                                                   item.substr(colon + 1), "`."));
  }
  return absl::OkStatus();
}

absl::Status ParseItem(absl::string_view item, ShortForm& form) {
  if (item.empty()) {
    return absl::InvalidArgumentError(
        "there is nothing between two commas. Write items as in `dp=8,tp=4,sp`.");
  }
  RETURN_IF_ERROR(CheckSigns(item));
  const size_t equals = item.find('=');
  ASSIGN_OR_RETURN(const Key* key, FindKey(absl::StripAsciiWhitespace(item.substr(0, equals))));
  const bool has_value = equals != absl::string_view::npos;
  if (has_value != key->takes_value) {
    return absl::InvalidArgumentError(
        has_value ? absl::StrCat("`", item, "`: `", key->name, "` takes no value. Write `",
                                 key->name, "` or leave it out.")
                  : absl::StrCat("`", item, "` has no value. Write `", key->name, "=...`."));
  }
  if (const std::string earlier = key->print(form); !earlier.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", key->name, "` is given twice",
        has_value ? absl::StrCat(": `", key->name, "=", earlier, "` and `", item, "`") : "",
        ". Say it once."));
  }
  const absl::string_view value =
      has_value ? absl::StripAsciiWhitespace(item.substr(equals + 1)) : "";
  RETURN_IF_ERROR(key->parse(value, form)) << "`" << key->name << "`";
  return absl::OkStatus();
}

auto Fields(const ShortForm& f) {
  return std::tie(f.dp, f.tp, f.pp, f.vpp, f.cp, f.cp_type, f.ep, f.etp, f.zero, f.hsdp, f.mb,
                  f.accum, f.sp, f.reshard, f.sync, f.prefetch, f.unit, f.recompute,
                  f.recompute_layers, f.recompute_ops, f.offload_layers, f.schedule, f.attn,
                  f.vocab_parallel, f.overlap, f.offload, f.bucket_bytes, f.first_bucket_bytes,
                  f.optimizer, f.layout, f.order);
}

}  // namespace

bool operator==(const ShortForm& a, const ShortForm& b) { return Fields(a) == Fields(b); }

std::string PrintLayout(absl::Span<const int64_t> layout) {
  Strings runs;
  for (size_t begin = 0, end; begin < layout.size(); begin = end) {
    end = begin + 1;
    while (end < layout.size() && layout[end] == layout[begin]) ++end;
    runs.push_back(end - begin == 1 ? absl::StrCat(layout[begin])
                                    : absl::StrCat(layout[begin], "x", end - begin));
  }
  return absl::StrJoin(runs, "+");
}

absl::StatusOr<ShortForm> ParseShortForm(absl::string_view text) {
  ShortForm form;
  if (absl::StripAsciiWhitespace(text).empty()) return form;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    RETURN_IF_ERROR(ParseItem(absl::StripAsciiWhitespace(item), form));
  }
  return form;
}

std::string PrintShortForm(const ShortForm& form) {
  Strings items;
  for (const Key& key : Keys()) {
    const std::string value = key.print(form);
    if (value.empty()) continue;
    items.push_back(key.takes_value ? absl::StrCat(key.name, "=", value) : key.name);
  }
  return absl::StrJoin(items, ",");
}

std::vector<std::string> ShortFormKeys() {
  Strings names;
  for (const Key& key : Keys()) names.push_back(key.name);
  return names;
}

}  // namespace plancast
