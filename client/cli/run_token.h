// RunToken: the token that a training is given by `stepwell run --trial-token` in place of the one that its user has, which
// may do more: a short-lived one to ingest its trial alone, or that one, where it may do no more. The training's agent renews it. A training never waits for it
// longer than a moment, nor does it fail for the want of it: what it has then is the token as it was.
//
//   const RunToken token = FetchRunToken(around, variables);
//   if (!token.text.empty()) variables["STEPWELL_TOKEN"] = token.text;
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/master_place.h"
#include "client/cli/run_variables.h"
#include "client/recorder/src/agent_launch.h"
#include "stepwell/v1/token.pb.h"

namespace stepwell::cli {

struct RunToken {
  std::string text;  // empty: none, the training has what it would have
  std::string
      trial;  // whose, as STEPWELL_TRIAL_TOKEN names it behind the text: PROJECT/TRIAL, or id:7
  std::string remark;  // why none, for people; empty where there is nothing to say
};

// What would be asked for, and of whom. Pure.
struct RunTokenWish {
  std::string address;
  v1::FetchIngestTokenRequest request;
};
// Nothing where there is nothing to ask for: no token is given, it is shown to nobody (in plain, offline, switched off), or nobody
// names the trial; `remark` says the last.
std::optional<RunTokenWish> ReadRunTokenWish(const recorder::ProgramSurroundings& around,
                                             const RunVariables& variables, std::string& remark);

// Asks in a process of its own, which is ended after three seconds: what a library holds of it, its threads and descriptors, is
// nothing of the training's. REQUIRES: this process has no other thread.
RunToken FetchRunToken(const recorder::ProgramSurroundings& around, const RunVariables& variables);

}  // namespace stepwell::cli
