#include "client/traces/trace_upload.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "base/trace/gzip_packer.h"
#include "base/trace/gzip_unpacker.h"
#include "base/trace/trace_origin.h"
#include "base/trace/trace_reading.h"
#include "client/traces/profile_session.h"
#include "client/traces/trace_file.h"

namespace stepwell::traces {
namespace {

constexpr std::size_t kPartBytes = 1 << 20;
// Between two attempts to reach a master that went.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);
constexpr char kComeAgain[] = "stepwell/come_again_ms";
// Enough to tell what a trace begins with, behind some white space.
constexpr std::size_t kBeginBytes = 256;

bool IsGzip(std::string_view begin) { return begin.substr(0, 2) == "\x1f\x8b"; }

bool BeginsAsJson(std::string_view begin) {
  const absl::string_view text =
      absl::StripLeadingAsciiWhitespace(absl::string_view(begin.data(), begin.size()));
  return absl::StartsWith(text, "{") || absl::StartsWith(text, "[");
}

// For certain: a protobuf may begin with a line's end and a length that is a bracket.
bool IsJson(std::string_view begin) {
  absl::string_view text(begin.data(), begin.size());
  text = absl::StripLeadingAsciiWhitespace(text);
  const bool is_list = absl::ConsumePrefix(&text, "[");
  if (!is_list && !absl::ConsumePrefix(&text, "{")) return false;
  text = absl::StripLeadingAsciiWhitespace(text);
  return absl::StartsWith(text, is_list ? "{" : "\"");
}

std::string LastPart(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Where the bytes to be stored are gathered: their digest, and a copy where they are not the file's own.
struct Gathering {
  Sha256 sha;
  std::int64_t byte_count = 0;
  std::FILE* copy = nullptr;

  absl::Status Take(std::string_view bytes) {
    sha.Feed(bytes);
    byte_count += static_cast<std::int64_t>(bytes.size());
    if (copy == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), copy) == bytes.size()) {
      return absl::OkStatus();
    }
    return absl::InternalError(absl::StrCat("a file for its packed form: ", std::strerror(errno)));
  }
};

// What a look through a trace in JSON tells.
class JsonLook {
 public:
  JsonLook()
      : splitter_({.event =
                       [this](std::string_view json) {
                         scan_.TakeEvent(json);
                         return absl::OkStatus();
                       },
                   .member =
                       [this](std::string_view name, std::string_view json) {
                         scan_.TakeMember(name, json);
                         return absl::OkStatus();
                       }}),
        unpacker_([this](std::string_view bytes) { return splitter_.Feed(bytes); }) {}

  absl::Status Feed(std::string_view bytes) { return unpacker_.Feed(bytes); }
  absl::Status Finish(const TraceChoice& choice, PreparedTrace& prepared) {
    STEPWELL_ASSIGN_OR_RETURN(const TraceForm form, splitter_.Finish());
    if (form.is_cut || !unpacker_.at_end()) {
      prepared.notes.emplace_back("it ends too early; what it has is kept");
    }
    if (form.event_count == 0) prepared.notes.emplace_back("it has no event");
    const TraceOrigin origin = scan_.Finish();
    if (choice.rank || !origin.rank) return absl::OkStatus();
    if (!prepared.header.has_rank()) {
      prepared.header.set_rank(*origin.rank);
    } else if (prepared.header.rank() != *origin.rank) {
      prepared.notes.push_back(absl::StrCat("its name says rank ", prepared.header.rank(),
                                            ", the trace itself rank ", *origin.rank,
                                            "; it is kept as rank ", prepared.header.rank()));
    }
    return absl::OkStatus();
  }

