#include "server/latest_answer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>
#include <utility>

namespace stepwell {
namespace {

using Value = v1::LatestValuesResponse::Value;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// Tags and numbers beside the series: 5 + 11 + 11 + 9, and some more.
constexpr std::size_t kNumbersBytes = 48;

}  // namespace

void LatestAnswer::Add(std::string_view series, const LatestValue& latest) {
  std::string& value = values_.emplace_back();
  value.resize(series.size() + kNumbersBytes);
  auto* const begin = reinterpret_cast<std::uint8_t*>(value.data());
  std::uint8_t* at = begin;
  at = WireFormatLite::WriteTagToArray(Value::kSeriesFieldNumber,
                                       WireFormatLite::WIRETYPE_LENGTH_DELIMITED, at);
  at = CodedOutputStream::WriteVarint32ToArray(static_cast<std::uint32_t>(series.size()), at);
  at = CodedOutputStream::WriteRawToArray(series.data(), static_cast<int>(series.size()), at);
  at = WireFormatLite::WriteInt64ToArray(Value::kTimeUsFieldNumber, latest.time_us, at);
  at = WireFormatLite::WriteInt32ToArray(Value::kBatchFieldNumber, latest.batch, at);
  at = WireFormatLite::WriteDoubleToArray(Value::kValueFieldNumber, latest.value, at);
  value.resize(static_cast<std::size_t>(at - begin));
}

void LatestAnswer::MoveTo(v1::LatestValuesResponse& response) && {
  google::protobuf::UnknownFieldSet& fields =
      *response.GetReflection()->MutableUnknownFields(&response);
  for (std::string& value : values_) {
    *fields.AddLengthDelimited(v1::LatestValuesResponse::kValuesFieldNumber) = std::move(value);
  }
  values_.clear();
  *response.mutable_completeness() = std::move(completeness_);
}

absl::StatusOr<v1::LatestValuesResponse> LatestAnswer::ToMessage() const {
  v1::LatestValuesResponse message;
  for (const std::string& value : values_) {
    if (!message.add_values()->ParseFromString(value)) {
      return absl::InternalError("newest values: a value is no message");
    }
  }
  *message.mutable_completeness() = completeness_;
  return message;
}

}  // namespace stepwell
