#include "proto/request_bound.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/common.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::ZeroCopyInputStream;

// As protobuf's own parser allows.
constexpr int kDepthMax = 100;

class BuiltBytes {
 public:
  BuiltBytes(ZeroCopyInputStream& bytes, std::size_t most) : in_(&bytes), most_(most) {}

  enum class End { kWhole, kMalformed, kTooMuch, kNoText };

  End Message(const Descriptor& message, int depth) {
    if (depth > kDepthMax) return End::kMalformed;
    while (const std::uint32_t tag = in_.ReadTag()) {
      const FieldDescriptor* field =
          message.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      const bool is_delimited =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      const End end = is_delimited ? Delimited(field, depth) : Plain(field, tag);
      if (end != End::kWhole) return end;
    }
    return in_.ConsumedEntireMessage() ? End::kWhole : End::kMalformed;
  }
  // Of kNoText: which field.
  const std::string& bad_text() const { return bad_text_; }

  std::size_t built() const { return built_; }

 private:
  static std::size_t CostOf(const FieldDescriptor* field) {
    if (field == nullptr) return kUnknownBuiltBytes;
    if (field->is_map()) return kLabelBuiltBytes;
    if (field->message_type() != nullptr) return kMessageBuiltBytes;
    return field->is_packable() ? 0 : kTextBuiltBytes;
  }
  static bool IsWrittenAs(const FieldDescriptor* field, WireFormatLite::WireType type) {
    if (field == nullptr) return false;
    return type == WireFormatLite::WireTypeForFieldType(
                       static_cast<WireFormatLite::FieldType>(field->type()));
  }
  bool IsTooMuch(std::size_t more) { return (built_ += more) > most_; }

  End Plain(const FieldDescriptor* field, std::uint32_t tag) {
    // Of a group, which proto3 has none of, all fields are read as if they were the message's own: they count all the same.
    const auto type = WireFormatLite::GetTagWireType(tag);
    if (type == WireFormatLite::WIRETYPE_END_GROUP) return End::kWhole;
    // What is not as its field is written is kept as a stranger's, whatever its number.
    if (!IsWrittenAs(field, type) && IsTooMuch(kUnknownBuiltBytes)) return End::kTooMuch;
    if (type == WireFormatLite::WIRETYPE_START_GROUP) return End::kWhole;
    return WireFormatLite::SkipField(&in_, tag) ? End::kWhole : End::kMalformed;
  }

  End Delimited(const FieldDescriptor* field, int depth) {
    if (IsTooMuch(CostOf(field))) return End::kTooMuch;
    std::uint32_t bytes = 0;
    if (!in_.ReadVarint32(&bytes)) return End::kMalformed;
    if (field != nullptr && field->type() == FieldDescriptor::TYPE_STRING) {
      return Text(*field, bytes);
    }
    if (field == nullptr || field->message_type() == nullptr) {
      return in_.Skip(static_cast<int>(bytes)) ? End::kWhole : End::kMalformed;
    }
    if (in_.BytesUntilLimit() >= 0 && std::int64_t{bytes} > in_.BytesUntilLimit()) {
      return End::kMalformed;
    }
    const auto limit = in_.PushLimit(static_cast<int>(bytes));
    const End end = Message(*field->message_type(), depth + 1);
    const bool is_whole = in_.BytesUntilLimit() == 0;
    in_.PopLimit(limit);
    return end == End::kWhole && !is_whole ? End::kMalformed : end;
  }

  // protobuf would only say that the message is none.
  End Text(const FieldDescriptor& field, std::uint32_t bytes) {
    if (!in_.ReadString(&text_, static_cast<int>(bytes))) return End::kMalformed;
    const bool is_text = google::protobuf::internal::IsStructurallyValidUTF8(text_);
    if (!is_text) bad_text_ = field.full_name();
    return is_text ? End::kWhole : End::kNoText;
  }

  google::protobuf::io::CodedInputStream in_;
  const std::size_t most_;
  std::size_t built_ = 0;
  std::string text_;  // the last one, for its memory
  std::string bad_text_;
};

}  // namespace

std::size_t BuiltBytesMax(const Descriptor& message) {
  return message.full_name() == "stepwell.v1.WriteChunksRequest" ? kDefiningBuiltBytesMax
                                                                 : kRequestBuiltBytesMax;
}

absl::StatusOr<std::size_t> BuiltBytesOf(const Descriptor& message,
                                         ZeroCopyInputStream& bytes_untrusted,
                                         std::size_t built_bytes_max) {
  BuiltBytes bytes(bytes_untrusted, built_bytes_max);
  switch (bytes.Message(message, 1)) {
    case BuiltBytes::End::kWhole:
      return bytes.built();
    case BuiltBytes::End::kTooMuch:
      return absl::ResourceExhaustedError(absl::StrCat(
          "the request has too many parts (messages, labels, texts): ", built_bytes_max >> 20,
          " MiB are the most that is built of one"));
    case BuiltBytes::End::kNoText:
      return absl::InvalidArgumentError(
          absl::StrCat(bytes.bad_text(), " is not valid UTF-8, which texts are"));
    case BuiltBytes::End::kMalformed:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat("the body is no ", message.name()));
}

absl::Status CheckRequest(const Descriptor& message, ZeroCopyInputStream& bytes_untrusted,
                          std::size_t built_bytes_max) {
  return BuiltBytesOf(message, bytes_untrusted, built_bytes_max).status();
}

absl::Status CheckRequest(const Descriptor& message, std::string_view bytes_untrusted) {
  google::protobuf::io::ArrayInputStream in(bytes_untrusted.data(),
                                            static_cast<int>(bytes_untrusted.size()));
  return CheckRequest(message, in, BuiltBytesMax(message));
}

}  // namespace stepwell
