#include "interop/astra/comm_groups_file.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/struct.pb.h"
#include "proto/json.h"

namespace plancast {

absl::StatusOr<CommGroups> ReadCommGroups(absl::string_view json, absl::string_view what) {
  constexpr size_t kMostBytes = 32 << 20;
  constexpr int64_t kMostName = 1'000'000, kMostRank = 1 << 24;
  if (json.size() > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", json.size(), " bytes; the limit is ", kMostBytes));
  }
  google::protobuf::Struct file;
  RETURN_IF_ERROR(ParseJsonInto(json, what, file));
  CommGroups groups;
  for (const auto& [name, value] : file.fields()) {
    const auto bad = [&, &name = name](absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": group `", name, "` ", why));
    };
    int64_t id = 0;
    if (!absl::SimpleAtoi(name, &id) || id < 0 || id > kMostName) {
      return bad(absl::StrCat("must be a number from 0 to ", kMostName));
    }
    if (id == 0) continue;
    if (value.kind_case() != google::protobuf::Value::kListValue) return bad("must list ranks");
    std::vector<int64_t>& ranks = groups[id];
    if (!ranks.empty()) return bad("is there a second time");
    for (const auto& item : value.list_value().values()) {
      const double rank = item.number_value();
      if (item.kind_case() != google::protobuf::Value::kNumberValue || rank < 0 ||
          rank > kMostRank || rank != std::floor(rank)) {
        return bad("must list ranks, whole numbers of at least 0");
      }
      ranks.push_back(static_cast<int64_t>(rank));
    }
    std::vector<int64_t> sorted = ranks;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.empty() || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      return bad("must list different ranks, at least one");
    }
  }
  return groups;
}

}  // namespace plancast
