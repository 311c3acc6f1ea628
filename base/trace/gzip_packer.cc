#include "base/trace/gzip_packer.h"

#include <zlib.h>

#include <string>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;
constexpr int kGzipWindow = 15 + 16;  // gzip's own header
constexpr int kMemoryLevel = 8;
constexpr int kLevel =
    1;  // events repeat themselves: the quickest level packs them 20 times already

}  // namespace

struct GzipPacker::Stream {
  z_stream z{};
  std::string out = std::string(kPieceBytes, '\0');

  ~Stream() { deflateEnd(&z); }
};

GzipPacker::GzipPacker(TakeBytes take)
    : take_(std::move(take)), stream_(std::make_unique<Stream>()) {
  const int result =
      deflateInit2(&stream_->z, kLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY);
  STEPWELL_CHECK(result == Z_OK);
}

GzipPacker::~GzipPacker() = default;

absl::Status GzipPacker::Feed(std::string_view bytes) { return Deflate(bytes, Z_NO_FLUSH); }

absl::Status GzipPacker::Finish() { return Deflate({}, Z_FINISH); }

absl::Status GzipPacker::Deflate(std::string_view bytes, int flush) {
  z_stream& z = stream_->z;
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  do {
    z.next_out = reinterpret_cast<Bytef*>(stream_->out.data());
    z.avail_out = static_cast<uInt>(stream_->out.size());
    deflate(&z, flush);
    const std::size_t count = stream_->out.size() - z.avail_out;
    if (count > 0) {
      STEPWELL_RETURN_IF_ERROR(take_(std::string_view(stream_->out.data(), count)));
    }
  } while (z.avail_out == 0);
  return absl::OkStatus();
}

}  // namespace stepwell
