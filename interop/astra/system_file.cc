#include "interop/astra/system_file.h"

#include <cmath>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "google/protobuf/struct.pb.h"
#include "interop/astra/system_words.h"
#include "proto/json.h"

namespace plancast {
namespace {

using google::protobuf::Value;

const std::vector<std::string>& KnownKeys() {
  static const auto& keys = *new std::vector<std::string>{
      "scheduling-policy", "collective-optimization", "preferred-dataset-splits",
      "active-chunks-per-dimension", "endpoint-delay", "local-mem-bw", "roofline-enabled",
      "peak-perf", "replay-only", "model-shared-bus", "all-reduce-implementation",
      "all-gather-implementation", "reduce-scatter-implementation", "all-to-all-implementation",
      "all-reduce-implementation-custom", "all-reduce-implementation-chakra",
      // No influence on time here.
      "boost-mode", "trace-enabled", "L", "o", "g", "G", "local-reduction-delay", "track-local-mem",
      "local-mem-trace-filename", "per-node-stats", "intra-dimension-scheduling",
      "inter-dimension-scheduling"};
  return keys;
}

class Keys {
 public:
  Keys(const google::protobuf::Struct& file, absl::string_view what) : file_(file), what_(what) {}

  absl::Status Bad(absl::string_view key, absl::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ": key `", key, "`: ", why));
  }
  const Value* Find(const std::string& key) const {
    const auto found = file_.fields().find(key);
    return found == file_.fields().end() ? nullptr : &found->second;
  }
  absl::StatusOr<double> Number(const std::string& key, double otherwise, double least,
                                double most) const {
    const Value* value = Find(key);
    if (value == nullptr) return otherwise;
    const double number = value->kind_case() == Value::kBoolValue
                              ? (value->bool_value() ? 1.0 : 0.0)
                              : value->number_value();
    if ((value->kind_case() != Value::kNumberValue && value->kind_case() != Value::kBoolValue) ||
        !(number >= least) || number > most) {
      return Bad(key, absl::StrCat("must be a number from ", least, " to ", most));
    }
    return number;
  }
  absl::StatusOr<std::string> Word(const std::string& key, absl::string_view otherwise) const {
    const Value* value = Find(key);
    if (value == nullptr) return std::string(otherwise);
    if (value->kind_case() != Value::kStringValue) return Bad(key, "must be a word in quotes");
    return value->string_value();
  }
  absl::StatusOr<std::vector<std::string>> Words(const std::string& key) const {
    std::vector<std::string> words;
    const Value* value = Find(key);
    if (value == nullptr) return words;
    if (value->kind_case() == Value::kStringValue) return std::vector{value->string_value()};
    if (value->kind_case() != Value::kListValue || value->list_value().values_size() > 16) {
      return Bad(key, "must be a list of at most 16 words, one for each dimension");
    }
    for (const Value& item : value->list_value().values()) {
      if (item.kind_case() != Value::kStringValue) return Bad(key, "must be a list of words");
      words.push_back(item.string_value());
    }
    return words;
  }
  absl::Status Algorithms(const std::string& key, std::vector<AstraAlgorithm>& algorithms) const {
    ASSIGN_OR_RETURN(const auto words, Words(key));
    for (const std::string& word : words) {
      const auto algorithm = AstraAlgorithmFrom(word);
      if (!algorithm.ok()) return Bad(key, algorithm.status().message());
      algorithms.push_back(*algorithm);
    }
    return absl::OkStatus();
  }
  absl::Status CheckNames() const {
    for (const auto& [key, value] : file_.fields()) {
      if (absl::c_linear_search(KnownKeys(), key)) continue;
      const absl::string_view nearest = Nearest(key, KnownKeys());
      if (!nearest.empty()) {
        return Bad(key, absl::StrCat("is not known. Did you mean `", nearest, "`?"));
      }
    }
    return absl::OkStatus();
  }

 private:
  const google::protobuf::Struct& file_;
  absl::string_view what_;
};

}  // namespace

