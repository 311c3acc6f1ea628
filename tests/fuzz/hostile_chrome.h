// HostileChrome: any bytes as a trace of Chrome's form, and as gzip that holds one, and what holds of each whatever they are: it
// is read the same however it is cut into pieces, within its bounds; what is JSON gives the events that a JSON parser
// finds; what was packed comes out as it was; two are merged as HostileMerge says. Header only; pure.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/trace/gzip_unpacker.h"
#include "base/trace/trace_splitter.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/hostile_bytes.h"
#include "tests/fuzz/hostile_merge.h"

namespace stepwell::testing {

// The first byte of an input, in seeds a digit.
enum class HostileChromeKind : std::uint8_t { kTrace, kGzip, kPacked, kMerge };
inline constexpr std::uint8_t kHostileChromeKinds = 4;

inline std::size_t DepthOf(std::string_view json) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool is_in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (is_in_string && c == '\\') {
      ++at;
    } else if (c == '"') {
      is_in_string = !is_in_string;
    } else if (!is_in_string && (c == '{' || c == '[')) {
      deepest = std::max(deepest, ++depth);
    } else if (!is_in_string && (c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

struct SplitChrome {
  absl::Status status;
  std::vector<std::string> events;
  std::vector<std::string> members;  // names and values in turn
  std::int64_t passed_over = 0;
  bool is_array = false;
  bool is_cut = false;
  friend bool operator==(const SplitChrome&, const SplitChrome&) = default;
};

inline SplitChrome SplitInPieces(std::string_view bytes, std::size_t piece) {
  SplitChrome split;
  const auto byte_count = static_cast<std::int64_t>(bytes.size());
  TraceSplitter splitter({.event =
                              [&](std::string_view json) {
                                split.events.emplace_back(json);
                                return absl::OkStatus();
                              },
                          .member =
                              [&](std::string_view name, std::string_view json) {
                                split.members.emplace_back(name);
                                split.members.emplace_back(json);
                                return absl::OkStatus();
                              }});
  while (split.status.ok() && !bytes.empty()) {
    const std::string_view next = bytes.substr(0, std::min(piece, bytes.size()));
    bytes.remove_prefix(next.size());
    split.status = splitter.Feed(next);
  }
  if (!split.status.ok()) {
    STEPWELL_CHECK(absl::IsInvalidArgument(split.status) && !split.status.message().empty());
    return split;
  }
  const auto form = splitter.Finish();
  split.status = form.status();
  if (!form.ok()) return split;
  STEPWELL_CHECK(form->event_count == static_cast<std::int64_t>(split.events.size()));
  STEPWELL_CHECK(form->byte_count == byte_count && form->passed_over >= 0);
  STEPWELL_CHECK(form->event_count + form->passed_over <= byte_count);
  split.passed_over = form->passed_over;
  split.is_array = form->is_array;
  split.is_cut = form->is_cut;
  return split;
}

// Where a parser takes the whole, the list is the one that it finds.
inline void CheckAgainstParser(std::string_view bytes, const SplitChrome& split) {
  using Json = nlohmann::json;
  // Names written otherwise, and those that are there twice, are read otherwise; a NUL is an end to the parser.
  constexpr std::string_view kList = "\"traceEvents\"";
  const bool is_plain = bytes.find('\\') == bytes.npos && bytes.find('\0') == bytes.npos &&
                        bytes.find(kList) == bytes.rfind(kList) &&
                        DepthOf(bytes) <= static_cast<std::size_t>(TraceSplitter::kDepthMax);
  if (!is_plain) return;
  const Json document = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
  const bool is_list = document.is_array();
  if (!is_list && !(document.is_object() && document.contains("traceEvents"))) return;
  const Json& list = is_list ? document : document["traceEvents"];
  if (!list.is_array()) return;
  STEPWELL_CHECK(split.status.ok() && !split.is_cut && split.is_array == is_list);
  std::size_t at = 0;
  for (const Json& element : list) {
    if (!element.is_object()) continue;
    STEPWELL_CHECK(at < split.events.size());
    STEPWELL_CHECK(Json::parse(split.events[at++], nullptr, false) == element);
  }
  STEPWELL_CHECK(at == split.events.size());
  STEPWELL_CHECK(is_list || split.members.size() / 2 + 1 >= document.size());
}

inline void ReadHostileChromeTrace(std::string_view bytes) {
  const SplitChrome whole = SplitInPieces(bytes, bytes.size() + 1);
  for (const std::size_t piece : {std::size_t{1}, 1 + bytes.size() / 7}) {
    STEPWELL_CHECK(SplitInPieces(bytes, piece) == whole);
  }
  // Each is a piece of what was read, and they follow each other.
  std::size_t begin = 0;
  for (const std::string& event : whole.events) {
    STEPWELL_CHECK(event.size() >= 2 && event.front() == '{');
    STEPWELL_CHECK(event.size() <= TraceSplitter::kEventBytesMax);
    STEPWELL_CHECK(DepthOf(event) <= static_cast<std::size_t>(TraceSplitter::kDepthMax));
    const std::size_t place = bytes.find(event, begin);
    STEPWELL_CHECK(place != bytes.npos);
    begin = place + event.size();
  }
  CheckAgainstParser(bytes, whole);
}

struct Unpacked {
  absl::Status status;
  std::string bytes;
  bool is_whole = false;
  friend bool operator==(const Unpacked&, const Unpacked&) = default;
};
inline constexpr std::int64_t kHostileUnpackedMax = 256 << 10;

inline Unpacked UnpackInPieces(std::string_view packed, std::size_t piece) {
  Unpacked unpacked;
  GzipUnpacker unpacker(
      [&](std::string_view bytes) {
        unpacked.bytes += bytes;
        return absl::OkStatus();
      },
      kHostileUnpackedMax);
  while (unpacked.status.ok() && !packed.empty()) {
    const std::string_view next = packed.substr(0, std::min(piece, packed.size()));
    packed.remove_prefix(next.size());
    unpacked.status = unpacker.Feed(next);
  }
  unpacked.is_whole = unpacker.at_end();
  return unpacked;
}

inline void ReadHostileGzip(std::string_view bytes) {
  const Unpacked whole = UnpackInPieces(bytes, bytes.size() + 1);
  const bool is_gzip = bytes.substr(0, 2) == "\x1f\x8b";
  if (is_gzip) {
    STEPWELL_CHECK(static_cast<std::int64_t>(whole.bytes.size()) <= kHostileUnpackedMax);
    STEPWELL_CHECK(whole.status.ok() || absl::IsInvalidArgument(whole.status) ||
                   absl::IsResourceExhausted(whole.status));
  } else {
    // A byte alone may be the first of gzip.
    STEPWELL_CHECK(whole.status.ok() && whole.is_whole);
    STEPWELL_CHECK(whole.bytes == (bytes == "\x1f" ? "" : bytes));
  }
  for (const std::size_t piece : {std::size_t{1}, 1 + bytes.size() / 7}) {
    const Unpacked cut = UnpackInPieces(bytes, piece);
    STEPWELL_CHECK(cut.status.code() == whole.status.code());
    // Where the bound is met the last piece that is over it is not handed on, and pieces differ.
    if (absl::IsResourceExhausted(whole.status)) continue;
    STEPWELL_CHECK(cut == whole);
  }
}

// As members of `piece` bytes each, which is one where that is not below what there is.
inline std::string PackedInMembers(std::string_view plain, std::size_t piece) {
  std::string packed;
  do {
    const std::string_view next = plain.substr(0, std::min(piece, plain.size()));
    plain.remove_prefix(next.size());
    z_stream z{};
    STEPWELL_CHECK(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    std::string member(deflateBound(&z, next.size()), '\0');
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next.data()));
    z.avail_in = static_cast<uInt>(next.size());
    z.next_out = reinterpret_cast<Bytef*>(member.data());
    z.avail_out = static_cast<uInt>(member.size());
    STEPWELL_CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    member.resize(member.size() - z.avail_out);
    deflateEnd(&z);
    packed += member;
  } while (!plain.empty());
  return packed;
}

inline void PackHostile(HostileBytes& input) {
  const std::size_t piece = 1 + input.Take<std::uint8_t>() * std::size_t{16};
  const std::size_t cut = 1 + input.Take<std::uint8_t>();
  const std::string_view plain = input.rest().substr(0, 64 << 10);
  const std::string packed = PackedInMembers(plain, std::max(piece, plain.size() / 16));
  const Unpacked unpacked = UnpackInPieces(packed, cut);
  STEPWELL_CHECK(unpacked.status.ok() && unpacked.is_whole && unpacked.bytes == plain);
  // Cut short it is no less than what was readable, and known to be cut.
  const Unpacked some = UnpackInPieces(std::string_view(packed).substr(0, packed.size() - 1), cut);
  STEPWELL_CHECK(some.status.ok() && !some.is_whole);
  STEPWELL_CHECK(plain.substr(0, some.bytes.size()) == some.bytes);
}

// Between the traces of two ranks; no JSON holds it as it is. Of one trace both have the same.
inline constexpr char kBetweenTraces = '\x1e';

inline void MergeHostile(HostileBytes& input) {
  const std::string_view first = input.TakeUntil(kBetweenTraces);
  MergeHostileTraces({first, input.at_end() ? first : input.rest()});
}

inline void ReadHostileChrome(std::string_view bytes) {
  HostileBytes input(bytes);
  switch (HostileChromeKind{
      static_cast<std::uint8_t>(input.Take<std::uint8_t>() % kHostileChromeKinds)}) {
    case HostileChromeKind::kTrace:
      return ReadHostileChromeTrace(input.rest());
    case HostileChromeKind::kGzip:
      return ReadHostileGzip(input.rest());
    case HostileChromeKind::kPacked:
      return PackHostile(input);
    case HostileChromeKind::kMerge:
      return MergeHostile(input);
  }
}

}  // namespace stepwell::testing
