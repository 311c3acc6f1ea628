// TraceSenderStand: a TraceSender over a folder of its own, and the master that it speaks to.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "client/agent/server_address.h"
#include "client/agent/trace_sender.h"

namespace stepwell::agent {

inline constexpr char kSendersWriter[] = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";

// A master that answers as it is told, and keeps what it is given.
struct FakeTraceMaster {
  absl::Mutex mu;
  std::vector<absl::Status> answers ABSL_GUARDED_BY(mu);  // of the next calls; then it takes all
  std::vector<std::string> calls ABSL_GUARDED_BY(mu);
  std::vector<std::string> tokens ABSL_GUARDED_BY(mu);          // shown in place of the agent's
  std::map<std::string, std::string> kept ABSL_GUARDED_BY(mu);  // by name
  v1::TraceUpload last ABSL_GUARDED_BY(mu);
  std::vector<std::string> order ABSL_GUARDED_BY(mu);  // names, as their uploads began
  // After each part, and before each call is answered; set before the sender is made.
  std::function<void()> on_part;
  std::function<void()> on_call;
  std::function<void()> on_cancel;
};

class FakeTraceCalls : public TraceCalls {
 public:
  explicit FakeTraceCalls(FakeTraceMaster& master) : master_(master) {}
  absl::StatusOr<v1::UploadTraceResponse> UploadTo(
      const std::string& server, const std::string& token, const v1::TraceUpload& upload,
      const std::function<bool(v1::TracePart&)>& next) override {
    const absl::MutexLock lock(&master_.mu);
    master_.calls.push_back(server);
    master_.tokens.push_back(token);
    if (master_.on_call) master_.on_call();
    if (!master_.answers.empty()) {
      const absl::Status answer = master_.answers.front();
      master_.answers.erase(master_.answers.begin());
      if (!answer.ok()) return answer;
    }
    master_.last = upload;
    master_.order.push_back(upload.header().name());
    std::string& kept = master_.kept[upload.header().name()];
    v1::TracePart part;
    while (next(part)) {
      kept += part.data();
      if (master_.on_part) master_.on_part();
    }
    v1::UploadTraceResponse response;
    response.set_trace_no(1);
    response.set_received_bytes(static_cast<std::int64_t>(kept.size()));
    response.set_complete(response.received_bytes() == upload.header().byte_count());
    return response;
  }
  void Cancel() override { CancelCall(); }
  void CancelCall() override {
    if (master_.on_cancel) master_.on_cancel();
  }

 private:
  FakeTraceMaster& master_;
};

class TraceSenderStand : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-trace-sender-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    auto directory = OpenAt(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  std::unique_ptr<TraceSender> Make(absl::Duration unknown_max = absl::Minutes(10),
                                    bool sends_named_files = true) {
    return std::make_unique<TraceSender>(
        directory_.get(),
        TraceSender::Options{.machine = "node-a",
                             .retry = {absl::Milliseconds(1), absl::Milliseconds(5)},
                             .unknown_max = unknown_max,
                             .sends_named_files = sends_named_files,
                             .kept_bytes_max = kept_bytes_max_,
                             .kept_age_max = kept_age_max_,
                             .shows_writers_token = shows_writers_token_,
                             .stall_max = stall_max_,
                             .packed_of_max = packed_of_max_,
                             .prepared_bytes_max = prepared_bytes_max_,
                             .recordings = recordings_},
        [](const std::string& server) { return server.empty() ? "default:1" : server; },
        std::make_unique<FakeTraceCalls>(master_));
  }
  TraceJob Job(const std::string& name, const std::string& text, const std::string& server = "") {
    TraceJob job;
    job.writer.writer = *Uuid::FromText(kSendersWriter);
    job.writer.server = server;
    job.writer.project = "default";
    job.writer.trial = "run";
    job.writer.rank = 3;
    job.path = absl::StrCat(path_, "/", name);
    std::ofstream(job.path, std::ios::binary) << text;
    return job;
  }
  static bool Becomes(const std::function<bool()>& is_so) {
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
    while (!is_so()) {
      if (deadline.HasPassed()) return false;
      absl::SleepFor(absl::Milliseconds(2));
    }
    return true;
  }
  static bool BecomesDone(TraceSender& sender) {
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
    do {
      sender.Tend();
      if (sender.is_done()) return true;
      absl::SleepFor(absl::Milliseconds(2));
    } while (!deadline.HasPassed());
    return false;
  }
  std::vector<std::string> Notes() const { return *TraceOutbox(directory_.get()).Names(); }

  std::int64_t kept_bytes_max_ = INT64_MAX;
  absl::Duration kept_age_max_ = absl::InfiniteDuration();
  absl::Duration stall_max_ = absl::Minutes(10);
  bool shows_writers_token_ = false;
  std::int64_t packed_of_max_ = 1 << 20;
  std::int64_t prepared_bytes_max_ = 1 << 20;
  RecordingNotes::Options recordings_ = {.look = absl::Milliseconds(2),
                                         .rest = absl::Milliseconds(2)};
  std::string path_;
  FileDescriptor directory_;
  FakeTraceMaster master_;
};

}  // namespace stepwell::agent
