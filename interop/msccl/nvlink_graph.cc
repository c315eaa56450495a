#include "interop/msccl/nvlink_graph.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/topology/system_element.h"
#include "interop/nccl/topology_xml.h"

namespace plancast {
namespace {

struct Gpu {
  std::string busid;  // of the device that holds it
  const SystemElement* element;
};

void FindGpus(const SystemElement& element, const std::string& busid, std::vector<Gpu>& out) {
  for (const SystemElement& child : element.children) {
    if (child.name == "gpu") {
      out.push_back({busid, &child});
    } else {
      const std::string* own = child.Find("busid");
      FindGpus(child, own == nullptr ? busid : absl::AsciiStrToLower(*own), out);
    }
  }
}

absl::StatusOr<LinkGraph> GraphOf(const SystemElement& system) {
  std::vector<Gpu> gpus;
  FindGpus(system, "", gpus);
  std::map<int64_t, const Gpu*> by_rank;
  for (const Gpu& gpu : gpus) {
    ASSIGN_OR_RETURN(const int64_t rank, gpu.element->Integer("rank", -1));
    if (rank >= 0 && !by_rank.emplace(rank, &gpu).second) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " is there twice."));
    }
  }
  std::map<std::string, int32_t> node_of;
  for (const auto& [rank, gpu] : by_rank) {
    node_of.emplace(gpu->busid, static_cast<int32_t>(node_of.size()));
  }
  if (node_of.size() != by_rank.size()) {
    return absl::InvalidArgumentError("several GPUs with a rank have one `busid`.");
  }
  std::vector<GraphLink> links;
  for (const auto& [rank, gpu] : by_rank) {
    for (const SystemElement& link : gpu->element->children) {
      if (link.name != "nvlink" && link.name != "xgmi") continue;
      const std::string* tclass = link.Find("tclass");
      if (tclass != nullptr && !absl::StartsWith(*tclass, "0x03")) {
        if (absl::StartsWith(*tclass, "0x068001")) continue;  // to the CPU
        return absl::InvalidArgumentError(absl::StrCat(
            link.Place(), ": GPU ", rank, " is linked to a switch, through which every GPU ",
            "reaches every other. For eight such GPUs search `full:8`."));
      }
      ASSIGN_OR_RETURN(const std::string target, link.Text("target"));
      const auto peer = node_of.find(absl::AsciiStrToLower(target));
      if (peer == node_of.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(link.Place(), ": no GPU with a rank is at `", target.substr(0, 40), "`."));
      }
      ASSIGN_OR_RETURN(const int64_t count, link.Integer("count", 1));
      if (count < 1 || count > 1024) {
        return absl::InvalidArgumentError(
            absl::StrCat(link.Place(), ": `count` is ", count, "; from 1 to 1024 is allowed."));
      }
      links.push_back({node_of.at(gpu->busid), peer->second, static_cast<int32_t>(count)});
    }
  }
  return LinkGraph::Create(static_cast<int32_t>(node_of.size()), std::move(links));
}

}  // namespace

absl::StatusOr<LinkGraph> ReadNvlinkGraph(absl::string_view text, absl::string_view what) {
  ASSIGN_OR_RETURN(const SystemElement system, ReadNcclTopology(text, what));
  absl::StatusOr<LinkGraph> graph = GraphOf(system);
  if (graph.ok()) return graph;
  return absl::InvalidArgumentError(absl::StrCat("`", what, "`: ", graph.status().message()));
}

}  // namespace plancast
