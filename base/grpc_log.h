// What gRPC has to say, in our log: strangers have a part in it (a header that is none stands there as it came, a
// failed handshake is a line each), so that it is escaped, cut and sparing there, as all that is of others. Header
// only: who includes it links gRPC.
//
//   LogWhatGrpcSays();   // once, before the first thread
#pragma once

#include <grpc/support/log.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/sparing_log.h"
#include "base/steady_time.h"

namespace stepwell {

inline void LogWhatGrpcSays() {
  gpr_set_log_function([](gpr_log_func_args* line) {
    // gRPC's threads may outlive what is static. What an error has to say does not wait for what others said.
    static SparingLog& errors = *new SparingLog();
    static SparingLog& rest = *new SparingLog();
    constexpr std::size_t kBytesMax = 512;
    const absl::string_view what = line->message;
    // Why it ends the process is told in any case.
    const bool is_last = absl::StartsWith(what, "assertion failed");
    const bool is_error = line->severity == GPR_LOG_SEVERITY_ERROR;
    const auto others = (is_error ? errors : rest).MaySay(SteadyTime::Now());
    if (!others && !is_last) return;
    const auto level = is_error ? log::Level::kWarning : log::Level::kDebug;
    const absl::string_view file = line->file;
    const std::size_t slash = file.rfind('/');
    const std::string where = absl::StrCat(
        slash == absl::string_view::npos ? file : file.substr(slash + 1), ":", line->line);
    log::Write(is_last ? log::Level::kError : level, "grpc_said",
               {{"what", what.substr(0, kBytesMax)},
                {"where", where},
                {"others_since", others.value_or(0)}});
  });
}

}  // namespace stepwell
