#include "interop/nccl/graph_xml.h"

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "cluster/topology/system_element.h"
#include "interop/nccl/xml_document.h"

namespace plancast {
namespace {

constexpr int kMaxChannels = 64;

absl::StatusOr<int> Int(const SystemElement& element, absl::string_view key, int least, int most) {
  ASSIGN_OR_RETURN(const int64_t value, element.Integer(key));
  if (value >= least && value <= most) return static_cast<int>(value);
  return absl::InvalidArgumentError(absl::StrCat(element.Place(), ": ", key, "=\"", value,
                                                 "\"; it has to be between ", least, " and ", most,
                                                 "."));
}

absl::StatusOr<double> Rate(const SystemElement& element, absl::string_view key, bool needed) {
  if (needed && !element.Has(key)) return element.Text(key).status();
  ASSIGN_OR_RETURN(const double value, element.Number(key, 0));
  if (value >= 0) return value;
  return absl::InvalidArgumentError(
      absl::StrCat(element.Place(), ": ", key, "=\"", value, "\" is negative."));
}

absl::StatusOr<PathType> Type(const SystemElement& element, absl::string_view key) {
  ASSIGN_OR_RETURN(const std::string name, element.Text(key));
  PathType type = PathType::kDis;
  if (ParsePathType(name, &type)) return type;
  return absl::InvalidArgumentError(absl::StrCat(
      element.Place(), ": ", key, "=\"", name,
      "\" is no type of path; those are LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS."));
}

absl::StatusOr<NcclChannel> ReadChannel(const SystemElement& element) {
  NcclChannel channel;
  int nets = 0;
  for (const SystemElement& stop : element.children) {
    if (stop.name != "net" && stop.name != "gpu") {
      return absl::InvalidArgumentError(
          absl::StrCat(stop.Place(), " in a <channel>, which holds `gpu` and `net`."));
    }
    const bool by_rank = stop.name == "gpu" && stop.Has("rank");
    ASSIGN_OR_RETURN(const int number,
                     Int(stop, by_rank ? "rank" : "dev", 0, std::numeric_limits<int>::max()));
    if (stop.name == "gpu") {
      channel.gpus.push_back(number);
      continue;
    }
    if (nets == 2) {
      return absl::InvalidArgumentError(
          absl::StrCat(stop.Place(), " is the third of its channel; there are two."));
    }
    channel.nets[nets++] = number;
  }
  if (channel.gpus.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(element.Place(), " has no <gpu>."));
  }
  return channel;
}

absl::StatusOr<NumberedGraph> ReadGraph(const SystemElement& element) {
  NumberedGraph read;
  NcclGraph& graph = read.graph;
  ASSIGN_OR_RETURN(const int id, Int(element, "id", 0, 4));
  read.id = static_cast<NcclGraphId>(id);
  ASSIGN_OR_RETURN(const int pattern, Int(element, "pattern", 1, 6));
  graph.pattern = static_cast<NcclPattern>(pattern);
  ASSIGN_OR_RETURN(graph.cross_nic, Int(element, "crossnic", 0, 2));
  ASSIGN_OR_RETURN(graph.num_channels, Int(element, "nchannels", 0, kMaxChannels));
  ASSIGN_OR_RETURN(graph.bw_intra, Rate(element, "speedintra", true));
  ASSIGN_OR_RETURN(graph.bw_inter, Rate(element, "speedinter", true));
  ASSIGN_OR_RETURN(graph.latency_inter, Rate(element, "latencyinter", false));
  ASSIGN_OR_RETURN(graph.type_intra, Type(element, "typeintra"));
  ASSIGN_OR_RETURN(graph.type_inter, Type(element, "typeinter"));
  ASSIGN_OR_RETURN(const int same, Int(element, "samechannels", 0, 1));
  graph.same_channels = same != 0;
  for (const SystemElement& child : element.children) {
    if (child.name != "channel") {
      return absl::InvalidArgumentError(
          absl::StrCat(child.Place(), " in a <graph>, which holds `channel`s."));
    }
    ASSIGN_OR_RETURN(NcclChannel channel, ReadChannel(child));
    graph.channels.push_back(std::move(channel));
  }
  if (graph.num_channels != static_cast<int>(graph.channels.size())) {
    return absl::InvalidArgumentError(absl::StrCat(element.Place(), " says nchannels=\"",
                                                   graph.num_channels, "\" and has ",
                                                   graph.channels.size(), " channels."));
  }
  return read;
}

class Writer {
 public:
  explicit Writer(const NcclSearchResult& search)
      : search_(search), old_(search.communicator.version == NcclVersion::k2_17) {}

