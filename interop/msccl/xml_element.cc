#include "interop/msccl/xml_element.h"

#include <algorithm>

#include "absl/strings/numbers.h"

namespace plancast {
namespace {

// A value as a message can show it.
std::string Shown(absl::string_view value) {
  constexpr size_t kLongest = 40;
  return value.size() > kLongest ? absl::StrCat(value.substr(0, kLongest), "...")
                                 : std::string(value);
}

}  // namespace

LineIndex::LineIndex(absl::string_view text) : starts_{0} {
  for (size_t i = text.find('\n'); i != absl::string_view::npos; i = text.find('\n', i + 1)) {
    starts_.push_back(static_cast<ptrdiff_t>(i) + 1);
  }
}

int32_t LineIndex::Line(ptrdiff_t offset) const {
  const auto after =
      std::upper_bound(starts_.begin(), starts_.end(), std::max<ptrdiff_t>(offset, 0));
  return static_cast<int32_t>(after - starts_.begin());
}

std::string XmlElement::Where() const {
  return absl::StrCat("line ", line(), ": ", place_, place_.empty() ? "" : ": ");
}

absl::StatusOr<std::string> XmlElement::Text(const char* attribute) const {
  const pugi::xml_attribute found = node_.attribute(attribute);
  if (!found) return Error("<", node_.name(), "> has no attribute `", attribute, "`.");
  return std::string(found.value());
}

absl::StatusOr<int64_t> XmlElement::Integer(const char* attribute, int64_t least,
                                            int64_t most) const {
  const absl::StatusOr<std::string> text = Text(attribute);
  if (!text.ok()) return text.status();
  int64_t value = 0;
  if (!absl::SimpleAtoi(*text, &value)) {
    return Error("`", attribute, "` is `", Shown(*text), "`, not an integer.");
  }
  if (value < least || value > most) {
    return Error("`", attribute, "` is ", value, "; from ", least, " to ", most, " is allowed.");
  }
  return value;
}

}  // namespace plancast
