#include "client/cli/proto_json.h"

#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"

namespace stepwell::cli {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using nlohmann::ordered_json;

// TRIAL_STATE_RUNNING of the enum TrialState -> "running".
std::string Word(const EnumValueDescriptor& value) {
  std::string prefix;
  for (const char c : value.type()->name()) {
    if (absl::ascii_isupper(static_cast<unsigned char>(c)) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(static_cast<unsigned char>(c));
  }
  absl::string_view name = value.name();
  absl::ConsumePrefix(&name, prefix + "_");
  return absl::AsciiStrToLower(name);
}

// Bytes are no text: as hexadecimal digits.
ordered_json TextOrDigits(const FieldDescriptor& field, const std::string& value) {
  if (field.type() == FieldDescriptor::TYPE_BYTES) return absl::BytesToHexString(value);
  return value;
}

ordered_json Single(const Message& message, const Reflection& reflection,
                    const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberJson(reflection.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return NumberJson(reflection.GetFloat(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return Word(*reflection.GetEnum(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return TextOrDigits(field, reflection.GetString(message, &field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(reflection.GetMessage(message, &field));
  }
  return nullptr;
}

ordered_json Element(const Message& message, const Reflection& reflection,
                     const FieldDescriptor& field, int i) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetRepeatedInt32(message, &field, i);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetRepeatedInt64(message, &field, i);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetRepeatedUInt32(message, &field, i);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.GetRepeatedUInt64(message, &field, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberJson(reflection.GetRepeatedDouble(message, &field, i));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return NumberJson(reflection.GetRepeatedFloat(message, &field, i));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetRepeatedBool(message, &field, i);
    case FieldDescriptor::CPPTYPE_ENUM:
      return Word(*reflection.GetRepeatedEnum(message, &field, i));
    case FieldDescriptor::CPPTYPE_STRING:
      return TextOrDigits(field, reflection.GetRepeatedString(message, &field, i));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(reflection.GetRepeatedMessage(message, &field, i));
  }
  return nullptr;
}

// Labels: sorted by name, since a map has no order of its own.
ordered_json StringMap(const Message& message, const Reflection& reflection,
                       const FieldDescriptor& field) {
  nlohmann::json sorted = nlohmann::json::object();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    const Reflection& of_entry = *entry.GetReflection();
    sorted[of_entry.GetString(entry, field.message_type()->map_key())] =
        of_entry.GetString(entry, field.message_type()->map_value());
  }
  ordered_json object = ordered_json::object();
  for (const auto& [key, value] : sorted.items()) object[key] = value.get<std::string>();
  return object;
}

// Where nothing given differs from its zero.
bool MayBeMissing(const FieldDescriptor& field) {
  return field.has_optional_keyword() || field.real_containing_oneof() != nullptr;
}

}  // namespace

ordered_json NumberJson(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

ordered_json ToJson(const Message& message) {
  ordered_json object = ordered_json::object();
  const Reflection& reflection = *message.GetReflection();
  for (int f = 0; f < message.GetDescriptor()->field_count(); ++f) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(f);
    if (field.is_map()) {
      object[field.name()] = StringMap(message, reflection, field);
    } else if (field.is_repeated()) {
      ordered_json array = ordered_json::array();
      for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
        array.push_back(Element(message, reflection, field, i));
      }
      object[field.name()] = std::move(array);
    } else if (MayBeMissing(field) && !reflection.HasField(message, &field)) {
      object[field.name()] = nullptr;
    } else {
      object[field.name()] = Single(message, reflection, field);
    }
  }
  return object;
}

}  // namespace stepwell::cli
