#include "tests/collectives/nccl/oracle.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace plancast {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const Value& Field(const Struct& object, const std::string& name) {
  static const Value& none = *new Value;
  const auto it = object.fields().find(name);
  return it == object.fields().end() ? none : it->second;
}
double Number(const Struct& object, const std::string& name) {
  return Field(object, name).number_value();
}
int Integer(const Struct& object, const std::string& name) {
  return static_cast<int>(Number(object, name));
}

PathType TypeOf(const Struct& object, const std::string& name) {
  PathType type = PathType::kDis;
  PLANCAST_CHECK(ParsePathType(Field(object, name).string_value(), &type));
  return type;
}

NcclGraph GraphOf(const Struct& object) {
  NcclGraph graph;
  graph.pattern = static_cast<NcclPattern>(Integer(object, "pattern"));
  graph.cross_nic = Integer(object, "crossNic");
  graph.num_channels = Integer(object, "nChannels");
  graph.bw_intra = Number(object, "bwIntra");
  graph.bw_inter = Number(object, "bwInter");
  graph.latency_inter = Number(object, "latencyInter");
  graph.type_intra = TypeOf(object, "typeIntra");
  graph.type_inter = TypeOf(object, "typeInter");
  graph.same_channels = Number(object, "sameChannels") != 0;
  graph.num_hops = Integer(object, "nHops");
  return graph;
}

ProgramKind KindOf(const std::string& name) {
  if (name == "AllReduce") return ProgramKind::kAllReduce;
  if (name == "AllGather") return ProgramKind::kAllGather;
  if (name == "ReduceScatter") return ProgramKind::kReduceScatter;
  if (name == "Broadcast") return ProgramKind::kBroadcast;
  PLANCAST_CHECK(name == "Reduce");
  return ProgramKind::kReduce;
}

NcclOracle OracleOf(const std::string& name, const Struct& root, const std::string& topology) {
  NcclOracle oracle;
  oracle.name = name;
  NcclCommunicator& comm = oracle.communicator;
  comm.version = Integer(root, "nccl") / 100 == 230 ? NcclVersion::k2_30 : NcclVersion::k2_17;
  comm.nodes = Integer(root, "nNodes");
  comm.ranks = Integer(root, "nRanks");
  comm.max_local_ranks = Integer(root, "localRanks");
  comm.min_compute_capability = Integer(root, "minCC");
  comm.max_compute_capability = Integer(root, "maxCC");
  comm.cpu_vendor =
      absl::StrContains(topology, "AuthenticAMD") ? CpuVendor::kAmd : CpuVendor::kIntel;
  comm.nvls_supported = comm.has_nvswitch = Number(root, "nvlsSupport") != 0;
  comm.channels = Integer(root, "nChannels");
  comm.p2p_channels = Integer(root, "p2pnChannels");
  comm.p2p_channels_per_peer = Integer(root, "p2pnChannelsPerPeer");
  const Struct& graphs = Field(root, "graphs").struct_value();
  comm.ring = GraphOf(Field(graphs, "ring").struct_value());
  comm.tree = GraphOf(Field(graphs, "tree").struct_value());
  if (graphs.fields().count("nvls") > 0) {
    comm.nvls = GraphOf(Field(graphs, "nvls").struct_value());
    comm.nvls_heads = comm.nvls.num_channels;
  }
  for (const auto& [kind, pairs] : Field(root, "tuning").struct_value().fields()) {
    for (const auto& [pair, cell] : pairs.struct_value().fields()) {
      oracle.cells.push_back({KindOf(kind), pair, Number(cell.struct_value(), "lat_us"),
                              Number(cell.struct_value(), "bw_GBs")});
    }
  }
  for (const Value& entry : Field(root, "times").list_value().values()) {
    const Struct& time = entry.struct_value();
    NcclOracle::Time row;
    row.kind = KindOf(Field(time, "coll").string_value());
    row.bytes = static_cast<int64_t>(Number(time, "bytes"));
    row.best = Field(time, "best").string_value();
    row.us = Number(time, "us");
    for (const auto& [pair, us] : Field(time, "all").struct_value().fields()) {
      row.all[pair] = us.number_value();
    }
    oracle.times.push_back(row);
  }
  return oracle;
}

}  // namespace

std::vector<NcclOracle> ReadNcclOracles() {
  const char* shared = std::getenv("PLANCAST_SHARED_DATA");
  if (shared == nullptr) return {};
  std::set<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat(shared, "/oracles/nccl"))) {
    if (entry.path().extension() == ".json") files.insert(entry.path());
  }
  std::vector<NcclOracle> oracles;
  for (const std::filesystem::path& file : files) {
    Value value;
    PLANCAST_CHECK(google::protobuf::util::JsonStringToMessage(TextOf(file), &value).ok());
    const Struct& root = value.struct_value();
    const std::string topology =
        TextOf(std::filesystem::path(shared) / Field(root, "topo").string_value());
    PLANCAST_CHECK(!topology.empty());
    oracles.push_back(OracleOf(file.stem().string(), root, topology));
  }
  return oracles;
}

}  // namespace plancast
