#include "client/cli/trace_words.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/units.h"
#include "client/traces/profile_session.h"
#include "client/traces/trace_upload.h"

namespace stepwell::cli {
namespace {

// One part of a path, of letters, digits and a few more: TensorBoard cuts names at dots.
std::string Part(const std::string& text) {
  std::string part;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_';
    part += is_plain ? c : '_';
  }
  return part.empty() ? "trace" : part;
}

std::string HostOf(const v1::Trace& trace) {
  const std::string machine =
      trace.header().machine().empty() ? "" : Part(trace.header().machine()) + "_";
  const std::string rank =
      trace.header().has_rank() ? absl::StrCat("rank", trace.header().rank(), "_") : "";
  return absl::StrCat(machine, rank, "trace", trace.trace_no());
}

// All traces of a rank are one worker's, whose spans are numbers.
std::string WorkerOf(const v1::Trace& trace) {
  if (!trace.header().has_rank()) return HostOf(trace);
  const std::string rank = absl::StrCat("rank", trace.header().rank());
  return trace.header().machine().empty() ? rank : Part(trace.header().machine()) + "_" + rank;
}

bool IsOfPytorch(const v1::TraceHeader& header) {
  return header.format() == v1::TRACE_FORMAT_CHROME_JSON &&
         absl::StrContains(header.name(), ".pt.trace.json");
}

std::string ProfileFolder(const std::string& trial, const std::string& session) {
  return absl::StrCat(Part(trial), "/plugins/profile/", session, "/");
}

// Where batches are known those tell what belongs together: ranks begin their sessions at different moments.
std::optional<traces::ProfileSession> SessionOf(const v1::TraceHeader& header) {
  if (header.has_first_batch() || header.has_last_batch()) return std::nullopt;
  return traces::SessionOfName(header.name());
}

// Of a trace that came from such a place.
std::string SessionPath(const std::string& trial, const v1::Trace& trace) {
  const auto session = SessionOf(trace.header());
  if (!session || IsOfPytorch(trace.header())) return "";
  return ProfileFolder(trial, session->session) + session->file;
}

// `more` tells it from others of that place.
std::string NumberedPath(const std::string& trial, const v1::Trace& trace,
                         const std::string& more) {
  const v1::TraceHeader& header = trace.header();
  const std::string run = Part(trial);
  const std::string cycle = TraceCycleText(header);
  const auto session = SessionOf(header);
  const std::string profile =
      ProfileFolder(trial, session ? session->session : Part(cycle.empty() ? "profile" : cycle));
  const std::string gz = absl::EndsWith(header.name(), ".gz") ? ".gz" : "";
  const std::string host = HostOf(trace) + more;
  switch (header.format()) {
    case v1::TRACE_FORMAT_XPLANE:
      return absl::StrCat(profile, host, ".xplane.pb");
    case v1::TRACE_FORMAT_CHROME_JSON:
      if (IsOfPytorch(header)) {
        return absl::StrCat(run, "/", WorkerOf(trace), more, ".", trace.trace_no(),
                            ".pt.trace.json", gz);
      }
      return absl::StrCat(profile, host, ".trace.json", gz);
    default:
      // Nothing of TensorBoard's reads it; it lies beside what does.
      return absl::StrCat(run, "/", host, ".", Part(header.name()));
  }
}

}  // namespace

absl::StatusOr<v1::TraceFormat> ParseTraceFormat(const std::string& text) {
  if (text == "json") return v1::TRACE_FORMAT_CHROME_JSON;
  if (text == "perfetto") return v1::TRACE_FORMAT_PERFETTO;
  if (text == "xplane") return v1::TRACE_FORMAT_XPLANE;
  if (text == "text") return v1::TRACE_FORMAT_TEXT;
  return absl::InvalidArgumentError(
      absl::StrCat("--format is '", text, "'; allowed: json, perfetto, xplane, text"));
}

