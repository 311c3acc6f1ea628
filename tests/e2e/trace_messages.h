// A call that uploads a trace, and its messages, for tests that send them themselves.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/sha256.h"
#include "stepwell/v1/trace.grpc.pb.h"

namespace stepwell::testing {

// Of a trace that has these bytes.
inline v1::UploadTraceRequest TraceHeader(const v1::TrialRef& trial, const std::string& name,
                                          const std::string& bytes) {
  v1::UploadTraceRequest request;
  *request.mutable_upload()->mutable_trial() = trial;
  auto& header = *request.mutable_upload()->mutable_header();
  header.set_name(name);
  header.set_format(v1::TRACE_FORMAT_CHROME_JSON);
  header.set_byte_count(static_cast<std::int64_t>(bytes.size()));
  Sha256 sha;
  sha.Feed(bytes);
  header.set_sha256(sha.Finish());
  return request;
}

// One that has begun.
struct TraceUploadCall {
  grpc::ClientContext context;
  v1::UploadTraceResponse response;
  std::unique_ptr<grpc::ClientWriter<v1::UploadTraceRequest>> writer;

  grpc::Status End() {
    writer->WritesDone();
    return writer->Finish();
  }
};

inline v1::UploadTraceRequest TracePart(std::size_t offset, const std::string& bytes) {
  v1::UploadTraceRequest request;
  request.mutable_part()->set_offset(static_cast<std::int64_t>(offset));
  request.mutable_part()->set_data(bytes);
  return request;
}

}  // namespace stepwell::testing
