// QueryReads::FollowSamples: what is acked, as it is acked.
#include <optional>

#include "base/status_macros.h"
#include "server/follow_stream.h"
#include "server/query_reads.h"

namespace stepwell {

absl::Status QueryReads::FollowSamples(const v1::FollowSamplesRequest& request_untrusted,
                                       const ReadCall& call, const FollowSink& sink) const {
  STEPWELL_ASSIGN_OR_RETURN(const auto stream,
                            FollowStream::Open(sources_, request_untrusted, call));
  for (;;) {
    STEPWELL_ASSIGN_OR_RETURN(const std::optional<v1::FollowSamplesResponse> message,
                              stream->Next());
    if (!message) return absl::OkStatus();
    if (!sink(*message)) return absl::CancelledError("the client takes no more samples");
  }
}

}  // namespace stepwell
