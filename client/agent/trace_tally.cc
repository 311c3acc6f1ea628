#include "client/agent/trace_tally.h"

#include "base/log.h"

namespace stepwell::agent {

void TraceTally::Uploaded() {
  const absl::MutexLock lock(&mu_);
  ++counts_.uploaded;
}

void TraceTally::GiveUp(const Which& which, const absl::Status& why) {
  log::Warning("trace_not_uploaded",
               {{"path", which.path}, {"note", which.note}, {"why", std::string(why.message())}});
  Count(why);
}

void TraceTally::GiveUpNote(const std::string& note, const absl::Status& why) {
  log::Warning("trace_note_unusable", {{"note", note}, {"why", std::string(why.message())}});
  Count(why);
}

void TraceTally::LeaveOutside(const std::string& path) {
  log::Warning("trace_left", {{"path", path},
                              {"why",
                               "it lies outside of the spool directory; --named-files sends what "
                               "the notes there name, which are to be your own"}});
  const absl::MutexLock lock(&mu_);
  ++counts_.outside;
}

TraceTally::Counts TraceTally::counts() const {
  const absl::MutexLock lock(&mu_);
  return counts_;
}

void TraceTally::Count(const absl::Status& why) {
  const absl::MutexLock lock(&mu_);
  if (absl::IsNotFound(why)) {
    ++counts_.gone;
    return;
  }
  ++counts_.given_up;
  counts_.why_given_up = std::string(why.message());
}

}  // namespace stepwell::agent
