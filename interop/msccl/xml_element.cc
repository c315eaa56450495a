#include "interop/msccl/xml_element.h"

#include <algorithm>

#include "absl/strings/numbers.h"

namespace plancast {
namespace {

constexpr size_t kStride = 1024;  // bytes

int32_t LineEnds(absl::string_view text) {
  return static_cast<int32_t>(std::count(text.begin(), text.end(), '\n'));
}

// A value as a message can show it.
std::string Shown(absl::string_view value) {
  constexpr size_t kLongest = 40;
  return value.size() > kLongest ? absl::StrCat(value.substr(0, kLongest), "...")
                                 : std::string(value);
}

}  // namespace

LineIndex::LineIndex(absl::string_view text) : text_(text), before_{0} {
  for (size_t start = 0; start + kStride <= text.size(); start += kStride) {
    before_.push_back(before_.back() + LineEnds(text.substr(start, kStride)));
  }
}

int32_t LineIndex::Line(ptrdiff_t offset) const {
  const size_t at = std::min(static_cast<size_t>(std::max<ptrdiff_t>(offset, 0)), text_.size());
  const size_t start = at / kStride * kStride;
  return 1 + before_[at / kStride] + LineEnds(text_.substr(start, at - start));
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