 private:
  TraceScan scan_;
  TraceSplitter splitter_;
  GzipUnpacker unpacker_;
};

absl::Status GatherJson(const std::string& path, const TraceChoice& choice, Gathering& gathering,
                        PreparedTrace& prepared) {
  JsonLook look;
  const bool is_packed = gathering.copy == nullptr;
  GzipPacker packer([&](std::string_view bytes) { return gathering.Take(bytes); });
  const absl::Status read = SourceOfFile(path)([&](std::string_view bytes) -> absl::Status {
    if (choice.looks_inside) STEPWELL_RETURN_IF_ERROR(look.Feed(bytes));
    return is_packed ? gathering.Take(bytes) : packer.Feed(bytes);
  });
  STEPWELL_RETURN_IF_ERROR(read);
  if (!is_packed) STEPWELL_RETURN_IF_ERROR(packer.Finish());
  return choice.looks_inside ? Named(look.Finish(choice, prepared), path) : absl::OkStatus();
}

absl::StatusOr<std::string> BeginOf(const std::string& path) {
  const std::unique_ptr<std::FILE, CloseTraceFile> file(std::fopen(path.c_str(), "re"));
  std::string begin(kBeginBytes, '\0');
  if (file == nullptr) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  begin.resize(std::fread(begin.data(), 1, begin.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  if (begin.empty()) return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
  return begin;
}

// That of the session of TensorBoard's layout that it lies in.
std::string NameOfSession(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? "" : SessionNameOf(whole.lexically_normal().generic_string());
}

// The agent and the package name theirs so, with ep0 where no epoch was recorded. Composer's, which end otherwise, know it.
bool IsNameOfOurs(const std::string& path) {
  const absl::string_view name = absl::StripSuffix(path, ".gz");
  return absl::EndsWith(name, ".pftrace") || absl::EndsWith(name, ".pt.trace.json");
}

// What "ep2-ba800" says: 800 batches are over, also in Composer's names.
void ReadCycle(const std::string& path, const TraceChoice& choice, v1::TraceHeader& header) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(CycleOfTraceName(path), absl::MaxSplits("-ba", 1));
  std::int32_t epoch = 0, over = 0;
  if (!absl::SimpleAtoi(absl::StripPrefix(parts.first, "ep"), &epoch) ||
      !absl::SimpleAtoi(parts.second, &over)) {
    return;
  }
  if (epoch > 0 || choice.believes_our_ep0 || !IsNameOfOurs(path)) header.set_epoch(epoch);
  if (over > 0) header.set_last_batch(over - 1);
}

// JSON is stored packed in any case, and says so.
void NameTrace(const std::string& path, const TraceChoice& choice, v1::TraceHeader& header) {
  ReadCycle(path, choice, header);
  std::string name;
  if (choice.names_session && !header.has_last_batch()) name = NameOfSession(path);
  if (name.empty()) name = LastPart(path);
  const bool is_json = header.format() == v1::TRACE_FORMAT_CHROME_JSON;
  header.set_name(absl::StrCat(name, is_json && !absl::EndsWith(name, ".gz") ? ".gz" : ""));
  header.set_machine(choice.machine);
  const std::optional<std::int32_t> rank = choice.rank ? choice.rank : RankOfTraceName(path);
  if (rank) header.set_rank(*rank);
}

// False: there is no patience left for it.
bool WaitAsTold(absl::Duration told, SendPatience& patience) {
  if (told > patience.told_left) return false;
  absl::BitGen chance;
  const absl::Duration wait = std::min(told * absl::Uniform(chance, 1.0, 1.25), patience.told_left);
  patience.on_told(wait);
  absl::SleepFor(wait);
  patience.told_left -= wait;
  patience.on_told(absl::ZeroDuration());
  return true;
}

}  // namespace

v1::TraceFormat FormatOfTrace(const std::string& path, std::string_view begin) {
  std::string name = LastPart(path);
  if (absl::EndsWith(name, ".gz")) name.resize(name.size() - 3);
  if (absl::EndsWith(name, ".xplane.pb")) return v1::TRACE_FORMAT_XPLANE;
  for (const char* ending : {".pftrace", ".perfetto-trace", ".perfetto"}) {
    if (absl::EndsWith(name, ending)) return v1::TRACE_FORMAT_PERFETTO;
  }
  for (const char* ending : {".txt", ".log"}) {
    if (absl::EndsWith(name, ending)) return v1::TRACE_FORMAT_TEXT;
  }
  return BeginsAsJson(begin) || (absl::EndsWith(name, ".json") && IsGzip(begin))
             ? v1::TRACE_FORMAT_CHROME_JSON
             : v1::TRACE_FORMAT_UNSPECIFIED;
}

absl::StatusOr<PreparedTrace> PrepareTrace(const std::string& path, const TraceChoice& choice) {
  STEPWELL_ASSIGN_OR_RETURN(const std::string begin, BeginOf(path));
  PreparedTrace prepared;
  const v1::TraceFormat format =
      choice.format == v1::TRACE_FORMAT_UNSPECIFIED ? FormatOfTrace(path, begin) : choice.format;
  if (format == v1::TRACE_FORMAT_UNSPECIFIED) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": neither its name nor its first bytes tell what it is; --format says it"));
  }
  const bool is_json = format == v1::TRACE_FORMAT_CHROME_JSON;
  if (!is_json && format == choice.format && format != v1::TRACE_FORMAT_TEXT && IsJson(begin)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is JSON, which neither Perfetto's traces nor XPlanes are"));
  }
  const bool is_packed_now = is_json && !IsGzip(begin);
  prepared.header.set_format(format);
  NameTrace(path, choice, prepared.header);
  Gathering gathering;
  if (is_packed_now) {
    std::error_code failed;
    const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
    if (!failed && std::cmp_greater(bytes, choice.packed_of_max)) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, " has ", bytes, " bytes; packed are up to ", choice.packed_of_max));
    }
    prepared.file.reset(std::tmpfile());
    if (prepared.file == nullptr) {
      return absl::InternalError(
          absl::StrCat("a file for its packed form: ", std::strerror(errno)));
    }
    gathering.copy = prepared.file.get();
  } else {
    prepared.file.reset(std::fopen(path.c_str(), "re"));
    if (prepared.file == nullptr) {
      return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
    }
  }
  if (is_json) {
    STEPWELL_RETURN_IF_ERROR(GatherJson(path, choice, gathering, prepared));
  } else {
    STEPWELL_RETURN_IF_ERROR(
        SourceOfFile(path)([&](std::string_view bytes) { return gathering.Take(bytes); }));
  }
  prepared.header.set_byte_count(gathering.byte_count);
  prepared.header.set_sha256(gathering.sha.Finish());
  if (choice.rank) prepared.header.set_rank(*choice.rank);
  return prepared;
}

