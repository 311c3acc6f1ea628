#include "base/trace/tar_bytes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stepwell {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kChecksumAt = 148;
constexpr std::size_t kChecksumBytes = 8;

void Put(std::size_t at, const std::string& text, std::string& block) {
  block.replace(at, text.size(), text);
}

}  // namespace

absl::StatusOr<std::string> TarHeader(const std::string& name, std::int64_t size) {
  if (name.empty() || name.size() > kTarNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a name in an archive is '", name, "'; allowed: 1 to ", kTarNameBytesMax, " bytes"));
  }
  if (size < 0 || size > kTarFileBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " has ", size, " bytes; allowed in an archive: up to ", kTarFileBytesMax));
  }
  std::string block(kBlock, '\0');
  Put(0, name, block);
  Put(100, "0000644", block);
  Put(108, "0000000", block);  // nobody's
  Put(116, "0000000", block);
  Put(124, absl::StrFormat("%011o", size), block);
  Put(136, "00000000000", block);  // of no time: the same files give the same archive
  Put(kChecksumAt, std::string(kChecksumBytes, ' '), block);
  Put(156, "0", block);  // a plain file
  Put(257,
      std::string("ustar\0"
                  "00",
                  8),
      block);
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  Put(kChecksumAt, absl::StrFormat("%06o", sum) + std::string("\0 ", 2), block);
  return block;
}

std::string TarPadding(std::int64_t size) {
  const std::size_t behind = static_cast<std::size_t>(size) % kBlock;
  return std::string(behind == 0 ? 0 : kBlock - behind, '\0');
}

std::string TarEnd() { return std::string(2 * kBlock, '\0'); }

}  // namespace stepwell
