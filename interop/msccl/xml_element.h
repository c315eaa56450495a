#ifndef PLANCAST_INTEROP_MSCCL_XML_ELEMENT_H_
#define PLANCAST_INTEROP_MSCCL_XML_ELEMENT_H_

#include <cstdint>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace plancast {

// The lines of a text, which has to outlive it.
class LineIndex {
 public:
  explicit LineIndex(absl::string_view text);
  int32_t Line(ptrdiff_t offset) const;  // from 1

 private:
  absl::string_view text_;
  std::vector<int32_t> before_;  // line ends before every so many bytes
};

// An element of a parsed document that knows its place, and so names it.
class XmlElement {
 public:
  XmlElement(pugi::xml_node node, const LineIndex* lines, std::string place)
      : node_(node), lines_(lines), place_(std::move(place)) {}

  const pugi::xml_node& node() const { return node_; }
  int32_t line() const { return lines_->Line(node_.offset_debug()); }
  // "line 12: gpu 0, thread block 3: ".
  std::string Where() const;
  void set_place(std::string place) { place_ = std::move(place); }
  const std::string& place() const { return place_; }
  XmlElement Child(pugi::xml_node node) const { return {node, lines_, place_}; }

  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(Where(), parts...));
  }

  bool Has(const char* attribute) const { return node_.attribute(attribute); }
  // An attribute that must be there.
  absl::StatusOr<std::string> Text(const char* attribute) const;
  absl::StatusOr<int64_t> Integer(const char* attribute, int64_t least, int64_t most) const;

 private:
  pugi::xml_node node_;
  const LineIndex* lines_;
  std::string place_;
};

}  // namespace plancast

#endif  // PLANCAST_INTEROP_MSCCL_XML_ELEMENT_H_
