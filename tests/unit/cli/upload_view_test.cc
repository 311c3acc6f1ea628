#include "client/cli/upload_view.h"

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace stepwell::cli {
namespace {

UploadOutcome Outcome() {
  UploadOutcome outcome;
  outcome.root = "/data/copied";
  outcome.server = "master:7817";
  return outcome;
}

TEST(UploadViewTest, SaysWhatWasStoredAndWhatWasNot) {
  struct Row {
    const char* name;
    UploadOutcome outcome;
    int exit;
    const char* says;
  };
  UploadOutcome stored = Outcome();
  stored.writers_stored = 2;
  stored.frames_stored = 1200;
  stored.samples_stored = 1'234'567;
  UploadOutcome left = stored;
  left.writers_stored = 0;
  left.writers_left = 1;
  left.frames_left = 12;
  UploadOutcome stopped = Outcome();
  stopped.writers_left = 2;
  stopped.was_stopped = true;
  UploadOutcome refused = stored;
  refused.writers_refused = 1;
  refused.refusal = "TRIAL_ARCHIVED: no more";
  UploadOutcome traces = Outcome();
  traces.traces_sent = 2;
  UploadOutcome outside = traces;
  outside.traces_outside = 1;
  UploadOutcome waiting = outside;
  waiting.traces_left = 3;
  UploadOutcome cut = Outcome();
  cut.traces_left = 1;
  cut.was_stopped = true;
  UploadOutcome gone = Outcome();
  gone.traces_gone = 2;
  UploadOutcome given_up = traces;
  given_up.traces_given_up = 1;
  given_up.trace_trouble = "a cap";
  UploadOutcome archived = Outcome();
  archived.writers_refused = 1;
  archived.refusal = "TRIAL_ARCHIVED: no more";
  archived.traces_refused = 2;
  archived.trace_refusal = "trial 7 is archived";
  UploadOutcome absent = Outcome();
  absent.traces_absent = 1;
  UploadOutcome broken = Outcome();
  broken.unreadable = 1;
  broken.trouble = "writer.json: no JSON object";
  const Row rows[] = {
      {"nothing", Outcome(), kExitOk, "Nothing to send: all that /data/copied holds is stored.\n"},
      {"stored", stored, kExitOk,
       "2 writers, 1,200 frames, 1,234,567 samples stored at master:7817.\n"},
      {"left", left, kExitAgain,
       "0 writers, 1,200 frames, 1,234,567 samples stored at master:7817.\n"
       "1 writer with 12 frames left: no ack came in time. Nothing of it is lost: run the same "
       "command again.\n"},
      {"stopped", stopped, kExitAgain,
       "2 writers with 0 frames left: stopped before they were acked. Nothing of it is lost: run "
       "the same command again.\n"},
      {"refused", refused, kExitFailed,
       "2 writers, 1,200 frames, 1,234,567 samples stored at master:7817.\n"
       "1 writer refused by the master (TRIAL_ARCHIVED: no more); what they hold stays in "
       "/data/copied.\n"},
      {"traces", traces, kExitOk, "2 traces sent to master:7817: 'stepwell trace list'.\n"},
      {"traces outside", outside, kExitFailed,
       "2 traces sent to master:7817: 'stepwell trace list'.\n"
       "1 trace left: the file lies outside of the spool directory; of one that nobody else wrote "
       "--named-files sends it, too.\n"},
      {"traces that wait", waiting, kExitAgain,
       "2 traces sent to master:7817: 'stepwell trace list'.\n"
       "3 traces left: not taken in time; run the same command again.\n"
       "1 trace left: the file lies outside of the spool directory; of one that nobody else wrote "
       "--named-files sends it, too.\n"},
      {"stopped traces", cut, kExitAgain,
       "1 trace left: stopped before all were taken; run the same command again.\n"},
      {"removed", gone, kExitOk, "2 traces not sent: the file is not there any more, or empty.\n"},
      {"given up", given_up, kExitFailed,
       "2 traces sent to master:7817: 'stepwell trace list'.\n"
       "1 trace given up: a cap.\n"},
      {"of an archived trial", archived, kExitFailed,
       "2 traces not taken by the master (trial 7 is archived), and kept.\n"
       "1 writer refused by the master (TRIAL_ARCHIVED: no more); what they hold stays in "
       "/data/copied.\n"},
      {"of a disk that is not mounted", absent, kExitFailed,
       "1 trace left: its directory is not there; once it is, run the same command again.\n"},
      {"unreadable", broken, kExitFailed,
       "1 directory cannot be read (writer.json: no JSON object).\n"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(ExitOf(row.outcome), row.exit);
    EXPECT_EQ(UploadText(row.outcome), row.says);
    EXPECT_EQ(nlohmann::json::parse(UploadJson(row.outcome))["frames_left"],
              row.outcome.frames_left);
  }
}

}  // namespace
}  // namespace stepwell::cli
