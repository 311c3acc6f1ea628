// GzipPacker: packs bytes as they come. Confined to one thread.
//
//   GzipPacker packer([&](std::string_view bytes) { return output.Write(bytes); });
//   STEPWELL_RETURN_IF_ERROR(packer.Feed(piece));  // ...
//   STEPWELL_RETURN_IF_ERROR(packer.Finish());
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "base/trace/trace_bytes.h"

namespace stepwell {

class GzipPacker {
 public:
  explicit GzipPacker(TakeBytes take);
  ~GzipPacker();
  GzipPacker(const GzipPacker&) = delete;
  GzipPacker& operator=(const GzipPacker&) = delete;

  // What `take` says.
  [[nodiscard]] absl::Status Feed(std::string_view bytes);
  // Once, at the end.
  [[nodiscard]] absl::Status Finish();

 private:
  struct Stream;

  [[nodiscard]] absl::Status Deflate(std::string_view bytes, int flush);

  const TakeBytes take_;
  const std::unique_ptr<Stream> stream_;
};

}  // namespace stepwell
