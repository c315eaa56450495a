#include "absl/status/statusor.h"
#include "cluster/topology/paths.h"
#include "cluster/topology/topology.h"
#include "collectives/nccl/search.h"
#include "interop/nccl/graph_xml.h"
#include "interop/nccl/topology_xml.h"
#include "tests/fuzz/native/targets/groups.h"

namespace plancast {
namespace {

// What was read is written and read again, and becomes a graph with paths.
absl::Status TopologyFile(absl::string_view bytes) {
  const absl::StatusOr<SystemElement> system = ReadNcclTopology(bytes, "topology");
  if (!system.ok()) return system.status();
  const absl::Status again = ReadNcclTopology(WriteNcclTopology(*system), "written").status();
  if (!again.ok()) return absl::InternalError(again.message());
  for (NcclVersion version : {NcclVersion::k2_17, NcclVersion::k2_27, NcclVersion::k2_30}) {
    const absl::StatusOr<Topology> topology = Topology::Create(*system, version);
    if (!topology.ok()) return topology.status();
    TopologyPaths paths(*topology);
    paths.Domains();
  }
  return absl::OkStatus();
}

absl::Status GraphFile(absl::string_view bytes) { return ReadNcclGraphs(bytes, "graphs").status(); }

absl::Status Search(absl::string_view bytes) {
  const absl::StatusOr<SystemElement> system = ReadNcclTopology(bytes, "topology");
  if (!system.ok()) return system.status();
  for (int hosts : {1, 3}) {
    const absl::Status found = SearchGraphs(*system, hosts, kLatestNccl).status();
    if (!found.ok()) return found;
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<FuzzTarget> NcclTargets() {
  const std::vector<std::string> words = {"<gpu dev=\"1\" sm=\"90\" rank=\"1\"/>",
                                          "<nvlink target=\"0000:01:00.0\" count=\"2\"/>",
                                          "<c2c bw=\"1\" count=\"1\"/>",
                                          "<nic>",
                                          "<net/>",
                                          "<!DOCTYPE x [<!ENTITY a \"b\">]>",
                                          "<![CDATA[",
                                          "&lt;",
                                          "&#0;",
                                          "<?xml version=\"1.0\"?>",
                                          "<!--",
                                          "-->",
                                          "host_hash=\"0x7\"",
                                          "0000:fe:00.0",
                                          "0x068000",
                                          "0x068001",
                                          "0x030200",
                                          "sm=\"100\"",
                                          "keep=\"0\""};
  const std::vector<std::string> openers = {"<pci busid=\"0\">", "<a>", "<cpu numaid=\"1\">",
                                            "<pci busid=\"1\" class=\"0x060400\">", "<"};
  return {{"nccl_topology", TopologyFile, words, openers},
          {"nccl_search", Search, words, openers},
          {"nccl_graphs",
           GraphFile,
           {"<channel>", "<gpu dev=\"0\"/>", "<net dev=\"0\"/>", "id=\"1\"", "version=\"2\"",
            "pattern=\"5\"", "typeintra=\"NVL\"", "rank=\"7\"", "dev=\"1f\"", "<!--", "&lt;"},
           {"<graph>", "<channel>", "<", "<gpu dev=\"0\"/>"}}};
}

}  // namespace plancast
