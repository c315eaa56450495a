#include "interop/nccl/search_json.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "collectives/nccl/connect.h"
#include "collectives/nccl/tuner.h"

namespace plancast {
namespace {

constexpr int kMaxListedRanks = 65536;
constexpr int64_t kLeastBytes = 8, kMostBytes = int64_t{8} << 30;

struct Collective {
  ProgramKind kind;
  absl::string_view name;
};
constexpr Collective kCollectives[] = {
    {ProgramKind::kBroadcast, "Broadcast"}, {ProgramKind::kReduce, "Reduce"},
    {ProgramKind::kAllGather, "AllGather"}, {ProgramKind::kReduceScatter, "ReduceScatter"},
    {ProgramKind::kAllReduce, "AllReduce"},
};

std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", absl::string_view(&c, 1));
    } else if (static_cast<unsigned char>(c) < ' ') {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string Number(double value) { return absl::StrFormat("%.6g", value); }

// Commas between what is added.
class List {
 public:
  List(std::string* out, char open, char close) : out_(out), close_(close) { *out_ += open; }
  ~List() { *out_ += close_; }
  std::string& Next() {
    if (!first_) *out_ += ", ";
    first_ = false;
    return *out_;
  }
  std::string& Key(absl::string_view key) {
    absl::StrAppend(&Next(), Quoted(key), ": ");
    return *out_;
  }

 private:
  std::string* out_;
  char close_;
  bool first_ = true;
};

template <typename Numbers>
void AppendIntegers(const Numbers& numbers, std::string& out) {
  List list(&out, '[', ']');
  for (int number : numbers) absl::StrAppend(&list.Next(), number);
}

void AppendGraph(const NcclGraph& graph, std::string& out) {
  List object(&out, '{', '}');
  absl::StrAppend(&object.Key("pattern"), static_cast<int>(graph.pattern));
  absl::StrAppend(&object.Key("crossNic"), graph.cross_nic);
  absl::StrAppend(&object.Key("nChannels"), graph.num_channels);
  object.Key("bwIntra") += Number(graph.bw_intra);
  object.Key("bwInter") += Number(graph.bw_inter);
  object.Key("latencyInter") += Number(graph.latency_inter);
  object.Key("typeIntra") += Quoted(PathTypeName(graph.type_intra));
  object.Key("typeInter") += Quoted(PathTypeName(graph.type_inter));
  absl::StrAppend(&object.Key("sameChannels"), graph.same_channels ? 1 : 0);
  absl::StrAppend(&object.Key("nHops"), graph.num_hops);
  List channels(&object.Key("channels"), '[', ']');
  for (const NcclChannel& channel : graph.channels) {
    List entry(&channels.Next(), '{', '}');
    AppendIntegers(channel.nets, entry.Key("net"));
    AppendIntegers(channel.gpus, entry.Key("gpus"));
  }
}

void AppendGraphs(const NcclCommunicator& comm, std::string& out) {
  List graphs(&out, '{', '}');
  const std::pair<absl::string_view, const NcclGraph*> named[] = {
      {"ring", &comm.ring},
      {"tree", &comm.tree},
      {"collnetChain", &comm.collnet_chain},
      {"collnetDirect", &comm.collnet_direct},
      {"nvls", &comm.nvls},
  };
  for (const auto& [name, graph] : named) {
    if (graph->num_channels > 0) AppendGraph(*graph, graphs.Key(name));
  }
}

void AppendPaths(const std::vector<PathSummary>& paths, std::string& out) {
  List list(&out, '[', ']');
  for (const PathSummary& path : paths) {
    absl::StrAppend(&list.Next(), "[", Quoted(PathTypeName(path.type)), ", ", Number(path.gb_per_s),
                    ", ", path.hops, "]");
  }
}

void AppendConnections(const NcclConnections& connections, List& object) {
  {
    List rings(&object.Key("rings"), '[', ']');
    for (const std::vector<int>& ring : connections.rings) AppendIntegers(ring, rings.Next());
  }
  List ranks(&object.Key("trees_per_rank_per_channel_up_down"), '[', ']');
  for (const std::vector<ChannelTree>& trees : connections.trees) {
    List channels(&ranks.Next(), '[', ']');
    for (const ChannelTree& tree : trees) {
      std::string& out = channels.Next();
      absl::StrAppend(&out, "[", tree.up, ", ");
      AppendIntegers(tree.down, out);
      out += ']';
    }
  }
}

template <typename Visit>
void ForEachPair(const Visit& visit) {
  for (int a = 0; a < kNumNcclAlgorithms; ++a) {
    for (int p = 0; p < kNumProtocols; ++p) {
      const auto algorithm = static_cast<NcclAlgorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      visit(algorithm, protocol,
            absl::StrCat(kNcclAlgorithmNames[algorithm], "/", kProtocolNames[protocol]));
    }
  }
}

void AppendTuning(const NcclTuner& tuner, std::string& out) {
  List collectives(&out, '{', '}');
  for (const Collective& collective : kCollectives) {
    List pairs(&collectives.Key(collective.name), '{', '}');
    ForEachPair([&](NcclAlgorithm algorithm, Protocol protocol, const std::string& pair) {
      const NcclCost cost = tuner.Cost(collective.kind, algorithm, protocol);
      if (cost.bandwidth <= 0) return;
      absl::StrAppend(&pairs.Key(pair), "{\"lat_us\": ", Number(cost.latency_us),
                      ", \"bw_GBs\": ", Number(cost.bandwidth), "}");
    });
  }
}

void AppendTimes(const NcclTuner& tuner, std::string& out) {
  List rows(&out, '[', ']');
  for (const Collective& collective : kCollectives) {
    for (int64_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= 2) {
      const auto choice = tuner.Choose(collective.kind, bytes);
      if (!choice.has_value()) continue;
      List row(&rows.Next(), '{', '}');
      row.Key("coll") += Quoted(collective.name);
      absl::StrAppend(&row.Key("bytes"), bytes);
      row.Key("best") += Quoted(absl::StrCat(kNcclAlgorithmNames[choice->algorithm], "/",
                                             kProtocolNames[choice->protocol]));
      row.Key("us") += Number(choice->us);
      List all(&row.Key("all"), '{', '}');
      ForEachPair([&](NcclAlgorithm algorithm, Protocol protocol, const std::string& pair) {
        const auto us = tuner.Time(collective.kind, algorithm, protocol, bytes);
        if (us.has_value()) all.Key(pair) += Number(*us);
      });
    }
  }
}

int VersionNumber(NcclVersion version) {
  return version == NcclVersion::k2_17 ? 21701 : version == NcclVersion::k2_27 ? 22707 : 23007;
}

}  // namespace

absl::StatusOr<std::string> NcclSearchJson(const NcclSearchResult& search,
                                           absl::string_view topology) {
  const NcclCommunicator& comm = search.communicator;
  std::string out;
  {
    List object(&out, '{', '}');
    absl::StrAppend(&object.Key("nccl"), VersionNumber(comm.version));
    object.Key("topo") += Quoted(topology);
    absl::StrAppend(&object.Key("nNodes"), comm.nodes);
    absl::StrAppend(&object.Key("localRanks"), comm.max_local_ranks);
    absl::StrAppend(&object.Key("nRanks"), comm.ranks);
    absl::StrAppend(&object.Key("minCC"), comm.min_compute_capability);
    absl::StrAppend(&object.Key("maxCC"), comm.max_compute_capability);
    object.Key("maxBw") += Number(search.best_path_gb_per_s);
    object.Key("totalBw") += Number(search.gpu_gb_per_s);
    absl::StrAppend(&object.Key("searchChannels"), search.search_channels);
    absl::StrAppend(&object.Key("nChannels"), comm.channels);
    absl::StrAppend(&object.Key("p2pnChannels"), comm.p2p_channels);
    absl::StrAppend(&object.Key("p2pnChannelsPerPeer"), comm.p2p_channels_per_peer);
    absl::StrAppend(&object.Key("nvlsSupport"), comm.nvls_supported ? 1 : 0);
    absl::StrAppend(&object.Key("nvlsChannels"), comm.nvls_channels);
    absl::StrAppend(&object.Key("collnet"), comm.collnet_supported ? 1 : 0);
    AppendGraphs(comm, object.Key("graphs"));
    {
      List ranks(&object.Key("gpuPaths"), '[', ']');
      for (const RankPaths& paths : search.paths) {
        List rank(&ranks.Next(), '{', '}');
        absl::StrAppend(&rank.Key("rank"), paths.rank);
        AppendPaths(paths.to_gpus, rank.Key("gpu"));
        AppendPaths(paths.to_nets, rank.Key("net"));
      }
    }
    if (comm.ranks <= kMaxListedRanks) AppendConnections(ConnectChannels(search), object);
    // A single rank talks to nobody.
    if (comm.ranks > 1) {
      ASSIGN_OR_RETURN(const NcclTuner tuner, NcclTuner::Create(comm));
      AppendTuning(tuner, object.Key("tuning"));
      AppendTimes(tuner, object.Key("times"));
    }
  }
  return out;
}

}  // namespace plancast
