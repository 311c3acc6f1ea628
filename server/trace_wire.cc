#include "server/trace_wire.h"

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "server/query_wire.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

constexpr std::size_t kWriterBytes = 16;
constexpr std::int64_t kNameBytesMax = 255;
constexpr std::int64_t kMachineBytesMax = 128;

MaybeComplaint CheckTrial(const pb::TrialRef& ref_untrusted, TrialSelector& trial) {
  auto selector = CheckTrialRef(ref_untrusted);
  if (!selector.ok()) return Invalid("TRIAL_REF", std::string(selector.status().message()));
  trial = *std::move(selector);
  return std::nullopt;
}

MaybeComplaint CheckNumber(const char* field, std::int32_t value) {
  if (value >= 0) return std::nullopt;
  return Invalid("HEADER", absl::StrCat(field, " is ", value, "; allowed: 0 and above"));
}

MaybeComplaint CheckName(const std::string& name) {
  STEPWELL_RETURN_IF_COMPLAINT(CheckText("upload.header.name", name, {1, kNameBytesMax}, "NAME"));
  // It becomes a file's where traces are laid out.
  if (name.find('/') == std::string::npos && name != "." && name != "..") return std::nullopt;
  return Invalid("HEADER", "upload.header.name is no name of a file; allowed: one without '/'");
}

MaybeComplaint CheckContent(const pb::TraceHeader& header) {
  if (header.format() == pb::TRACE_FORMAT_UNSPECIFIED ||
      !pb::TraceFormat_IsValid(header.format())) {
    return Invalid("HEADER",
                   absl::StrCat("upload.header.format is ", static_cast<int>(header.format()),
                                "; allowed: those of TraceFormat"));
  }
  if (header.byte_count() <= 0 || header.byte_count() > kTraceBytesMax) {
    return Invalid("HEADER",
                   absl::StrCat("upload.header.byte_count is ", header.byte_count(),
                                header.byte_count() == 0 ? ": there is nothing to keep" : "",
                                "; allowed: 1 to ", kTraceBytesMax));
  }
  if (header.sha256().size() != Sha256::kDigestBytes) {
    return Invalid("HEADER", absl::StrCat("upload.header.sha256 has ", header.sha256().size(),
                                          " bytes; allowed: ", Sha256::kDigestBytes));
  }
  if (!header.writer().empty() && header.writer().size() != kWriterBytes) {
    return Invalid("HEADER", absl::StrCat("upload.header.writer has ", header.writer().size(),
                                          " bytes; allowed: ", kWriterBytes, ", or none"));
  }
  return std::nullopt;
}

MaybeComplaint CheckPlace(const pb::TraceHeader& header) {
  if (header.has_rank()) {
    STEPWELL_RETURN_IF_COMPLAINT(CheckNumber("upload.header.rank", header.rank()));
  }
  if (header.has_epoch()) {
    STEPWELL_RETURN_IF_COMPLAINT(CheckNumber("upload.header.epoch", header.epoch()));
  }
  if (header.has_first_batch()) {
    STEPWELL_RETURN_IF_COMPLAINT(CheckNumber("upload.header.first_batch", header.first_batch()));
  }
  if (!header.has_last_batch()) return std::nullopt;
  const std::int32_t first = header.has_first_batch() ? header.first_batch() : 0;
  if (header.last_batch() >= first) return std::nullopt;
  return Invalid("HEADER", absl::StrCat("upload.header.last_batch is ", header.last_batch(),
                                        "; allowed: ", first, " and above"));
}

template <typename T>
std::optional<std::int32_t> Maybe(bool has, T value) {
  return has ? std::optional<std::int32_t>(value) : std::nullopt;
}

}  // namespace

MaybeComplaint CheckTraceUpload(const pb::TraceUpload& upload_untrusted,
                                TraceBeginning& beginning) {
  beginning = {};
  STEPWELL_RETURN_IF_COMPLAINT(CheckTrial(upload_untrusted.trial(), beginning.trial));
  const pb::TraceHeader& header = upload_untrusted.header();
  STEPWELL_RETURN_IF_COMPLAINT(CheckName(header.name()));
  STEPWELL_RETURN_IF_COMPLAINT(
      CheckText("upload.header.machine", header.machine(), {0, kMachineBytesMax}, "MACHINE"));
  STEPWELL_RETURN_IF_COMPLAINT(CheckContent(header));
  STEPWELL_RETURN_IF_COMPLAINT(CheckPlace(header));
  StoredTraceHeader& stored = beginning.header;
  stored.name = header.name();
  stored.format = static_cast<StoredTraceFormat>(header.format());
  stored.byte_count = header.byte_count();
  stored.sha256 = header.sha256();
  stored.rank = Maybe(header.has_rank(), header.rank());
  if (!header.writer().empty()) stored.writer = Uuid::FromBytes(header.writer());
  stored.machine = header.machine();
  stored.epoch = Maybe(header.has_epoch(), header.epoch());
  stored.first_batch = Maybe(header.has_first_batch(), header.first_batch());
  stored.last_batch = Maybe(header.has_last_batch(), header.last_batch());
  return std::nullopt;
}

MaybeComplaint CheckTraceRef(const pb::TrialRef& ref_untrusted, std::int32_t trace_no_untrusted,
                             TrialSelector& trial) {
  STEPWELL_RETURN_IF_COMPLAINT(CheckTrial(ref_untrusted, trial));
  if (trace_no_untrusted > 0) return std::nullopt;
  return Invalid("TRACE_NO",
                 absl::StrCat("trace_no is ", trace_no_untrusted, "; allowed: 1 and above"));
}

pb::Trace ToWire(const TraceRecord& trace) {
  pb::Trace wire;
  wire.set_trace_no(trace.trace_no);
  pb::TraceHeader& header = *wire.mutable_header();
  header.set_name(trace.header.name);
  header.set_format(static_cast<pb::TraceFormat>(trace.header.format));
  header.set_byte_count(trace.header.byte_count);
  header.set_sha256(trace.header.sha256);
  if (trace.header.rank) header.set_rank(*trace.header.rank);
  if (trace.header.writer) header.set_writer(trace.header.writer->ToBytes());
  header.set_machine(trace.header.machine);
  if (trace.header.epoch) header.set_epoch(*trace.header.epoch);
  if (trace.header.first_batch) header.set_first_batch(*trace.header.first_batch);
  if (trace.header.last_batch) header.set_last_batch(*trace.header.last_batch);
  wire.set_state(static_cast<pb::TraceState>(trace.state));
  wire.set_received_bytes(trace.received_bytes);
  wire.set_created_time_us(trace.created_time_us);
  wire.set_changed_time_us(trace.changed_time_us);
  wire.set_reason(trace.reason);
  return wire;
}

}  // namespace stepwell
