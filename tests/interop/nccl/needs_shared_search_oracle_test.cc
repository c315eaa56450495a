#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "interop/nccl/search_json.h"
#include "interop/nccl/topology_xml.h"
#include "tests/testing/status_matchers.h"

// What NCCL's own search, connection and tuner answered for topology files on one and
// several hosts (oracles/nccl), against ours, field by field.

namespace plancast {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr double kTolerance = 1e-4;

struct Share {
  int equal = 0, all = 0;
};

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool Equal(const Value& a, const Value& b) {
  if (a.kind_case() != b.kind_case()) return false;
  if (a.has_number_value()) {
    return std::abs(a.number_value() - b.number_value()) <=
           kTolerance * std::max(1e-9, std::abs(a.number_value()));
  }
  if (a.has_list_value()) {
    const auto& left = a.list_value().values();
    const auto& right = b.list_value().values();
    if (left.size() != right.size()) return false;
    for (int i = 0; i < left.size(); ++i) {
      if (!Equal(left[i], right[i])) return false;
    }
    return true;
  }
  if (a.has_struct_value()) {
    const auto& left = a.struct_value().fields();
    const auto& right = b.struct_value().fields();
    if (left.size() != right.size()) return false;
    for (const auto& [key, value] : left) {
      const auto found = right.find(key);
      if (found == right.end() || !Equal(value, found->second)) return false;
    }
    return true;
  }
  return a.string_value() == b.string_value();
}

const Value& Field(const Value& object, const std::string& name) {
  static const Value& none = *new Value;
  const auto& fields = object.struct_value().fields();
  const auto found = fields.find(name);
  return found == fields.end() ? none : found->second;
}

class Comparison {
 public:
  void Compare(const std::string& oracle, const std::string& field, const Value& theirs,
               const Value& ours) {
    Share& share = shares_[field];
    ++share.all;
    if (Equal(theirs, ours)) {
      ++share.equal;
    } else {
      std::cout << oracle << " " << field << "\n";
    }
  }
  const std::map<std::string, Share>& shares() const { return shares_; }

 private:
  std::map<std::string, Share> shares_;
};

void CompareAll(const std::string& oracle, const Value& theirs, const Value& ours,
                Comparison& comparison) {
  // What the oracles' authors wrote down beside NCCL's answers.
  const std::set<std::string> skipped = {"notes", "topo", "graphs", "times", "tuning"};
  const bool old = absl::EndsWith(oracle, "_v217");
  for (const auto& [name, value] : theirs.struct_value().fields()) {
    // Those of 2.17 were not asked for these.
    if (skipped.count(name) > 0 || (old && absl::StartsWith(name, "p2p"))) continue;
    comparison.Compare(oracle, name, value, Field(ours, name));
  }
  for (const auto& [graph, fields] : Field(theirs, "graphs").struct_value().fields()) {
    for (const auto& [name, value] : fields.struct_value().fields()) {
      comparison.Compare(oracle, absl::StrCat("graphs.", graph, ".", name), value,
                         Field(Field(Field(ours, "graphs"), graph), name));
    }
  }
  for (const auto& [kind, pairs] : Field(theirs, "tuning").struct_value().fields()) {
    comparison.Compare(oracle, "tuning", pairs, Field(Field(ours, "tuning"), kind));
  }
  const auto& times = Field(theirs, "times").list_value().values();
  const auto& our_times = Field(ours, "times").list_value().values();
  ASSERT_EQ(times.size(), our_times.size()) << oracle;
  for (int i = 0; i < times.size(); ++i) {
    comparison.Compare(oracle, "times", times[i], our_times[i]);
  }
}

TEST(SearchOracleTest, FindsWhatNcclFinds) {
  const char* shared = std::getenv("PLANCAST_SHARED_DATA");
  if (shared == nullptr) GTEST_SKIP() << "PLANCAST_SHARED_DATA is not set";
  const std::filesystem::path root(shared);
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(root / "oracles" / "nccl")) {
    if (entry.path().extension() == ".json") files.insert(entry.path());
  }
  Comparison comparison;
  for (const std::filesystem::path& file : files) {
    const std::string name = file.stem();
    Value theirs;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(TextOf(file), &theirs).ok());
    const std::string topology = Field(theirs, "topo").string_value();
    ASSERT_OK_AND_ASSIGN(const SystemElement system,
                         ReadNcclTopology(TextOf(root / topology), topology));
    const NcclVersion version = absl::EndsWith(name, "_v217") ? NcclVersion::k2_17 : kLatestNccl;
    const int hosts = static_cast<int>(Field(theirs, "nNodes").number_value());
    ASSERT_OK_AND_ASSIGN(const NcclSearchResult search, SearchGraphs(system, hosts, version));
    ASSERT_OK_AND_ASSIGN(const std::string json, NcclSearchJson(search, topology));
    Value ours;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &ours).ok()) << json;
    CompareAll(name, theirs, ours, comparison);
  }
  for (const auto& [field, share] : comparison.shares()) {
    std::cout << field << ": " << share.equal << " of " << share.all << "\n";
    EXPECT_EQ(share.equal, share.all) << field;
  }
}

}  // namespace
}  // namespace plancast
