// GzipUnpacker: unpacks what is gzip and hands on what is not, as it comes. Confined to one thread.
//
//   GzipUnpacker unpacker([&](std::string_view bytes) { return splitter.Feed(bytes); });
//   STEPWELL_RETURN_IF_ERROR(unpacker.Feed(piece));  // ...
//   if (!unpacker.at_end()) // cut short: all that was readable has been handed on
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/trace/trace_bytes.h"

namespace stepwell {

class GzipUnpacker {
 public:
  // More than this is refused: a kilobyte of gzip can say a megabyte.
  static constexpr std::int64_t kUnpackedMax = std::int64_t{64} << 30;

  explicit GzipUnpacker(TakeBytes take, std::int64_t unpacked_max = kUnpackedMax);
  ~GzipUnpacker();
  GzipUnpacker(const GzipUnpacker&) = delete;
  GzipUnpacker& operator=(const GzipUnpacker&) = delete;

  // kInvalidArgument: damaged gzip. kResourceExhausted: it unpacks to more than the bound. What came before
  // has been handed on in both cases.
  [[nodiscard]] absl::Status Feed(std::string_view bytes);
  // Whether what came so far is whole, as far as gzip can tell.
  bool at_end() const { return kind_ != Kind::kGzip || is_member_whole_; }

 private:
  enum class Kind { kUnknown, kPlain, kGzip };
  struct Stream;

  [[nodiscard]] absl::Status Inflate(std::string_view bytes);

  const TakeBytes take_;
  const std::int64_t unpacked_max_;
  Kind kind_ = Kind::kUnknown;
  std::string begin_;  // the first byte, until the second tells what it is
  std::unique_ptr<Stream> stream_;
  std::int64_t unpacked_ = 0;
  bool is_member_whole_ = false;
};

}  // namespace stepwell
