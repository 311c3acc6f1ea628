#include "server/http/request_parts.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// As protobuf's own parser allows.
constexpr int kDepthMax = 100;

absl::Status TooMany(std::size_t parts_max) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the request has more than ", parts_max, " parts (messages, texts, elements)"));
}

class PartCount {
 public:
  PartCount(std::string_view bytes, std::size_t parts_max)
      : in_(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size())),
        parts_max_(parts_max) {}

  enum class End { kWhole, kMalformed, kTooMany };

  End Message(const Descriptor& message, int depth) {
    if (depth > kDepthMax) return End::kMalformed;
    while (const std::uint32_t tag = in_.ReadTag()) {
      const FieldDescriptor* field =
          message.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      const End end =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED
              ? Delimited(field, depth)
              : Plain(field, tag);
      if (end != End::kWhole) return end;
    }
    return in_.ConsumedEntireMessage() ? End::kWhole : End::kMalformed;
  }

 private:
  bool IsOneTooMany() { return ++parts_ > parts_max_; }

  End Plain(const FieldDescriptor* field, std::uint32_t tag) {
    if (field == nullptr && IsOneTooMany()) return End::kTooMany;
    // Of a group, which proto3 has none of, all fields are read as if they were the message's own: they count all the same.
    const auto type = WireFormatLite::GetTagWireType(tag);
    if (type == WireFormatLite::WIRETYPE_START_GROUP ||
        type == WireFormatLite::WIRETYPE_END_GROUP) {
      return End::kWhole;
    }
    return WireFormatLite::SkipField(&in_, tag) ? End::kWhole : End::kMalformed;
  }

  End Delimited(const FieldDescriptor* field, int depth) {
    const bool is_packed = field != nullptr && field->is_packable();
    if (!is_packed && IsOneTooMany()) return End::kTooMany;
    std::uint32_t bytes = 0;
    if (!in_.ReadVarint32(&bytes)) return End::kMalformed;
    if (field == nullptr || field->message_type() == nullptr) {
      return in_.Skip(static_cast<int>(bytes)) ? End::kWhole : End::kMalformed;
    }
    if (static_cast<std::int64_t>(bytes) > in_.BytesUntilLimit() && in_.BytesUntilLimit() >= 0) {
      return End::kMalformed;
    }
    const auto limit = in_.PushLimit(static_cast<int>(bytes));
    const End end = Message(*field->message_type(), depth + 1);
    const bool is_whole = in_.BytesUntilLimit() == 0;
    in_.PopLimit(limit);
    if (end == End::kWhole && !is_whole) return End::kMalformed;
    return end;
  }

  google::protobuf::io::CodedInputStream in_;
  const std::size_t parts_max_;
  std::size_t parts_ = 0;
};

}  // namespace

absl::Status CheckParts(const Descriptor& message, std::string_view bytes_untrusted,
                        std::size_t parts_max) {
  switch (PartCount(bytes_untrusted, parts_max).Message(message, 1)) {
    case PartCount::End::kWhole:
      return absl::OkStatus();
    case PartCount::End::kTooMany:
      return TooMany(parts_max);
    case PartCount::End::kMalformed:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat("the body is no ", message.name()));
}

absl::Status CheckJsonParts(std::string_view json_untrusted, std::size_t parts_max) {
  std::size_t parts = 0;
  bool is_text = false;
  for (std::size_t i = 0; i < json_untrusted.size(); ++i) {
    const char c = json_untrusted[i];
    if (is_text && c == '\\') {
      ++i;
    } else if (c == '"') {
      is_text = !is_text;
    } else if (!is_text && (c == '{' || c == '[' || c == ',')) {
      if (++parts > parts_max) return TooMany(parts_max);
    }
  }
  return absl::OkStatus();
}

}  // namespace stepwell
