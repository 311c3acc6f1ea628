// TrialsView: what `stepwell trials`, `stepwell series` and `stepwell admin` print, from answers of
// the master. Pure functions, tested against golden files.
#pragma once

#include <string>
#include <vector>

#include "client/cli/terminal.h"
#include "stepwell/v1/admin.pb.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell::cli {

std::string TrialsText(const std::vector<v1::Trial>& trials, const Paint& paint);
std::string TrialsJson(const std::vector<v1::Trial>& trials);

std::string SeriesText(const std::vector<v1::Series>& series, const Paint& paint);
std::string SeriesJson(const std::vector<v1::Series>& series);

std::string FlushText(const v1::FlushResponse& flush);
// `trial` is as it was given on the command line.
std::string ProfilingText(const std::string& trial, const v1::SetProfilingResponse& response);
std::string StatusText(const v1::GetStatusResponse& status, const Paint& paint);

}  // namespace stepwell::cli
