#include "base/trace/gzip_unpacker.h"

#include <zlib.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;
constexpr int kGzipWindow = 15 + 16;  // gzip's own header, and no other
constexpr std::string_view kMagic = "\x1f\x8b";

}  // namespace

struct GzipUnpacker::Stream {
  z_stream z{};
  std::string out = std::string(kPieceBytes, '\0');

  ~Stream() { inflateEnd(&z); }
};

GzipUnpacker::GzipUnpacker(TakeBytes take, std::int64_t unpacked_max)
    : take_(std::move(take)), unpacked_max_(unpacked_max) {}

GzipUnpacker::~GzipUnpacker() = default;

absl::Status GzipUnpacker::Feed(std::string_view bytes) {
  if (bytes.empty()) return absl::OkStatus();
  if (kind_ == Kind::kUnknown) {
    // What earlier pieces held; the rest comes with `bytes`.
    const std::string held = begin_;
    begin_.append(bytes.substr(0, kMagic.size() - begin_.size()));
    if (begin_ != kMagic.substr(0, begin_.size())) {
      kind_ = Kind::kPlain;
    } else if (begin_.size() < kMagic.size()) {
      return absl::OkStatus();
    } else {
      kind_ = Kind::kGzip;
      stream_ = std::make_unique<Stream>();
      if (inflateInit2(&stream_->z, kGzipWindow) != Z_OK) {
        return absl::ResourceExhaustedError("no memory to unpack gzip");
      }
    }
    if (!held.empty()) {
      STEPWELL_RETURN_IF_ERROR(kind_ == Kind::kPlain ? take_(held) : Inflate(held));
    }
  }
  return kind_ == Kind::kPlain ? take_(bytes) : Inflate(bytes);
}

absl::Status GzipUnpacker::Inflate(std::string_view bytes) {
  z_stream& z = stream_->z;
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  while (true) {
    // Files that were packed apart may follow each other.
    if (is_member_whole_ && z.avail_in > 0) {
      is_member_whole_ = false;
      inflateReset(&z);
    }
    z.next_out = reinterpret_cast<Bytef*>(stream_->out.data());
    z.avail_out = static_cast<uInt>(stream_->out.size());
    const int result = inflate(&z, Z_NO_FLUSH);
    const std::size_t count = stream_->out.size() - z.avail_out;
    unpacked_ += static_cast<std::int64_t>(count);
    if (unpacked_ > unpacked_max_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("it unpacks to more than ", unpacked_max_, " bytes"));
    }
    if (count > 0) {
      STEPWELL_RETURN_IF_ERROR(take_(std::string_view(stream_->out.data(), count)));
    }
    if (result == Z_STREAM_END) {
      is_member_whole_ = true;
      if (z.avail_in == 0) return absl::OkStatus();
      continue;
    }
    if (result == Z_BUF_ERROR || (result == Z_OK && z.avail_in == 0 && z.avail_out > 0)) {
      return absl::OkStatus();
    }
    if (result != Z_OK) {
      return absl::InvalidArgumentError(
          absl::StrCat("damaged gzip after ", unpacked_,
                       " unpacked bytes: ", z.msg != nullptr ? z.msg : "wrong format"));
    }
  }
}

}  // namespace stepwell
