#include "interop/chakra/chakra_trace.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

using Kind = ChakraTrace::Kind;

constexpr int64_t kMostBytes = int64_t{1} << 50, kMostUs = 1'000'000'000'000;

// The collective that a name as PyTorch and NCCL write it says (`c10d::broadcast_`,
// `ncclDevKernel_AllReduce_Sum_f32_RING_LL`), or -1.
int64_t TypeOfName(absl::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '_') plain.push_back(absl::ascii_tolower(c));
  }
  // Longer words first: `reducescatter` is no `reduce`.
  static constexpr std::pair<absl::string_view, chakra::CollectiveCommType> kWords[] = {
      {"allreduce", chakra::ALL_REDUCE}, {"reducescatter", chakra::REDUCE_SCATTER},
      {"allgather", chakra::ALL_GATHER}, {"alltoall", chakra::ALL_TO_ALL},
      {"broadcast", chakra::BROADCAST},  {"barrier", chakra::BARRIER},
  };
  for (const auto& [word, type] : kWords) {
    if (absl::StrContains(plain, word)) return type;
  }
  return -1;
}

class NodeReader {
 public:
  NodeReader(const chakra::Node& proto, absl::string_view what) : proto_(proto), what_(what) {}

  absl::Status Bad(absl::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ": node ", proto_.id(), " (`",
                                                   proto_.name().substr(0, 80), "`) ", why));
  }

  // An integer from 0 to `most`; `missing` if there is no such attribute.
  absl::StatusOr<int64_t> Whole(absl::string_view name, int64_t missing, int64_t most) const {
    if (FindAttribute(proto_, name) == nullptr) return missing;
    int64_t value = 0;
    if (!IntAttribute(proto_, name, value) || value < 0 || value > most) {
      return Bad(absl::StrCat("has `", name, "` that is no integer from 0 to ", most));
    }
    return value;
  }

  absl::StatusOr<int64_t> Group() const {
    const chakra::AttributeProto* attr = FindAttribute(proto_, "pg_name");
    if (attr == nullptr) return 0;
    int64_t group = 0;
    if (attr->value_case() != chakra::AttributeProto::kStringVal) {
      return Whole("pg_name", 0, kMostGroup);
    }
    if (attr->string_val().empty()) return 0;
    if (!absl::SimpleAtoi(attr->string_val(), &group) || group < 0 || group > kMostGroup) {
      return Bad(absl::StrCat("has `pg_name` `", attr->string_val().substr(0, 80),
                              "`; groups are numbers, and \"\" or \"0\" is all ranks"));
    }
    return group;
  }

  absl::Status Communication(ChakraTrace::Node& node) const {
    ASSIGN_OR_RETURN(node.bytes, Whole("comm_size", -1, kMostBytes));
    ASSIGN_OR_RETURN(node.tag, Whole("comm_tag", 0, kMostTag));
    ASSIGN_OR_RETURN(node.src, Whole("comm_src", -1, kMostTag));
    ASSIGN_OR_RETURN(node.dst, Whole("comm_dst", -1, kMostTag));
    if (node.kind != Kind::kCollective) {
      if (node.bytes < 1) return Bad("has no `comm_size` of at least 1");
      const bool peer = node.kind == Kind::kSend ? node.dst >= 0 : node.src >= 0;
      return peer ? absl::OkStatus()
                  : Bad(node.kind == Kind::kSend ? "has no `comm_dst`" : "has no `comm_src`");
    }
    ASSIGN_OR_RETURN(int64_t type, Whole("comm_type", -1, kMostTag));
    if (type < 0) type = TypeOfName(proto_.name());
    if (!chakra::CollectiveCommType_IsValid(static_cast<int>(type))) {
      return Bad(absl::StrCat("has `comm_type` ", type, "; 0 (ALL_REDUCE) to 9 (BARRIER) will do"));
    }
    node.collective = static_cast<chakra::CollectiveCommType>(type);
    if (node.bytes < 1 && node.collective != chakra::BARRIER) {
      return Bad("has no `comm_size` of at least 1");
    }
    node.bytes = std::max<int64_t>(node.bytes, 0);
    ASSIGN_OR_RETURN(node.group, Group());
    ASSIGN_OR_RETURN(node.priority, Whole("comm_priority", 0, kMostTag));
    if (const auto* dims = FindAttribute(proto_, "involved_dim"); dims != nullptr) {
      if (dims->value_case() != chakra::AttributeProto::kBoolList ||
          dims->bool_list().values_size() > 64) {
        return Bad("has `involved_dim` that is no list of at most 64 bools");
      }
      node.dims.assign(dims->bool_list().values().begin(), dims->bool_list().values().end());
    }
    return absl::OkStatus();
  }

  // Whether it leaves out what a communication needs, as calls on the CPU side do:
  // their kernel is another node.
  bool SaysTooLittle() const {
    const auto absent = [&](absl::string_view name) {
      return FindAttribute(proto_, name) == nullptr;
    };
    if (absent("comm_size")) return true;
    switch (proto_.type()) {
      case chakra::COMM_SEND_NODE:
        return absent("comm_dst");
      case chakra::COMM_RECV_NODE:
        return absent("comm_src");
      default:
        return absent("comm_type");
    }
  }

  bool IsNamed() const {
    return proto_.type() == chakra::COMM_COLL_NODE && FindAttribute(proto_, "comm_type") == nullptr;
  }

  absl::StatusOr<ChakraTrace::Node> Read() const {
    ChakraTrace::Node node;
    node.id = proto_.id();
    node.name = proto_.name();
    if (proto_.duration_micros() > static_cast<uint64_t>(kMostUs)) {
      return Bad(absl::StrCat("takes ", proto_.duration_micros(), " us; the limit is ", kMostUs));
    }
    node.duration_us = static_cast<int64_t>(proto_.duration_micros());
    ASSIGN_OR_RETURN(const int64_t cpu, Whole("is_cpu_op", 0, kMostTag));
    node.on_cpu = cpu != 0;
    ASSIGN_OR_RETURN(node.ops, Whole("num_ops", -1, int64_t{1} << 62));
    ASSIGN_OR_RETURN(node.tensor_bytes, Whole("tensor_size", -1, kMostBytes));
    switch (proto_.type()) {
      case chakra::INVALID_NODE:
      case chakra::METADATA_NODE:
        return node;
      case chakra::MEM_LOAD_NODE:
      case chakra::MEM_STORE_NODE:
        node.kind = Kind::kMemory;
        return node;
      case chakra::COMP_NODE:
        node.kind = Kind::kCompute;
        return node;
      case chakra::COMM_SEND_NODE:
        node.kind = Kind::kSend;
        break;
      case chakra::COMM_RECV_NODE:
        node.kind = Kind::kRecv;
        break;
      case chakra::COMM_COLL_NODE:
        node.kind = Kind::kCollective;
        break;
      default:
        return Bad(absl::StrCat("has type ", proto_.type(), "; 0 to 7 will do"));
    }
    if (node.on_cpu && SaysTooLittle()) {
      node.kind = Kind::kCompute;
      return node;
    }
    RETURN_IF_ERROR(Communication(node));
    return node;
  }

 private:
  static constexpr int64_t kMostTag = (int64_t{1} << 31) - 1, kMostGroup = 1'000'000;
  const chakra::Node& proto_;
  absl::string_view what_;
};

