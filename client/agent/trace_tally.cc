#include "client/agent/trace_tally.h"

#include "base/log.h"

namespace stepwell::agent {

void TraceTally::Uploaded() {
  const absl::MutexLock lock(&mu_);
  ++counts_.uploaded;
}

void TraceTally::GiveUp(const Which& which, const absl::Status& why, bool is_gone) {
  log::Warning("trace_not_uploaded",
               {{"path", which.path}, {"note", which.note}, {"why", std::string(why.message())}});
  if (!is_gone) return CountGivenUp(why);
  const absl::MutexLock lock(&mu_);
  ++counts_.gone;
}

void TraceTally::GiveUpNote(const std::string& note, const absl::Status& why) {
  log::Warning("trace_note_unusable", {{"note", note}, {"why", std::string(why.message())}});
  CountGivenUp(why);
}

void TraceTally::LeaveOutside(const std::string& path) {
  log::Warning("trace_left", {{"path", path},
                              {"why",
                               "it lies outside of the spool directory; --named-files sends what "
                               "the notes there name, which are to be your own"}});
  const absl::MutexLock lock(&mu_);
  ++counts_.outside;
}

void TraceTally::LeaveAbsent(const Which& which, const absl::Status& why) {
  log::Warning("trace_left",
               {{"path", which.path}, {"note", which.note}, {"why", std::string(why.message())}});
  const absl::MutexLock lock(&mu_);
  ++counts_.absent;
}

void TraceTally::SetRefused(std::uint64_t count, const std::string& why) {
  const absl::MutexLock lock(&mu_);
  counts_.refused = count;
  counts_.why_refused = why;
}

TraceTally::Counts TraceTally::counts() const {
  const absl::MutexLock lock(&mu_);
  return counts_;
}

void TraceTally::CountGivenUp(const absl::Status& why) {
  const absl::MutexLock lock(&mu_);
  ++counts_.given_up;
  counts_.why_given_up = std::string(why.message());
}

}  // namespace stepwell::agent