void SetComeAgain(absl::Duration delay, absl::Status& failed) {
  failed.SetPayload(kComeAgain, absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(
                                    absl::Ceil(delay, absl::Milliseconds(1))))));
}

std::optional<absl::Duration> ComeAgainOf(const absl::Status& failed) {
  const auto payload = failed.GetPayload(kComeAgain);
  std::int64_t milliseconds = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &milliseconds)) return std::nullopt;
  return absl::Milliseconds(std::max<std::int64_t>(1, milliseconds));
}

absl::StatusOr<v1::UploadTraceResponse> SendTrace(const UploadCall& call, const v1::TrialRef& trial,
                                                  PreparedTrace& prepared, SendPatience& patience) {
  v1::TraceUpload upload;
  *upload.mutable_trial() = trial;
  *upload.mutable_header() = prepared.header;
  // Nobody waits for a master that was never there.
  std::int64_t reached = -1;
  SteadyTime deadline = SteadyTime::Now() + patience.silence;
  while (true) {
    // The header alone asks how far it is.
    absl::StatusOr<v1::UploadTraceResponse> answer =
        call(upload, [](v1::TracePart&) { return false; });
    if (answer.ok()) {
      if (answer->complete()) return answer;
      if (answer->received_bytes() > reached) {
        reached = answer->received_bytes();
        deadline = SteadyTime::Now() + patience.silence;
      }
      std::int64_t at = answer->received_bytes();
      bool is_unread = std::fseek(prepared.file.get(), static_cast<long>(at), SEEK_SET) != 0;
      answer = call(upload, [&](v1::TracePart& part) {
        std::string& data = *part.mutable_data();
        data.resize(kPartBytes);
        data.resize(std::fread(data.data(), 1, data.size(), prepared.file.get()));
        part.set_offset(at);
        at += static_cast<std::int64_t>(data.size());
        return !data.empty();
      });
      is_unread = is_unread || std::ferror(prepared.file.get()) != 0 ||
                  (answer.ok() && !answer->complete());
      if (answer.ok() && answer->complete()) return answer;
      if (is_unread) {
        return absl::NotFoundError(
            absl::StrCat(prepared.header.name(), ": it changed, or could not be read to its end"));
      }
    }
    if (const auto told = ComeAgainOf(answer.status())) {
      if (!WaitAsTold(*told, patience)) return answer;
      deadline = SteadyTime::Now() + patience.silence;
      continue;
    }
    const bool may_come_again = absl::IsUnavailable(answer.status()) && reached >= 0;
    if (!may_come_again || deadline.HasPassed()) return answer;
    absl::SleepFor(std::min(kRetryDelay, deadline.Left()));
  }
}

}  // namespace stepwell::traces
