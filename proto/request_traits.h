// How gRPC parses our requests: not before CheckRequest (request_bound.h) has looked at their bytes. Each generated header of
// a service includes it (proto/CMakeLists.txt), so that it is seen wherever gRPC's own would be taken. Unary calls are parsed
// as MessageLite, those whose answer is a stream by their own type: a new one is named below, and BoundedRequestsTest says so
// where it is not. Messages of a client's stream are taken one by one, from who was let in.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>

namespace stepwell {

// Of a message that is no request (an answer, at a client): OK.
grpc::Status CheckUnparsed(grpc::ByteBuffer* bytes_untrusted,
                           const grpc::protobuf::MessageLite& message);

}  // namespace stepwell

namespace stepwell::v1 {

class CaptureTraceRequest;
class FollowSamplesRequest;
class GetTraceRequest;
class MergeTracesRequest;
class ReadSamplesRequest;

}  // namespace stepwell::v1

namespace grpc {

template <>
class SerializationTraits<protobuf::MessageLite, void> {
 public:
  static Status Serialize(const protobuf::MessageLite& message, ByteBuffer* bytes,
                          bool* own_buffer) {
    return GenericSerialize<ProtoBufferWriter, protobuf::MessageLite>(message, bytes, own_buffer);
  }
  static Status Deserialize(ByteBuffer* bytes, protobuf::MessageLite* message) {
    Status may = ::stepwell::CheckUnparsed(bytes, *message);
    if (!may.ok()) {
      bytes->Clear();  // as it is after being parsed
      return may;
    }
    return GenericDeserialize<ProtoBufferReader, protobuf::MessageLite>(bytes, message);
  }
};

#define STEPWELL_BOUNDED(Request)                          \
  template <>                                              \
  class SerializationTraits<::stepwell::v1::Request, void> \
      : public SerializationTraits<protobuf::MessageLite, void> {}
STEPWELL_BOUNDED(CaptureTraceRequest);
STEPWELL_BOUNDED(FollowSamplesRequest);
STEPWELL_BOUNDED(GetTraceRequest);
STEPWELL_BOUNDED(MergeTracesRequest);
STEPWELL_BOUNDED(ReadSamplesRequest);
#undef STEPWELL_BOUNDED

}  // namespace grpc