absl::StatusOr<v1::TraceFormat> ParseMergeFormat(const std::string& text,
                                                 const std::string& output) {
  if (text.empty()) {
    const bool is_perfetto = traces::FormatOfTrace(output, "") == v1::TRACE_FORMAT_PERFETTO;
    return is_perfetto ? v1::TRACE_FORMAT_PERFETTO : v1::TRACE_FORMAT_CHROME_JSON;
  }
  if (text == "json") return v1::TRACE_FORMAT_CHROME_JSON;
  if (text == "perfetto") return v1::TRACE_FORMAT_PERFETTO;
  return absl::InvalidArgumentError(
      absl::StrCat("--format is '", text, "'; allowed: json, perfetto, archive"));
}

std::string TraceFormatText(v1::TraceFormat format) {
  switch (format) {
    case v1::TRACE_FORMAT_CHROME_JSON:
      return "json";
    case v1::TRACE_FORMAT_PERFETTO:
      return "perfetto";
    case v1::TRACE_FORMAT_XPLANE:
      return "xplane";
    case v1::TRACE_FORMAT_TEXT:
      return "text";
    default:
      return absl::StrCat("format ", static_cast<int>(format));
  }
}

std::string TraceStateText(const v1::Trace& trace) {
  switch (trace.state()) {
    case v1::TRACE_STATE_COMPLETE:
      return "complete";
    case v1::TRACE_STATE_UPLOADING:
      return absl::StrCat("uploading, ",
                          static_cast<int>(100.0 * static_cast<double>(trace.received_bytes()) /
                                           static_cast<double>(std::max<std::int64_t>(
                                               trace.header().byte_count(), 1))),
                          " %");
    case v1::TRACE_STATE_REFUSED:
      return absl::StrCat("refused: ", trace.reason());
    case v1::TRACE_STATE_REMOVED:
      return absl::StrCat("removed: ", trace.reason());
    default:
      return absl::StrCat("state ", static_cast<int>(trace.state()));
  }
}

std::string TraceCycleText(const v1::TraceHeader& header) {
  std::string text = header.has_epoch() ? absl::StrCat("ep", header.epoch()) : "";
  const bool has_batch = header.has_first_batch() || header.has_last_batch();
  if (!has_batch) return text;
  absl::StrAppend(&text, text.empty() ? "" : "-", "ba");
  if (header.has_first_batch() && header.first_batch() != header.last_batch()) {
    absl::StrAppend(&text, header.first_batch(), header.has_last_batch() ? "..." : "");
  }
  if (header.has_last_batch()) absl::StrAppend(&text, header.last_batch());
  return text;
}

std::string ClocksText(
    const std::vector<std::pair<std::int32_t, std::optional<std::int64_t>>>& errors) {
  std::pair<std::int32_t, std::int64_t> worst;
  for (const auto& [rank, error_ns] : errors) {
    if (!error_ns) return "nothing tells how far the clocks of different machines are apart";
    if (*error_ns > worst.second) worst = {rank, *error_ns};
  }
  if (worst.second == 0) return "";
  return absl::StrCat("clocks: within ", SecondsText(static_cast<double>(worst.second) * 1e-9),
                      ", of which rank ", worst.first, " is the furthest off");
}

std::string TrialHint(const std::string& file) {
  std::error_code error;
  const bool is_there = std::filesystem::exists(file, error);
  if (is_there || absl::StrContains(file, '/') || absl::StrContains(file, '.')) return "";
  return absl::StrCat("; traces that the master keeps: --trial ", file);
}

std::string TensorboardPath(const std::string& trial, const v1::Trace& trace,
                            std::set<std::string>& taken) {
  if (const std::string as_it_was = SessionPath(trial, trace);
      !as_it_was.empty() && taken.insert(as_it_was).second) {
    return as_it_was;
  }
  // By its number; only a name that was made for it has that already.
  std::string more;
  std::string path = NumberedPath(trial, trace, more);
  while (!taken.insert(path).second) path = NumberedPath(trial, trace, more += "_");
  return path;
}

}  // namespace stepwell::cli
