// HostileJson: any text as the JSON of a message of our RPCs, and any bytes as the message itself, at
// HTTP's door. What is taken is such a message, and means the same after it went through the other form;
// what is refused is told in words that can be shown. Header only; pure.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "server/http/message_json.h"
#include "server/text_check.h"
#include "stepwell/v1/admin.pb.h"
#include "stepwell/v1/ingest.pb.h"
#include "stepwell/v1/query.pb.h"
#include "stepwell/v1/token.pb.h"
#include "stepwell/v1/trace.pb.h"
#include "tests/fuzz/hostile_bytes.h"

namespace stepwell::testing {

// What calls may send, and what they may get.
inline std::vector<const google::protobuf::Descriptor*> CallMessages() {
  std::vector<const google::protobuf::Descriptor*> messages;
  for (const auto* message : {v1::Chunk::descriptor(), v1::ReadSamplesRequest::descriptor(),
                              v1::SetProfilingRequest::descriptor(), v1::TraceUpload::descriptor(),
                              v1::CreateTokenRequest::descriptor()}) {
    for (int s = 0; s < message->file()->service_count(); ++s) {
      const auto* service = message->file()->service(s);
      for (int m = 0; m < service->method_count(); ++m) {
        messages.push_back(service->method(m)->input_type());
        messages.push_back(service->method(m)->output_type());
      }
    }
  }
  return messages;
}

inline void CheckTold(const absl::Status& status) {
  STEPWELL_CHECK(absl::IsInvalidArgument(status));
  // As the door says it (connect_call.cc), for protobuf quotes what it stumbled over.
  const std::string told = Shortened(status.message(), 1024);
  STEPWELL_CHECK(!told.empty() && IsUtf8(told) && told.size() <= 1024);
}

// The first byte says which message, and whether its bytes follow (odd) or its JSON.
inline void ReadHostileJson(std::string_view bytes) {
  // protobuf tells of each text that is no UTF-8, on stderr.
  static const auto told = google::protobuf::SetLogHandler(nullptr);
  (void)told;
  static const auto messages = CallMessages();
  STEPWELL_CHECK(messages.size() >= 40);
  HostileBytes input(bytes);
  const auto choice = input.Take<std::uint8_t>();
  const google::protobuf::Descriptor& message = *messages[choice / 2 % messages.size()];
  std::string taken(input.rest());
  if (choice % 2 == 0) {
    auto read = BytesOfJson(message, taken);
    if (!read.ok()) return CheckTold(read.status());
    taken = *std::move(read);
    STEPWELL_CHECK(CheckBytes(message, taken).ok());
  } else if (const absl::Status status = CheckBytes(message, taken); !status.ok()) {
    return CheckTold(status);
  }
  const auto json = JsonOfBytes(message, taken);
  // Numbers of enums and times that JSON has no form for.
  if (!json.ok()) return;
  const auto again = BytesOfJson(message, *json);
  if (!again.ok()) return;
  const auto json_again = JsonOfBytes(message, *again);
  STEPWELL_CHECK(json_again.ok());
  const auto settled = BytesOfJson(message, *json_again);
  STEPWELL_CHECK(settled.ok());
  STEPWELL_CHECK(settled->size() == again->size());
}

}  // namespace stepwell::testing
