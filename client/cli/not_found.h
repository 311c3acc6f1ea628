// NotFound: what a person reads where nothing matched: what there is instead, and how to see it.
//
//   if (!report.ok()) return ReportTrialFailure(report.status(), trial, master, address, streams);
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/master_client.h"

namespace stepwell::cli {

// As ReportFailure; where the master does not know `trial`, names the newest it knows. Asks the
// master again, only then.
int ReportTrialFailure(const absl::Status& status, const v1::TrialRef& trial, MasterClient& master,
                       const std::string& address, Streams streams);

// For a read or a list of `request`'s series that held nothing: a line or two that end in '\n'.
// Asks the master which series the trial has.
std::string NothingMatchedText(MasterClient& master, const v1::TrialRef& trial,
                               const v1::SeriesSelector& selector);

// "The newest trials: a, b, c ('stepwell trials' lists them)." `newest` are all that were asked for.
std::string KnownTrialsText(const std::vector<v1::Trial>& newest);
// What `selector` leaves of `series`, which are all of the trial. `argument` names the trial on a
// command line.
std::string KnownSeriesText(const std::vector<v1::Series>& series,
                            const v1::SeriesSelector& selector, const std::string& argument);

}  // namespace stepwell::cli
