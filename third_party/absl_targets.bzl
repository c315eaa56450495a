"""Canonical Abseil labels mapped to Debian's pkg-config modules."""

# "package:target" -> pkg-config module(s).
ABSL_TARGETS = {
    "absl/algorithm:container": "absl_algorithm_container",
    "absl/base": "absl_base",
    "absl/base:core_headers": "absl_core_headers",
    "absl/container:btree": "absl_btree",
    "absl/container:flat_hash_map": "absl_flat_hash_map",
    "absl/container:flat_hash_set": "absl_flat_hash_set",
    "absl/container:inlined_vector": "absl_inlined_vector",
    "absl/container:node_hash_map": "absl_node_hash_map",
    "absl/flags:flag": "absl_flags",
    "absl/flags:parse": "absl_flags_parse",
    "absl/flags:usage": "absl_flags_usage",
    "absl/hash": "absl_hash",
    "absl/numeric:int128": "absl_int128",
    "absl/status": "absl_status",
    "absl/status:statusor": "absl_statusor",
    "absl/strings": "absl_strings",
    "absl/strings:str_format": "absl_str_format",
    "absl/types:span": "absl_span",
}
