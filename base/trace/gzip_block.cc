#include "base/trace/gzip_block.h"

#include <zlib.h>

#include <algorithm>

#include "base/check.h"

namespace stepwell {
std::string PackedBlock(std::string_view bytes, int level) {
  std::string packed(compressBound(static_cast<uLong>(bytes.size())), '\0');
  uLongf size = static_cast<uLongf>(packed.size());
  const int result = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()),
                               static_cast<uLong>(bytes.size()), level);
  STEPWELL_CHECK(result == Z_OK);
  packed.resize(size);
  return packed;
}

std::optional<std::string> UnpackedBlock(std::string_view packed, std::size_t bytes_max) {
  z_stream z{};
  if (inflateInit(&z) != Z_OK) return std::nullopt;
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  z.avail_in = static_cast<uInt>(packed.size());
  std::string bytes;
  int result = Z_OK;
  // A block says at most a thousand times its bytes; most say ten times.
  while (result == Z_OK && bytes.size() < bytes_max) {
    const std::size_t had = bytes.size();
    bytes.resize(std::min(bytes_max, had + 16 * packed.size() + 4096));
    z.next_out = reinterpret_cast<Bytef*>(bytes.data() + had);
    z.avail_out = static_cast<uInt>(bytes.size() - had);
    result = inflate(&z, Z_NO_FLUSH);
    bytes.resize(bytes.size() - z.avail_out);
    if (z.avail_in == 0 && result == Z_OK && z.avail_out > 0) break;
  }
  inflateEnd(&z);
  if (result != Z_STREAM_END) return std::nullopt;
  return bytes;
}

}  // namespace stepwell
