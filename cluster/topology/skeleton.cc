#include "cluster/topology/skeleton.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plancast {
namespace {

bool HasClass(const SystemElement& element, absl::string_view prefix) {
  if (element.name != "pci") return false;
  const std::string* pci_class = element.Find("class");
  return pci_class != nullptr && absl::StartsWith(*pci_class, prefix);
}

bool HasChild(const SystemElement& element, absl::string_view name) {
  return std::any_of(element.children.begin(), element.children.end(),
                     [&](const SystemElement& child) { return child.name == name; });
}

bool IsBareGpu(const SystemElement& element) {
  return (HasClass(element, "0x03") || HasClass(element, "0x12")) && !HasChild(element, "gpu");
}
bool IsBareNic(const SystemElement& element) {
  return HasClass(element, "0x02") && !HasChild(element, "nic");
}

struct Census {
  int gpus = 0, ranked = 0, bare_gpus = 0, linked = 0, nets = 0, bare_nics = 0;
};

Census Count(const SystemElement& system) {
  Census census;
  ForEachElement(system, [&](const SystemElement& element) {
    if (element.name == "gpu") {
      ++census.gpus;
      census.ranked += element.Has("rank");
      census.linked += HasChild(element, "nvlink") || HasChild(element, "xgmi");
    }
    census.nets += element.name == "net" && element.Has("dev");
    census.bare_gpus += IsBareGpu(element);
    census.bare_nics += IsBareNic(element);
  });
  return census;
}

}  // namespace

std::vector<std::string> WhatIsMissing(const SystemElement& system) {
  const Census census = Count(system);
  std::vector<std::string> missing;
  if (census.gpus == 0) {
    missing.push_back(
        census.bare_gpus == 0
            ? "No <gpu> elements, nor PCI devices that could be GPUs."
            : absl::StrCat("No <gpu> elements; ", census.bare_gpus, " PCI devices could be GPUs."));
  } else if (census.ranked == 0) {
    missing.push_back(absl::StrCat("None of ", census.gpus, " <gpu> elements has a rank."));
  }
  if (census.nets == 0 && census.bare_nics > 0) {
    missing.push_back(absl::StrCat("No <net> elements; ", census.bare_nics,
                                   " PCI devices could be network cards."));
  }
  return missing;
}

std::vector<std::string> Fill(const SkeletonFill& fill, SystemElement& system) {
  const Census before = Count(system);
  int gpus = before.gpus, nets = before.nets, linked = 0, rank = 0;
  const bool rank_all = before.ranked == 0;
  ForEachElement(system, [&](SystemElement& element) {
    if (fill.compute_capability.has_value() && IsBareGpu(element)) {
      SystemElement& gpu = element.Add("gpu");
      gpu.Set("dev", absl::StrCat(gpus++));
      gpu.Set("sm", absl::StrCat(*fill.compute_capability));
      gpu.Set("gdr", fill.gdr ? "1" : "0");
    }
    if (element.name == "gpu") {
      if (fill.compute_capability.has_value() && !element.Has("sm")) {
        element.Set("sm", absl::StrCat(*fill.compute_capability));
      }
      const bool filled = fill.compute_capability.has_value() && !element.Has("rank");
      if (filled && rank_all) element.Set("rank", absl::StrCat(rank++));
      if (fill.nvlinks > 0 && !HasChild(element, "nvlink") && !HasChild(element, "xgmi")) {
        SystemElement& nvlink = element.Add("nvlink");
        nvlink.Set("target", "fffffff:ff:ff.0");
        nvlink.Set("count", absl::StrCat(fill.nvlinks));
        nvlink.Set("tclass", "0x068000");
        ++linked;
      }
    }
    if (fill.net_mbit_per_s.has_value() && IsBareNic(element)) {
      SystemElement& net = element.Add("nic").Add("net");
      net.Set("name", absl::StrCat("mlx5_", nets));
      net.Set("dev", absl::StrCat(nets));
      net.Set("speed", absl::StrCat(*fill.net_mbit_per_s));
      net.Set("port", "1");
      net.Set("latency", "0");
      net.Set("guid", absl::StrFormat("0x%x", 0x1000 + nets));
      net.Set("maxconn", "131072");
      net.Set("gdr", fill.gdr ? "1" : "0");
      ++nets;
    }
  });
  std::vector<std::string> added;
  if (gpus > before.gpus) {
    added.push_back(
        absl::StrCat(gpus - before.gpus, " GPUs of compute capability ", *fill.compute_capability));
  }
  if (rank > 0 && gpus == before.gpus) added.push_back(absl::StrCat("ranks of ", rank, " GPUs"));
  if (linked > 0) {
    added.push_back(
        absl::StrCat(fill.nvlinks, " NVLinks to switches from each of ", linked, " GPUs"));
  }
  if (nets > before.nets) {
    added.push_back(absl::StrCat(nets - before.nets, " network devices of ",
                                 *fill.net_mbit_per_s / 1000.0, " Gbit/s"));
  }
  return added;
}

}  // namespace plancast
