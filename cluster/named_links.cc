#include "cluster/named_links.h"

#include <algorithm>

#include "base/check.h"

namespace plancast {

std::vector<std::string> LinkNames(const Machine& machine) {
  std::vector<std::string> names;
  for (const LinkClass& link : machine.link_classes()) {
    if (std::find(names.begin(), names.end(), link.name) == names.end()) names.push_back(link.name);
  }
  return names;
}

std::vector<int> LinkClassesNamed(const Machine& machine, absl::string_view name) {
  std::vector<int> classes;
  for (size_t i = 0; i < machine.link_classes().size(); ++i) {
    if (machine.link_classes()[i].name == name) classes.push_back(static_cast<int>(i));
  }
  return classes;
}

int64_t NumLinksNamed(const Machine& machine, absl::string_view name) {
  int64_t count = 0;
  for (const int link_class : LinkClassesNamed(machine, name)) {
    count += machine.NumLinkInstances(link_class);
  }
  return count;
}

LinkPlace FindLink(const Machine& machine, absl::string_view name, int64_t number) {
  for (const int link_class : LinkClassesNamed(machine, name)) {
    const int64_t count = machine.NumLinkInstances(link_class);
    if (number < count) return {link_class, number};
    number -= count;
  }
  PLANCAST_CHECK(false) << "there is no such " << name;
  return {};
}

int64_t LinkNumber(const Machine& machine, int link_class, int64_t instance) {
  for (const int before : LinkClassesNamed(machine, machine.link_classes()[link_class].name)) {
    if (before == link_class) break;
    instance += machine.NumLinkInstances(before);
  }
  return instance;
}

}  // namespace plancast
