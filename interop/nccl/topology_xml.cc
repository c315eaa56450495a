#include "interop/nccl/topology_xml.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "interop/nccl/xml_document.h"

namespace plancast {
namespace {

struct Rule {
  absl::string_view name;
  std::vector<absl::string_view> children;
};

const std::vector<Rule>& Rules() {
  static const auto& rules = *new std::vector<Rule>{
      {"system", {"cpu"}},
      {"cpu", {"pci", "nic"}},
      {"pci", {"pci", "gpu", "nic", "pcilink"}},
      {"gpu", {"nvlink", "xgmi", "c2c"}},
      {"nic", {"net", "gin"}},
      {"net", {}},
      {"gin", {}},
      {"nvlink", {}},
      {"xgmi", {}},
      {"c2c", {}},
      {"pcilink", {}},
  };
  return rules;
}

absl::Status CheckElement(const SystemElement& element, absl::string_view what) {
  const auto rule = std::find_if(Rules().begin(), Rules().end(), [&](const Rule& candidate) {
    return candidate.name == element.name;
  });
  for (const SystemElement& child : element.children) {
    if (std::find(rule->children.begin(), rule->children.end(), child.name) ==
        rule->children.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", what, "`: ", child.Place(), " in a <", element.name, ">, which holds ",
                       rule->children.empty() ? "nothing" : JoinQuoted(rule->children), ".",
                       DidYouMean(child.name, rule->children)));
    }
    RETURN_IF_ERROR(CheckElement(child, what));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SystemElement> ReadNcclTopology(absl::string_view text, absl::string_view what) {
  ASSIGN_OR_RETURN(SystemElement system, ReadXml(text, what, "system"));
  RETURN_IF_ERROR(CheckElement(system, what));
  return system;
}

std::string WriteNcclTopology(const SystemElement& system) { return WriteXml(system); }

}  // namespace plancast
