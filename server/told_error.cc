#include "server/told_error.h"

#include <cstddef>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/steady_time.h"
#include "base/uuid.h"
#include "storage/pg_error.h"

namespace stepwell {
namespace {

bool IsOurs(const absl::Status& status) {
  return IsOfDatabase(status) || status.code() == absl::StatusCode::kInternal ||
         status.code() == absl::StatusCode::kUnknown ||
         status.code() == absl::StatusCode::kDataLoss;
}

const char* OurWords(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
      return "the database took too long; ask for less, or with more time";
    case absl::StatusCode::kInvalidArgument:
      return "the database takes no such value";
    case absl::StatusCode::kDataLoss:
      return "what is stored there cannot be read";
    default:
      return "the master failed at it";
  }
}

void LogFailure(const std::string& request_id, const absl::Status& status) {
  log::Warning("call_failed", {{"request_id", request_id}, {"status", status.ToString()}});
}

// Of failures that are told many times a second while a database is away: each of its words once a second, under one id.
class FailureLog {
 public:
  std::string IdOf(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_) {
    std::string request_id;
    bool is_new = false;
    {
      const absl::MutexLock lock(&mu_);
      const SteadyTime now = SteadyTime::Now();
      std::string text = status.ToString();
      if (told_.size() >= kTextsMax && !told_.contains(text)) told_.clear();
      Told& told = told_[std::move(text)];
      is_new = told.request_id.empty() || now - told.since >= kEach;
      if (is_new) told = {MakeRequestId(), now};
      request_id = told.request_id;
    }
    if (is_new) LogFailure(request_id, status);
    return request_id;
  }

 private:
  static constexpr absl::Duration kEach = absl::Seconds(1);
  static constexpr std::size_t kTextsMax = 16;
  struct Told {
    std::string request_id;
    SteadyTime since = SteadyTime::InfinitePast();
  };
  absl::Mutex mu_;
  absl::flat_hash_map<std::string, Told> told_ ABSL_GUARDED_BY(mu_);
};

FailureLog& Sparing() {
  static FailureLog* const log = new FailureLog;
  return *log;
}

}  // namespace

std::string MakeRequestId() { return Uuid::Random().ToText().substr(0, 13); }

ToldError TellClient(const absl::Status& status) {
  if (!IsOurs(status)) return {std::string(status.message()), ""};
  if (absl::IsUnavailable(status)) {
    const std::string request_id = Sparing().IdOf(status);
    return {absl::StrCat("the database does not answer now; try again (request ", request_id,
                         " in the master's log)"),
            request_id};
  }
  const std::string request_id = MakeRequestId();
  LogFailure(request_id, status);
  return {absl::StrCat(OurWords(status), "; request ", request_id, " in the master's log"),
          request_id};
}

}  // namespace stepwell