absl::StatusOr<AstraSystemFile> ReadAstraSystem(absl::string_view json, absl::string_view what) {
  constexpr size_t kMostBytes = 1 << 20;
  if (json.size() > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", json.size(), " bytes; the limit is ", kMostBytes));
  }
  google::protobuf::Struct file;
  RETURN_IF_ERROR(ParseJsonInto(json, what, file));
  const Keys keys(file, what);
  RETURN_IF_ERROR(keys.CheckNames());
  AstraSystemFile read;
  AstraSystem& system = read.system;
  ASSIGN_OR_RETURN(const std::string order, keys.Word("scheduling-policy", "LIFO"));
  const auto known_order = AstraOrderFrom(order);
  if (!known_order.ok()) return keys.Bad("scheduling-policy", known_order.status().message());
  system.order = *known_order;
  ASSIGN_OR_RETURN(const std::string optimization,
                   keys.Word("collective-optimization", "baseline"));
  const auto aware = AstraOptimizationFrom(optimization);
  if (!aware.ok()) return keys.Bad("collective-optimization", aware.status().message());
  system.local_bw_aware = *aware;
  ASSIGN_OR_RETURN(const double splits, keys.Number("preferred-dataset-splits", 1, 1, 1e6));
  ASSIGN_OR_RETURN(const double active, keys.Number("active-chunks-per-dimension", 1, 1, 1e9));
  ASSIGN_OR_RETURN(const double endpoint, keys.Number("endpoint-delay", 10, 0, 2147483647));
  ASSIGN_OR_RETURN(system.local_mem_gb_per_s, keys.Number("local-mem-bw", 0, 0, 1e18));
  ASSIGN_OR_RETURN(const double roofline, keys.Number("roofline-enabled", 0, 0, 1));
  ASSIGN_OR_RETURN(system.peak_tflops, keys.Number("peak-perf", 0, 0, 1e12));
  ASSIGN_OR_RETURN(const double replay, keys.Number("replay-only", 0, 0, 1));
  ASSIGN_OR_RETURN(const double bus, keys.Number("model-shared-bus", 0, 0, 1));
  if (bus != 0)
    return keys.Bad("model-shared-bus", "this mode has no model of a shared bus; take 0");
  for (const auto& [key, usual] : {std::make_pair("inter-dimension-scheduling", "baseline"),
                                   std::make_pair("intra-dimension-scheduling", "FIFO")}) {
    ASSIGN_OR_RETURN(const std::string word, keys.Word(key, usual));
    if (word != usual) return keys.Bad(key, absl::StrCat("this mode has `", usual, "` only"));
  }
  if (!(system.local_mem_gb_per_s > 0)) {
    return keys.Bad("local-mem-bw", "is missing or 0; it must be above 0 GB/s");
  }
  system.splits = static_cast<int>(splits);
  system.active_chunks = static_cast<int>(active);
  system.endpoint_delay_ns = static_cast<int64_t>(endpoint);
  system.roofline = roofline != 0;
  system.replay_only = replay != 0;
  RETURN_IF_ERROR(keys.Algorithms("all-reduce-implementation", system.all_reduce));
  RETURN_IF_ERROR(keys.Algorithms("all-gather-implementation", system.all_gather));
  RETURN_IF_ERROR(keys.Algorithms("reduce-scatter-implementation", system.reduce_scatter));
  RETURN_IF_ERROR(keys.Algorithms("all-to-all-implementation", system.all_to_all));
  for (const char* key : {"all-reduce-implementation-custom", "all-reduce-implementation-chakra"}) {
    ASSIGN_OR_RETURN(const auto prefixes, keys.Words(key));
    if (prefixes.empty()) continue;
    if (prefixes.size() != 1) return keys.Bad(key, "must name the traces of one dimension");
    read.custom_prefix = prefixes[0];
    system.all_reduce = {AstraAlgorithm{AstraAlgorithm::Kind::kCustom}};
  }
  return read;
}

}  // namespace plancast
