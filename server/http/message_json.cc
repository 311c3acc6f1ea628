#include "server/http/message_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <memory>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/request_bound.h"

namespace stepwell {
namespace {

constexpr char kUrlPrefix[] = "type.googleapis.com";

google::protobuf::util::TypeResolver* Types() {
  static auto* types = google::protobuf::util::NewTypeResolverForDescriptorPool(
      kUrlPrefix, google::protobuf::DescriptorPool::generated_pool());
  return types;
}

// Of JSON what commas and brackets begin: its reader builds something of each before there are any bytes to look at.
absl::Status CheckElements(std::string_view json_untrusted) {
  std::size_t elements = 0;
  char quote = 0;  // of the text that it is in: protobuf's reader takes both kinds
  for (std::size_t i = 0; i < json_untrusted.size(); ++i) {
    const char c = json_untrusted[i];
    if (quote != 0 && c == '\\') {
      ++i;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if ((c == '{' || c == '[' || c == ',') && ++elements > kJsonElementsMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the request has more than ", kJsonElementsMax, " elements"));
    }
  }
  return absl::OkStatus();
}

std::string UrlOf(const google::protobuf::Descriptor& message) {
  return absl::StrCat(kUrlPrefix, "/", message.full_name());
}

}  // namespace

absl::Status CheckBytes(const google::protobuf::Descriptor& message,
                        const std::string& bytes_untrusted) {
  STEPWELL_RETURN_IF_ERROR(CheckRequest(message, bytes_untrusted));
  const std::unique_ptr<google::protobuf::Message> parsed(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&message)->New());
  if (parsed->ParseFromString(bytes_untrusted)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the body is no ", message.name()));
}

absl::StatusOr<std::string> BytesOfJson(const google::protobuf::Descriptor& message,
                                        const std::string& json_untrusted) {
  std::string bytes;
  if (json_untrusted.empty()) return bytes;
  STEPWELL_RETURN_IF_ERROR(CheckElements(json_untrusted));
  const auto read =
      google::protobuf::util::JsonToBinaryString(Types(), UrlOf(message), json_untrusted, &bytes);
  if (read.ok()) return bytes;  // of so few elements little is built
  return absl::InvalidArgumentError(
      absl::StrCat("the JSON is no ", message.name(), ": ",
                   std::string(read.message().data(), read.message().size())));
}

absl::StatusOr<std::string> JsonOfBytes(const google::protobuf::Descriptor& message,
                                        const std::string& bytes) {
  std::string json;
  const auto written =
      google::protobuf::util::BinaryToJsonString(Types(), UrlOf(message), bytes, &json);
  if (written.ok()) return json;
  return absl::InternalError(
      absl::StrCat("no JSON of ", message.name(), ": ",
                   std::string(written.message().data(), written.message().size())));
}

}  // namespace stepwell
