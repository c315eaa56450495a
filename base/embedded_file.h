#ifndef PLANCAST_BASE_EMBEDDED_FILE_H_
#define PLANCAST_BASE_EMBEDDED_FILE_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plancast {

// A data file compiled into the program by embed_text (tools/embed.bzl).
struct EmbeddedFile {
  absl::string_view path;  // relative to the folder of its BUILD file
  absl::string_view contents;

  // The file's name without folder and extension: "presets/a100.textproto" ->
  // "a100".
  absl::string_view stem() const {
    absl::string_view name = path;
    if (auto slash = name.rfind('/'); slash != absl::string_view::npos) {
      name.remove_prefix(slash + 1);
    }
    return name.substr(0, name.rfind('.'));
  }
};

// The file whose stem is `stem`, or nullptr.
inline const EmbeddedFile* FindByStem(absl::Span<const EmbeddedFile> files,
                                      absl::string_view stem) {
  for (const EmbeddedFile& file : files) {
    if (file.stem() == stem) return &file;
  }
  return nullptr;
}

}  // namespace plancast

#endif  // PLANCAST_BASE_EMBEDDED_FILE_H_
