#include "strategy/profile/op_profile.h"

#include "absl/strings/match.h"

namespace plancast {

bool HostCallsOfOps::Captures(absl::string_view op, bool* begins) const {
  for (const std::string& scope : captured) {
    const auto found = scopes.find(scope);
    if (found == scopes.end()) continue;
    for (const std::string& name : found->second) {
      const bool prefix = absl::EndsWith(name, ".");
      if (prefix ? !absl::StartsWith(op, name) : op != name) continue;
      *begins = &name == &found->second.front() && !prefix;
      return true;
    }
  }
  return false;
}

}  // namespace plancast
