#include "client/cli/upload_view.h"

#include "absl/strings/str_cat.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"
#include "nlohmann/json.hpp"

namespace stepwell::cli {
namespace {

std::string Plural(std::uint64_t count, const char* noun) {
  return absl::StrCat(CountText(static_cast<std::int64_t>(count)), " ", noun,
                      count == 1 ? "" : "s");
}

std::string TracesText(const UploadOutcome& outcome) {
  std::string text;
  if (outcome.traces_sent > 0) {
    absl::StrAppend(&text, Plural(outcome.traces_sent, "trace"), " sent to ",
                    Printable(outcome.server), ": 'stepwell trace list'.\n");
  }
  if (outcome.traces_gone > 0) {
    absl::StrAppend(&text, Plural(outcome.traces_gone, "trace"),
                    " not sent: the file is not there any more, or empty.\n");
  }
  if (outcome.traces_given_up > 0) {
    absl::StrAppend(&text, Plural(outcome.traces_given_up, "trace"),
                    " given up: ", Printable(outcome.trace_trouble), ".\n");
  }
  if (outcome.traces_left > 0) {
    absl::StrAppend(&text, Plural(outcome.traces_left, "trace"), " left: ",
                    outcome.was_stopped ? "stopped before all were taken" : "not taken in time",
                    "; run the same command again.\n");
  }
  if (outcome.traces_refused > 0) {
    absl::StrAppend(&text, Plural(outcome.traces_refused, "trace"), " not taken by the master (",
                    Printable(outcome.trace_refusal), "), and kept.\n");
  }
  if (outcome.traces_absent > 0) {
    absl::StrAppend(&text, Plural(outcome.traces_absent, "trace"),
                    " left: its directory is not there; once it is, run the same command again.\n");
  }
  if (outcome.traces_outside > 0) {
    absl::StrAppend(&text, Plural(outcome.traces_outside, "trace"),
                    " left: the file lies outside of the spool directory; of one that nobody else "
                    "wrote --named-files sends it, too.\n");
  }
  return text;
}

}  // namespace

int ExitOf(const UploadOutcome& outcome) {
  if (outcome.writers_left > 0 || outcome.traces_left > 0) return kExitAgain;
  const std::uint64_t failed = outcome.writers_refused + outcome.unreadable +
                               outcome.traces_given_up + outcome.traces_outside +
                               outcome.traces_absent + outcome.traces_refused;
  return failed > 0 ? kExitFailed : kExitOk;
}

std::string UploadText(const UploadOutcome& outcome) {
  std::string text;
  if (outcome.writers_stored > 0 || outcome.frames_stored > 0) {
    absl::StrAppend(&text, Plural(outcome.writers_stored, "writer"), ", ",
                    Plural(outcome.frames_stored, "frame"), ", ",
                    Plural(outcome.samples_stored, "sample"), " stored at ",
                    Printable(outcome.server), ".\n");
  } else if (ExitOf(outcome) == kExitOk && outcome.traces_sent + outcome.traces_gone == 0) {
    absl::StrAppend(&text, "Nothing to send: all that ", Printable(outcome.root),
                    " holds is stored.\n");
  }
  absl::StrAppend(&text, TracesText(outcome));
  if (outcome.writers_left > 0) {
    absl::StrAppend(&text, Plural(outcome.writers_left, "writer"), " with ",
                    Plural(outcome.frames_left, "frame"), " left: ",
                    outcome.was_stopped ? "stopped before they were acked" : "no ack came in time",
                    ". Nothing of it is lost: run the same command again.\n");
  }
  if (outcome.writers_refused > 0) {
    absl::StrAppend(&text, Plural(outcome.writers_refused, "writer"), " refused by the master (",
                    Printable(outcome.refusal), "); what they hold stays in ",
                    Printable(outcome.root), ".\n");
  }
  if (outcome.unreadable > 0) {
    absl::StrAppend(&text, CountText(static_cast<std::int64_t>(outcome.unreadable)),
                    outcome.unreadable == 1 ? " directory" : " directories", " cannot be read (",
                    Printable(outcome.trouble), ").\n");
  }
  return text;
}

std::string UploadJson(const UploadOutcome& outcome) {
  const nlohmann::ordered_json json = {{"root", outcome.root},
                                       {"server", outcome.server},
                                       {"writers_stored", outcome.writers_stored},
                                       {"frames_stored", outcome.frames_stored},
                                       {"samples_stored", outcome.samples_stored},
                                       {"traces_sent", outcome.traces_sent},
                                       {"traces_gone", outcome.traces_gone},
                                       {"traces_given_up", outcome.traces_given_up},
                                       {"trace_trouble", outcome.trace_trouble},
                                       {"traces_outside", outcome.traces_outside},
                                       {"traces_absent", outcome.traces_absent},
                                       {"traces_refused", outcome.traces_refused},
                                       {"trace_refusal", outcome.trace_refusal},
                                       {"traces_left", outcome.traces_left},
                                       {"writers_left", outcome.writers_left},
                                       {"frames_left", outcome.frames_left},
                                       {"writers_refused", outcome.writers_refused},
                                       {"refusal", outcome.refusal},
                                       {"unreadable", outcome.unreadable},
                                       {"trouble", outcome.trouble},
                                       {"was_stopped", outcome.was_stopped}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace stepwell::cli