  SystemElement Write() const {
    SystemElement root;
    root.name = "graphs";
    root.Set("version", "1");
    const NcclNode& node = search_.nodes[0];
    Add(root, NcclGraphId::kRing, node.ring);
    Add(root, NcclGraphId::kTree, node.tree);
    if (node.collnet_chain.num_channels > 0) {
      Add(root, NcclGraphId::kCollNetChain, node.collnet_chain);
    }
    if (node.nvls.num_channels > 0) Add(root, NcclGraphId::kNvls, node.nvls);
    if (node.collnet_direct.num_channels > 0) {
      Add(root, NcclGraphId::kCollNetDirect, node.collnet_direct);
    }
    return root;
  }

 private:
  std::string Device(int number) const {
    return old_ ? absl::StrCat(number) : absl::StrFormat("0x%x", number);
  }

  void AddStop(SystemElement& channel, absl::string_view name, int number, int rank) const {
    SystemElement& stop = channel.Add(name);
    stop.Set("dev", Device(number));
    if (rank >= 0 && !old_) stop.Set("rank", absl::StrCat(rank));
  }

  void Add(SystemElement& root, NcclGraphId id, const NcclGraph& graph) const {
    SystemElement& element = root.Add("graph");
    element.Set("id", absl::StrCat(static_cast<int>(id)));
    element.Set("pattern", absl::StrCat(static_cast<int>(graph.pattern)));
    element.Set("crossnic", absl::StrCat(graph.cross_nic));
    element.Set("nchannels", absl::StrCat(graph.num_channels));
    element.Set("speedintra", absl::StrFormat("%g", graph.bw_intra));
    element.Set("speedinter", absl::StrFormat("%g", graph.bw_inter));
    element.Set("latencyinter", absl::StrFormat("%g", graph.latency_inter));
    element.Set("typeintra", PathTypeName(graph.type_intra));
    element.Set("typeinter", PathTypeName(graph.type_inter));
    element.Set("samechannels", graph.same_channels ? "1" : "0");
    for (const NcclChannel& channel : graph.channels) {
      SystemElement& stops = element.Add("channel");
      if (channel.nets[0] >= 0) AddStop(stops, "net", channel.nets[0], -1);
      for (int rank : channel.gpus) AddStop(stops, "gpu", search_.paths[rank].dev, rank);
      if (channel.nets[1] >= 0) AddStop(stops, "net", channel.nets[1], -1);
    }
  }

  const NcclSearchResult& search_;
  const bool old_;
};

}  // namespace

absl::StatusOr<std::vector<NumberedGraph>> ReadNcclGraphs(absl::string_view text,
                                                          absl::string_view what) {
  ASSIGN_OR_RETURN(const SystemElement root, ReadXml(text, what, "graphs"));
  std::vector<NumberedGraph> graphs;
  for (const SystemElement& element : root.children) {
    if (element.name != "graph") {
      return absl::InvalidArgumentError(
          absl::StrCat("`", what, "`: ", element.Place(), " in <graphs>, which holds `graph`s."));
    }
    ASSIGN_OR_RETURN(NumberedGraph graph, ReadGraph(element), _ << "`" << what << "`");
    graphs.push_back(std::move(graph));
  }
  return graphs;
}

std::string WriteNcclGraphs(const NcclSearchResult& search) {
  return WriteXml(Writer(search).Write());
}

}  // namespace plancast
