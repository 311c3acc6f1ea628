#include "proto/request_traits.h"

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/request_bound.h"

namespace stepwell {

grpc::Status CheckUnparsed(grpc::ByteBuffer* bytes_untrusted,
                           const grpc::protobuf::MessageLite& message) {
  const auto* whole = dynamic_cast<const google::protobuf::Message*>(&message);
  if (whole == nullptr || !bytes_untrusted->Valid()) return grpc::Status::OK;
  const google::protobuf::Descriptor& descriptor = *whole->GetDescriptor();
  if (!absl::EndsWith(descriptor.name(), "Request")) return grpc::Status::OK;
  grpc::ProtoBufferReader reader(bytes_untrusted);
  if (!reader.status().ok()) return reader.status();
  const absl::Status may = CheckRequest(descriptor, reader, BuiltBytesMax(descriptor));
  return {static_cast<grpc::StatusCode>(may.code()), std::string(may.message())};
}

}  // namespace stepwell
