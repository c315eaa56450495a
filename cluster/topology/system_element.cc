#include "cluster/topology/system_element.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace plancast {
namespace {

absl::Status NotA(const SystemElement& element, absl::string_view key, absl::string_view value,
                  absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(element.Place(), ": ", key, "=\"", value, "\" is ", what, "."));
}

bool ParseInteger(absl::string_view text, int64_t& value) {
  if (absl::SimpleAtoi(text, &value)) return true;
  absl::string_view digits = text;
  return absl::ConsumePrefix(&digits, "0x") && absl::SimpleHexAtoi(digits, &value);
}

}  // namespace

const std::string* SystemElement::Find(absl::string_view key) const {
  for (const auto& [name, value] : attributes) {
    if (name == key) return &value;
  }
  return nullptr;
}

void SystemElement::Set(absl::string_view key, absl::string_view value) {
  for (auto& [name, old] : attributes) {
    if (name == key) {
      old = std::string(value);
      return;
    }
  }
  attributes.emplace_back(key, value);
}

SystemElement& SystemElement::Add(absl::string_view child_name) {
  children.emplace_back();
  children.back().name = std::string(child_name);
  return children.back();
}

std::string SystemElement::Place() const {
  if (line == 0) return absl::StrCat("<", name, ">");
  return absl::StrCat("<", name, "> of line ", line);
}

absl::StatusOr<std::string> SystemElement::Text(absl::string_view key) const {
  if (const std::string* value = Find(key); value != nullptr) return *value;
  return absl::InvalidArgumentError(absl::StrCat(Place(), " has no `", key, "`."));
}

absl::StatusOr<int64_t> SystemElement::Integer(absl::string_view key) const {
  absl::StatusOr<std::string> text = Text(key);
  if (!text.ok()) return text.status();
  return Integer(key, 0);
}

absl::StatusOr<int64_t> SystemElement::Integer(absl::string_view key, int64_t fallback) const {
  const std::string* text = Find(key);
  if (text == nullptr) return fallback;
  int64_t value = 0;
  if (!ParseInteger(*text, value)) return NotA(*this, key, *text, "no whole number");
  return value;
}

absl::StatusOr<double> SystemElement::Number(absl::string_view key, double fallback) const {
  const std::string* text = Find(key);
  if (text == nullptr) return fallback;
  double value = 0;
  if (!absl::SimpleAtod(*text, &value) || !std::isfinite(value)) {
    return NotA(*this, key, *text, "no number");
  }
  return value;
}

bool operator==(const SystemElement& a, const SystemElement& b) {
  if (a.name != b.name || a.attributes.size() != b.attributes.size()) return false;
  auto sorted = [](const SystemElement& element) {
    auto attributes = element.attributes;
    std::sort(attributes.begin(), attributes.end());
    return attributes;
  };
  if (a.attributes != b.attributes && sorted(a) != sorted(b)) return false;
  return std::equal(a.children.begin(), a.children.end(), b.children.begin(), b.children.end());
}

}  // namespace plancast
