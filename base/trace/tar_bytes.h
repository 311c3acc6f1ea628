// TarBytes: what stands around the files of a tar archive (POSIX ustar), for those who stream one: a header before each,
// zeros behind it, and an end. Functions.
//
//   STEPWELL_ASSIGN_OR_RETURN(const std::string header, TarHeader("a.json", size));
//   take(header); take(bytes); take(TarPadding(size)); take(TarEnd());
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace stepwell {

inline constexpr std::size_t kTarNameBytesMax = 99;
// Of one file: what its eleven octal digits hold.
inline constexpr std::int64_t kTarFileBytesMax = (std::int64_t{1} << 33) - 1;

// kInvalidArgument: the name is empty or too long, or the file too large.
[[nodiscard]] absl::StatusOr<std::string> TarHeader(const std::string& name, std::int64_t size);
// Up to the next block of 512 bytes.
std::string TarPadding(std::int64_t size);
std::string TarEnd();

}  // namespace stepwell
