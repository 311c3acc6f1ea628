// ResumedRead: all samples that a request asks for, each once, over as many calls as it takes: a call that
// breaks off is followed by one that goes on behind the last message. A core; the calls are injected.
// Confined to one thread.
//
//   ResumedRead read({.call = [&](const auto& request, const auto& take) {
//                       return master.ReadSamples(request, take); }, ...});
//   absl::Status status = read.Run(request, [&](const v1::ReadSamplesResponse& response) { ... });
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell::cli {

class ResumedRead {
 public:
  // Takes one message; false = no more are wanted.
  using Take = std::function<bool(const v1::ReadSamplesResponse&)>;

  struct Options {
    // As MasterClient::ReadSamples.
    std::function<absl::Status(const v1::ReadSamplesRequest&, const Take&)> call;
    // Waits so long; false = it is to end.
    std::function<bool(absl::Duration)> wait;
    // Once for each break, before the next call. May be empty.
    std::function<void(const absl::Status&)> on_break;
    const Clock& clock;
    // So long without a message, then it gives up. Longer than another master takes to take over.
    absl::Duration patience = absl::Minutes(1);
  };

  // `clock` outlives it.
  explicit ResumedRead(Options options) : options_(std::move(options)) {}

  // Ok: all samples were taken, or no more are wanted. Otherwise the status of the last call: the first
  // one where it brought nothing at all, kCancelled where `wait` said so.
  [[nodiscard]] absl::Status Run(v1::ReadSamplesRequest request, const Take& take);

 private:
  const Options options_;
};

// A line for stderr, that ends in '\n': the call broke off after so many samples. Empty where it only took its whole
// time, which is no news.
std::string BreakText(const absl::Status& why, std::int64_t sample_count);

}  // namespace stepwell::cli
