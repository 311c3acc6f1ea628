// Malformed: why bytes are no message of the wire contract. protobuf only says that they are not;
// a client that sends text which is not UTF-8 wants to know in which field. Pure functions.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "server/complaint.h"

namespace stepwell {

struct MalformedMessage {
  // The writer of the message, as far as it can be read; empty otherwise.
  std::string writer;
  // INVALID_UTF8 with the field's path, or MALFORMED.
  Complaint complaint;
};

// REQUIRES: `bytes` do not parse as StreamChunksRequest.
MalformedMessage DescribeMalformed(absl::string_view bytes);

}  // namespace stepwell
