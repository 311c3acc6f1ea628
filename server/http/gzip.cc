#include "server/http/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace stepwell {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's largest window, in a frame of gzip
constexpr int kMemoryLevel = 8;       // zlib's own default
constexpr std::size_t kStepBytes = 64 << 10;

Bytef* In(std::string_view text) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
}

}  // namespace

std::string Gzip(std::string_view plain) {
  z_stream stream{};
  STEPWELL_CHECK(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                              Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, plain.size()), '\0');
  stream.next_in = In(plain);
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int end = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  STEPWELL_CHECK(end == Z_STREAM_END);
  return packed;
}

absl::StatusOr<std::string> Gunzip(std::string_view packed_untrusted, std::size_t plain_bytes_max) {
  z_stream stream{};
  STEPWELL_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK);
  stream.next_in = In(packed_untrusted);
  stream.avail_in = static_cast<uInt>(packed_untrusted.size());
  std::string plain;
  int state = Z_OK;
  while (state == Z_OK && plain.size() <= plain_bytes_max) {
    const std::size_t had = plain.size();
    // One byte beyond what is allowed tells that there is more.
    plain.resize(std::min(had + kStepBytes, plain_bytes_max + 1));
    stream.next_out = reinterpret_cast<Bytef*>(plain.data() + had);
    stream.avail_out = static_cast<uInt>(plain.size() - had);
    state = inflate(&stream, Z_NO_FLUSH);
    plain.resize(plain.size() - stream.avail_out);
  }
  const bool is_whole = state == Z_STREAM_END && stream.avail_in == 0;
  inflateEnd(&stream);
  if (plain.size() > plain_bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", plain_bytes_max, " bytes come out of gzip"));
  }
  if (!is_whole) return absl::InvalidArgumentError("the gzip is damaged or cut off");
  return plain;
}

}  // namespace stepwell
