// IngestAnswers: the master's messages of a stream, made from what the rooms say. Pure functions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/uuid.h"
#include "server/commit_group.h"
#include "server/complaint.h"
#include "server/definition_check.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.pb.h"
#include "storage/ingest_store.h"

namespace stepwell {

pb::StreamChunksResponse MakeOpened(const pb::Open& open, const OpenedWriter& opened,
                                    const Uuid& incarnation, std::int64_t credit_bytes,
                                    std::int64_t server_time_us);
pb::StreamChunksResponse MakeRefused(const std::string& writer, const Complaint& complaint,
                                     bool terminal, std::uint64_t expected_sequence);
// REQUIRES: chunk.rejected.
pb::Rejection MakeRejection(const CheckedChunk& chunk);

// What a store's failure means to the client that opened, or defined.
Complaint OpenComplaint(const absl::Status& status, const OpenWriterRequest& request);
// What AccessControl's refusal means to it.
Complaint TokenComplaint(const absl::Status& status);
Complaint SeriesComplaint(const absl::Status& status, const CheckedDefinition& definition);
// Its reason.
const char* SeriesReason(absl::StatusCode code);

// One complaint per reason, however many definitions gave rise to it.
class RefusalSummary {
 public:
  void Add(const Complaint& complaint);
  // Where one of that reason is there; the words of others are told to nobody.
  [[nodiscard]] bool CountAgain(absl::string_view reason);
  std::vector<Complaint> Take() const;

 private:
  std::map<std::string, std::pair<Complaint, int>, std::less<>> by_reason_;
};

}  // namespace stepwell
