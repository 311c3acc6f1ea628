// TraceUpload: a file that goes to the master as a trace: looked through and packed first, then sent in parts, on
// again from where the master stands when a connection breaks. Confined to one thread.
//
//   STEPWELL_ASSIGN_OR_RETURN(PreparedTrace prepared, PrepareTrace(path, choice));
//   STEPWELL_ASSIGN_OR_RETURN(auto stored, SendTrace(master, trial, prepared, absl::Minutes(1)));
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "stepwell/v1/trace.pb.h"

namespace stepwell::traces {

struct CloseTraceFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// The bytes as they are stored.
struct PreparedTrace {
  v1::TraceHeader header = {};
  std::unique_ptr<std::FILE, CloseTraceFile> file = {};
  // For people: what is odd about it.
  std::vector<std::string> notes = {};
};

struct TraceChoice {
  // Unspecified: told by the file's name, or by how it begins.
  v1::TraceFormat format = v1::TRACE_FORMAT_UNSPECIFIED;
  std::optional<std::int32_t> rank = {};
  std::string machine = {};
  // False: JSON that is packed already goes as it is, and nothing that it holds is told.
  bool looks_inside = true;
  // JSON of more bytes is not packed, and nothing of it read.
  std::int64_t packed_of_max = INT64_MAX;
  // Named by the session of TensorBoard's layout that it lies in, where its name tells no batches.
  bool names_session = false;
  // False: where no epoch was known our names have ep0, which then says nothing.
  bool believes_our_ep0 = true;
};

// By its name and its first bytes; unspecified: neither tells.
v1::TraceFormat FormatOfTrace(const std::string& path, std::string_view begin);

// Reads it once. JSON is looked through, unless the choice says otherwise, and packed where it is not; its packed form lies in a file without a
// name. kNotFound: it cannot be read; kInvalidArgument: it is empty, no trace, or of no known format;
// kResourceExhausted: it is larger than what is packed.
[[nodiscard]] absl::StatusOr<PreparedTrace> PrepareTrace(const std::string& path,
                                                         const TraceChoice& choice);

// One call of TraceService.UploadTrace: the header, then parts as long as `next` fills one.
using UploadCall = std::function<absl::StatusOr<v1::UploadTraceResponse>(
    const v1::TraceUpload& upload, const std::function<bool(v1::TracePart&)>& next)>;

// When a master that answered kResourceExhausted says to come again, as a call tells it with its failure.
void SetComeAgain(absl::Duration delay, absl::Status& failed);
std::optional<absl::Duration> ComeAgainOf(const absl::Status& failed);

struct SendPatience {
  // With a master that does not answer, since it last came forward.
  absl::Duration silence = absl::ZeroDuration();
  // With one that says when to come again, in all: what was waited is taken off.
  absl::Duration told_left = absl::ZeroDuration();
  // Before such a wait; zero: it is over.
  std::function<void(absl::Duration)> on_told = [](absl::Duration) {};
};

// Goes on while the master comes forward, or comes again within `patience`. Where it says when to come again that is waited for, and up
// to a quarter more, so that those who were told the same do not come at one time; with no patience left for it the failure has ComeAgainOf.
[[nodiscard]] absl::StatusOr<v1::UploadTraceResponse> SendTrace(const UploadCall& call,
                                                                const v1::TrialRef& trial,
                                                                PreparedTrace& prepared,
                                                                SendPatience& patience);

}  // namespace stepwell::traces
