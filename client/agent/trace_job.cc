#include "client/agent/trace_job.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace stepwell::agent {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kPathBytesMax = 4096;
// A note has its writer, which has its labels.
constexpr int kDepthMax = 8;

absl::Status Bad(absl::string_view field, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("\"", field, "\" must be ", allowed));
}

std::int32_t NumberOf(const Json& document, const char* name) {
  const auto found = document.find(name);
  if (found == document.end() || !found->is_number_integer()) return -1;
  const auto number = found->get<std::int64_t>();
  return number < 0 || number > INT32_MAX ? -1 : static_cast<std::int32_t>(number);
}

}  // namespace

absl::StatusOr<TraceJob> ParseTraceJob(std::string_view json) {
  // What is nested deeper is nothing of ours, and left out: to write it again below takes a stack as deep.
  const auto is_ours = [](int depth, Json::parse_event_t, const Json&) {
    return depth <= kDepthMax;
  };
  const Json document = Json::parse(json.begin(), json.end(), is_ours, /*allow_exceptions=*/false);
  if (!document.is_object()) return absl::InvalidArgumentError("no JSON object");
  TraceJob job;
  const auto path = document.find("path");
  if (path != document.end() && path->is_string()) job.path = path->get<std::string>();
  if (job.path.empty() || job.path.front() != '/' || job.path.size() > kPathBytesMax ||
      job.path.find('\0') != std::string::npos) {
    return Bad("path", "absolute");
  }
  const auto writer = document.find("writer");
  if (writer == document.end()) return Bad("writer", "a writer.json");
  STEPWELL_ASSIGN_OR_RETURN(
      job.writer,
      ParseWriterJson(writer->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  job.epoch = NumberOf(document, "epoch");
  job.first_batch = NumberOf(document, "first_batch");
  job.last_batch = NumberOf(document, "last_batch");
  const auto removes = document.find("removes_file");
  job.removes_file = removes != document.end() && removes->is_boolean() && removes->get<bool>();
  return job;
}

std::string ToTraceJobJson(const TraceJob& job) {
  const Json document = {
      {"path", job.path},
      {"epoch", job.epoch},
      {"first_batch", job.first_batch},
      {"last_batch", job.last_batch},
      {"removes_file", job.removes_file},
      {"writer", Json::parse(ToWriterJson(job.writer), nullptr, /*allow_exceptions=*/false)}};
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace stepwell::agent
