#ifndef PLANCAST_TESTS_INTEROP_CHAKRA_ET_BUILDER_H_
#define PLANCAST_TESTS_INTEROP_CHAKRA_ET_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "interop/chakra/et_file.h"

namespace plancast {

inline void SetInt(chakra::Node& node, const std::string& name, int64_t value) {
  chakra::AttributeProto* attr = node.add_attr();
  attr->set_name(name);
  attr->set_int64_val(value);
}

inline chakra::Node EtNode(uint64_t id, chakra::NodeType type,
                           const std::vector<uint64_t>& deps = {}) {
  chakra::Node node;
  node.set_id(id);
  node.set_name("node");
  node.set_type(type);
  for (const uint64_t dep : deps) node.add_data_deps(dep);
  return node;
}

inline chakra::Node EtKernel(uint64_t id, uint64_t us, const std::vector<uint64_t>& deps = {}) {
  chakra::Node node = EtNode(id, chakra::COMP_NODE, deps);
  node.set_duration_micros(us);
  return node;
}

inline chakra::Node EtCollective(uint64_t id, chakra::CollectiveCommType type, int64_t bytes,
                                 const std::vector<uint64_t>& deps = {},
                                 const std::string& group = "") {
  chakra::Node node = EtNode(id, chakra::COMM_COLL_NODE, deps);
  SetInt(node, "comm_type", type);
  SetInt(node, "comm_size", bytes);
  if (!group.empty()) {
    chakra::AttributeProto* attr = node.add_attr();
    attr->set_name("pg_name");
    attr->set_string_val(group);
  }
  return node;
}

inline chakra::Node EtMessage(uint64_t id, bool send, int64_t peer, int64_t tag, int64_t bytes,
                              const std::vector<uint64_t>& deps = {}) {
  chakra::Node node = EtNode(id, send ? chakra::COMM_SEND_NODE : chakra::COMM_RECV_NODE, deps);
  SetInt(node, send ? "comm_dst" : "comm_src", peer);
  SetInt(node, "comm_tag", tag);
  SetInt(node, "comm_size", bytes);
  return node;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_INTEROP_CHAKRA_ET_BUILDER_H_
