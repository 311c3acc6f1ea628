#include "tests/e2e/raw_call.h"

#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace stepwell::testing {
namespace {

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return "";
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace

RawAnswer CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::string& request, absl::Duration patience) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
  context.set_wait_for_ready(true);
  // One step after the other: each tag is the step's own.
  const auto done = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  RawAnswer answer;
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  if (done()) {
    call->WriteLast(BufferOf(request), {}, nullptr);
    grpc::ByteBuffer buffer;
    // What was refused before it was written has no answer to wait for.
    if (done()) {
      call->Read(&buffer, nullptr);
      if (done()) answer.bytes = BytesOf(buffer);
    }
  }
  call->Finish(&answer.status, nullptr);
  done();
  queue.Shutdown();
  return answer;
}

std::string Health(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  // HealthCheckRequest: service = 1. HealthCheckResponse: status = 1.
  google::protobuf::UnknownFieldSet request;
  if (!service.empty()) request.AddLengthDelimited(1, service);
  std::string bytes;
  request.SerializeToString(&bytes);
  const RawAnswer answer = CallRaw(channel, "/grpc.health.v1.Health/Check", bytes);
  if (!answer.status.ok()) {
    return absl::StrCat("status ", static_cast<int>(answer.status.error_code()), ": ",
                        answer.status.error_message());
  }
  google::protobuf::UnknownFieldSet response;
  if (!response.ParseFromString(answer.bytes)) return "no message";
  if (response.field_count() == 0) return "UNKNOWN";
  const std::uint64_t status = response.field(0).varint();
  return status == 1 ? "SERVING" : status == 2 ? "NOT_SERVING" : absl::StrCat("status ", status);
}

}  // namespace stepwell::testing
