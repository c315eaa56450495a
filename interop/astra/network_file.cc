#include "interop/astra/network_file.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "interop/astra/system_words.h"

namespace plancast {
namespace {

constexpr size_t kMostBytes = 1 << 20;

// Keys with lists of scalars: the part of YAML that such files use.
struct ListOf {
  int line = 0;
  std::vector<std::string> items;
};

std::string Unquoted(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front()) {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

absl::StatusOr<std::map<std::string, ListOf>> ReadLists(absl::string_view yaml,
                                                        absl::string_view what) {
  std::map<std::string, ListOf> lists;
  ListOf* list = nullptr;
  bool open = false;  // inside [ ]
  int number = 0;
  for (absl::string_view line : absl::StrSplit(yaml, '\n')) {
    ++number;
    const auto bad = [&](absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat(what, ":", number, ": ", why));
    };
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty() || line == "---" || line == "...") continue;
    if (!open && (line == "-" || line.substr(0, 2) == "- ")) {
      if (list == nullptr) return bad("an item of no list; a `key:` must go before");
      list->items.push_back(Unquoted(line.substr(1)));
      continue;
    }
    if (!open) {
      const size_t colon = line.find(':');
      if (colon == absl::string_view::npos) return bad("neither `key: [a, b]` nor `- item`");
      const std::string key = Unquoted(line.substr(0, colon));
      list = &lists[key];
      if (list->line > 0) return bad(absl::StrCat("`", key, "` is there a second time"));
      list->line = number;
      line = absl::StripAsciiWhitespace(line.substr(colon + 1));
      if (line.empty()) continue;
      if (line[0] != '[') {
        list->items.push_back(Unquoted(line));
        continue;
      }
      open = true;
      line.remove_prefix(1);
    }
    const size_t end = line.find(']');
    for (absl::string_view item : absl::StrSplit(line.substr(0, end), ',')) {
      if (std::string text = Unquoted(item); !text.empty()) list->items.push_back(std::move(text));
    }
    if (end == absl::string_view::npos) continue;
    open = false;
    if (end + 1 != line.size()) return bad("there is more behind `]`");
  }
  if (open) return absl::InvalidArgumentError(absl::StrCat(what, ": a `[` is not closed"));
  return lists;
}

}  // namespace

absl::StatusOr<AstraNetwork> ReadAstraNetwork(absl::string_view yaml, absl::string_view what) {
  if (yaml.size() > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", yaml.size(), " bytes; the limit is ", kMostBytes));
  }
  ASSIGN_OR_RETURN(auto lists, ReadLists(yaml, what));
  const std::vector<std::string> keys = {"topology", "npus_count", "bandwidth", "latency"};
  for (const std::string& key : keys) {
    if (lists.count(key) > 0) continue;
    std::vector<std::string> there;
    for (const auto& [name, list] : lists) there.push_back(name);
    return absl::InvalidArgumentError(absl::StrCat(
        what, " has no key `", key, "`; a network needs ", JoinQuoted(keys), ".",
        Nearest(key, there).empty() ? "" : absl::StrCat(" Is `", Nearest(key, there), "` meant?")));
  }
  const size_t dims = lists["topology"].items.size();
  AstraNetwork network;
  network.dims.resize(dims);
  for (const std::string& key : keys) {
    const ListOf& list = lists[key];
    const std::string place = absl::StrCat(what, ":", list.line, ": `", key, "`");
    if (list.items.size() != dims) {
      return absl::InvalidArgumentError(absl::StrCat(
          place, " has ", list.items.size(), " entries; `topology` has ", dims, " dimensions"));
    }
    for (size_t d = 0; d < dims; ++d) {
      AstraNetwork::Dim& dim = network.dims[d];
      const std::string& item = list.items[d];
      if (key == "topology") {
        ASSIGN_OR_RETURN(dim.wiring, AstraWiringFrom(item), _ << place);
        continue;
      }
      const bool read = key == "npus_count"  ? absl::SimpleAtoi(item, &dim.npus)
                        : key == "bandwidth" ? absl::SimpleAtod(item, &dim.gib_per_s)
                                             : absl::SimpleAtod(item, &dim.latency_ns);
      if (!read) {
        return absl::InvalidArgumentError(absl::StrCat(place, ": `", item, "` is not a number"));
      }
    }
  }
  RETURN_IF_ERROR(network.Verify()) << what;
  return network;
}

}  // namespace plancast
