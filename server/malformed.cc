#include "server/malformed.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include "absl/strings/str_cat.h"
#include "server/text_check.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.pb.h"

namespace stepwell {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

constexpr int kDepthMax = 8;  // the contract's messages nest four deep

// Path of the first text field that is not UTF-8, empty if there is none.
std::string FindBadText(const UnknownFieldSet& fields, const Descriptor& type, int depth) {
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    const FieldDescriptor* known = type.FindFieldByNumber(field.number());
    if (known == nullptr || field.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    if (known->type() == FieldDescriptor::TYPE_STRING && !IsUtf8(field.length_delimited())) {
      return known->name();
    }
    if (known->type() != FieldDescriptor::TYPE_MESSAGE || depth == kDepthMax) continue;
    UnknownFieldSet inner;
    if (!inner.ParseFromString(field.length_delimited())) continue;
    const std::string path = FindBadText(inner, *known->message_type(), depth + 1);
    if (!path.empty()) return absl::StrCat(known->name(), ".", path);
  }
  return {};
}

// Every message but heartbeats of the future begins with its writer.
std::string FindWriter(const UnknownFieldSet& fields) {
  for (int i = 0; i < fields.field_count(); ++i) {
    if (fields.field(i).type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    UnknownFieldSet inner;
    if (!inner.ParseFromString(fields.field(i).length_delimited())) continue;
    for (int k = 0; k < inner.field_count(); ++k) {
      const UnknownField& field = inner.field(k);
      if (field.number() == 1 && field.type() == UnknownField::TYPE_LENGTH_DELIMITED &&
          field.length_delimited().size() == 16) {
        return field.length_delimited();
      }
    }
  }
  return {};
}

}  // namespace

MalformedMessage DescribeMalformed(absl::string_view bytes) {
  UnknownFieldSet fields;
  if (!fields.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return {"", Invalid("MALFORMED", "the message is no serialised StreamChunksRequest")};
  }
  MalformedMessage found;
  found.writer = FindWriter(fields);
  const std::string path = FindBadText(fields, *pb::StreamChunksRequest::descriptor(), 0);
  found.complaint = path.empty()
                        ? Invalid("MALFORMED", "the message is no serialised StreamChunksRequest")
                        : Invalid("INVALID_UTF8", absl::StrCat(path, " is not valid UTF-8"));
  return found;
}

}  // namespace stepwell
