#include "interop/chakra/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace plancast {
namespace {

constexpr int kGzipWindow = 15 + 16;

Bytef* Bytes(absl::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // NOLINT: zlib's signature
}

// Ends inflation however the function is left.
struct Inflation {
  z_stream stream = {};
  ~Inflation() { inflateEnd(&stream); }
};

}  // namespace

bool IsGzip(absl::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

absl::StatusOr<std::string> Gunzip(absl::string_view bytes, absl::string_view what,
                                   size_t most_bytes) {
  std::string contents;
  std::vector<char> block(size_t{1} << 16);
  size_t at = 0;
  while (at < bytes.size()) {
    Inflation inflation;
    z_stream& stream = inflation.stream;
    PLANCAST_CHECK_EQ(inflateInit2(&stream, kGzipWindow), Z_OK);
    int state = Z_OK;
    while (state == Z_OK) {
      const size_t left = bytes.size() - at;
      stream.next_in = Bytes(bytes.substr(at));
      stream.avail_in = static_cast<uInt>(std::min<size_t>(left, 1 << 30));
      stream.next_out = reinterpret_cast<Bytef*>(block.data());
      stream.avail_out = static_cast<uInt>(block.size());
      const uInt before = stream.avail_in;
      state = inflate(&stream, Z_NO_FLUSH);
      at += before - stream.avail_in;
      contents.append(block.data(), block.size() - stream.avail_out);
      if (contents.size() > most_bytes) {
        return absl::InvalidArgumentError(
            absl::StrCat(what, " unpacks to more than ", most_bytes, " bytes, which is the limit"));
      }
      if (state != Z_STREAM_END && at == bytes.size() && stream.avail_out > 0) break;
    }
    if (state != Z_STREAM_END) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " is not whole as gzip: byte ", at,
                       at == bytes.size() ? " is its end" : " fits no member",
                       ". Write it again, or unpack what there is with gzip -d."));
    }
  }
  return contents;
}

std::string Gzip(absl::string_view contents) {
  z_stream stream = {};
  PLANCAST_CHECK_EQ(
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY),
      Z_OK);
  std::string packed(deflateBound(&stream, contents.size()) + 64, '\0');
  stream.next_in = Bytes(contents);
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = Bytes(packed);
  stream.avail_out = static_cast<uInt>(packed.size());
  PLANCAST_CHECK_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace plancast