// The id of a node that waits for itself, if there is one.
bool FindCircle(const ChakraTrace& trace, uint64_t& id) {
  const size_t n = trace.nodes.size();
  std::vector<int32_t> left(n), begin(n + 1), ready;
  for (size_t i = 0; i < n; ++i) {
    left[i] = static_cast<int32_t>(trace.nodes[i].deps.size());
    for (const int32_t dep : trace.nodes[i].deps) ++begin[dep + 1];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<int32_t> waiting(begin[n]), cursor(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < n; ++i) {
    for (const int32_t dep : trace.nodes[i].deps) {
      waiting[cursor[dep]++] = static_cast<int32_t>(i);
    }
    if (left[i] == 0) ready.push_back(static_cast<int32_t>(i));
  }
  for (size_t done = 0; done < ready.size(); ++done) {
    for (int32_t w = begin[ready[done]]; w < begin[ready[done] + 1]; ++w) {
      if (--left[waiting[w]] == 0) ready.push_back(waiting[w]);
    }
  }
  const auto stuck = std::find_if(left.begin(), left.end(), [](int32_t l) { return l > 0; });
  if (stuck == left.end()) return false;
  id = trace.nodes[stuck - left.begin()].id;
  return true;
}

}  // namespace

absl::StatusOr<ChakraTrace> ChakraTraceFrom(const EtFile& file, absl::string_view what) {
  std::vector<int32_t> order(file.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return file.nodes[a].id() < file.nodes[b].id(); });
  ChakraTrace trace;
  trace.nodes.reserve(order.size());
  absl::flat_hash_map<uint64_t, int32_t> index_of;
  index_of.reserve(order.size());
  for (const int32_t i : order) {
    const NodeReader reader(file.nodes[i], what);
    if (!index_of.emplace(file.nodes[i].id(), static_cast<int32_t>(trace.nodes.size())).second) {
      return reader.Bad("has an id that another node has; ids must differ");
    }
    ASSIGN_OR_RETURN(ChakraTrace::Node node, reader.Read());
    const bool communicates = file.nodes[i].type() == chakra::COMM_SEND_NODE ||
                              file.nodes[i].type() == chakra::COMM_RECV_NODE ||
                              file.nodes[i].type() == chakra::COMM_COLL_NODE;
    if (communicates && node.kind == Kind::kCompute) ++trace.liberties.calls;
    if (node.kind == Kind::kCollective && reader.IsNamed()) ++trace.liberties.named;
    trace.nodes.push_back(std::move(node));
  }
  bool free = trace.nodes.empty();
  for (size_t n = 0; n < order.size(); ++n) {
    const chakra::Node& proto = file.nodes[order[n]];
    std::vector<int32_t>& deps = trace.nodes[n].deps;
    for (const auto* list : {&proto.data_deps(), &proto.ctrl_deps()}) {
      for (const uint64_t id : *list) {
        const auto found = index_of.find(id);
        if (list == &proto.ctrl_deps() && (found == index_of.end() || id == proto.id())) {
          ++trace.liberties.control_edges;
          continue;
        }
        if (found == index_of.end()) {
          return NodeReader(proto, what)
              .Bad(absl::StrCat("waits for node ", id, ", which the file does not have"));
        }
        deps.push_back(found->second);
      }
    }
    std::sort(deps.begin(), deps.end());
    deps.erase(std::unique(deps.begin(), deps.end()), deps.end());
    free = free || deps.empty();
  }
  if (!free) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": every node waits for another; one must be free to start"));
  }
  if (uint64_t id = 0; FindCircle(trace, id)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": node ", id, " waits for itself, by way of others"));
  }
  return trace;
}

std::vector<std::string> NotesOf(const std::vector<const ChakraTrace*>& traces) {
  ChakraTrace::Liberties all;
  for (const ChakraTrace* trace : traces) {
    all.control_edges += trace->liberties.control_edges;
    all.calls += trace->liberties.calls;
    all.named += trace->liberties.named;
  }
  std::vector<std::string> notes;
  if (all.control_edges > 0) {
    notes.push_back(absl::StrCat(all.control_edges,
                                 " control edges to nodes that are not there, or from a node to "
                                 "itself, are left out"));
  }
  if (all.calls > 0) {
    notes.push_back(absl::StrCat(all.calls,
                                 " communications on the CPU side say no size, type or peer and "
                                 "are taken as host work: what they send is a node of its own"));
  }
  if (all.named > 0) {
    notes.push_back(
        absl::StrCat(all.named, " collectives have no `comm_type` and are what their name says"));
  }
  return notes;
}

}  // namespace plancast
