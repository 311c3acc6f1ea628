// How a trace goes to a master that says when to come again.
#include "client/traces/trace_upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"

namespace stepwell::traces {
namespace {

using ::testing::SizeIs;

// Takes what it is sent, and refuses so many calls first.
class BusyMaster {
 public:
  absl::StatusOr<v1::UploadTraceResponse> Take(const v1::TraceUpload& upload,
                                               const std::function<bool(v1::TracePart&)>& next) {
    called.push_back(SteadyTime::Now());
    v1::TracePart part;
    // It refuses a part, not the header that asks how far it is.
    while (next(part)) {
      if (refusals > 0) {
        --refusals;
        absl::Status refused = absl::ResourceExhaustedError("too many bytes");
        if (says_when) SetComeAgain(delay, refused);
        return refused;
      }
      EXPECT_EQ(part.offset(), static_cast<std::int64_t>(bytes.size()));
      bytes += part.data();
    }
    v1::UploadTraceResponse response;
    response.set_received_bytes(static_cast<std::int64_t>(bytes.size()));
    response.set_complete(response.received_bytes() == upload.header().byte_count());
    return response;
  }

  int refusals = 0;
  bool says_when = true;
  absl::Duration delay = absl::Milliseconds(50);
  std::string bytes;
  std::vector<SteadyTime> called;
};

class TraceUploadTest : public ::testing::Test {
 protected:
  TraceUploadTest() {
    std::ofstream(path_) << text_;
    prepared_ = *PrepareTrace(path_, {});
    patience_.on_told = [this](absl::Duration wait) { told_.push_back(wait); };
  }
  ~TraceUploadTest() override { std::remove(path_.c_str()); }
  absl::Status Send() {
    return SendTrace(
               [this](const auto& upload, const auto& next) { return master_.Take(upload, next); },
               v1::TrialRef(), prepared_, patience_)
        .status();
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "upload-", getpid(), ".txt");
  const std::string text_ = std::string(3'000'000, 'x');
  PreparedTrace prepared_;
  BusyMaster master_;
  SendPatience patience_;
  std::vector<absl::Duration> told_;
};

TEST_F(TraceUploadTest, ComesAgainAsItIsToldAndAllArrives) {
  master_.refusals = 3;
  patience_.told_left = absl::Minutes(1);
  const SteadyTime begin = SteadyTime::Now();
  ASSERT_TRUE(Send().ok());
  EXPECT_EQ(master_.bytes, text_);
  EXPECT_GE(SteadyTime::Now() - begin, 3 * master_.delay);
  EXPECT_LE(patience_.told_left, absl::Minutes(1) - 3 * master_.delay);
  // Before each wait how long it is, and then that it is over.
  ASSERT_THAT(told_, SizeIs(6));
  for (std::size_t at = 0; at < told_.size(); at += 2) {
    EXPECT_GE(told_[at], master_.delay);
    EXPECT_LE(told_[at], 1.25 * master_.delay);
    EXPECT_EQ(told_[at + 1], absl::ZeroDuration());
  }
}

TEST_F(TraceUploadTest, GivesUpWhereThePatienceForItIsUsedUp) {
  master_.refusals = 1000;
  patience_.told_left = absl::Milliseconds(180);
  const SteadyTime begin = SteadyTime::Now();
  const absl::Status status = Send();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(ComeAgainOf(status), master_.delay);
  EXPECT_LT(1000 - master_.refusals, 6);
  EXPECT_GT(1000 - master_.refusals, 2);
  EXPECT_LT(SteadyTime::Now() - begin, absl::Seconds(20));
  // One that is told to come tomorrow does not wait at all.
  master_.delay = absl::Hours(24);
  told_.clear();
  EXPECT_EQ(ComeAgainOf(Send()), absl::Hours(24));
  EXPECT_THAT(told_, SizeIs(0));
}

TEST_F(TraceUploadTest, ARefusalThatSaysNothingOfLaterIsOne) {
  master_.refusals = 1;
  master_.says_when = false;
  patience_.told_left = absl::Minutes(1);
  const absl::Status status = Send();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_FALSE(ComeAgainOf(status).has_value());
  EXPECT_THAT(told_, SizeIs(0));
}

// A protobuf may begin with a line's end and a length that is a bracket.
TEST(AskedFormatTest, JsonIsTakenForNoProtobuf) {
  const std::string path = absl::StrCat(::testing::TempDir(), "asked-", getpid());
  const struct {
    std::string bytes;
    bool is_json;
  } rows[] = {{"[ {\"ph\": \"X\"}]", true},
              {"\n{\"traceEvents\": []}", true},
              {std::string("\n{\x08\x01\x12\x03/a", 8), false},
              {std::string("\n[\x08\x01", 4), false}};
  for (const auto& row : rows) {
    std::ofstream(path) << row.bytes;
    for (const auto format : {v1::TRACE_FORMAT_XPLANE, v1::TRACE_FORMAT_PERFETTO}) {
      const absl::Status prepared = PrepareTrace(path, {.format = format}).status();
      EXPECT_EQ(absl::IsInvalidArgument(prepared), row.is_json) << row.bytes << prepared;
    }
    EXPECT_TRUE(PrepareTrace(path, {.format = v1::TRACE_FORMAT_TEXT}).ok());
  }
  std::remove(path.c_str());
}

class NamedTraceTest : public ::testing::Test {
 protected:
  ~NamedTraceTest() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& path) const {
    const std::filesystem::path whole = folder_ / path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << "[]";
    return whole;
  }
  v1::TraceHeader HeaderOf(const std::string& path, const TraceChoice& choice = {}) const {
    return PrepareTrace(Write(path), choice)->header;
  }

  const std::filesystem::path folder_ = absl::StrCat(::testing::TempDir(), "named-", getpid());
};

TEST_F(NamedTraceTest, ItsBatchesAreThoseBeforeTheCountInItsName) {
  const struct {
    const char* name;
    std::int32_t epoch;       // -1: none
    std::int32_t last_batch;  // likewise
  } rows[] = {
      {"ep2-ba800-rank3.pftrace", 2, 799}, {"capture-ep0-ba8-rank3.pftrace", 0, 7},
      {"ep0-ba7-rank0.json", 0, 6},  // Composer's, likewise
      {"ep1-ba0-rank0.json", 1, -1},       {"ep99999999999-ba99999999999-rank0.json", -1, -1},
      {"rank3.7.pt.trace.json", -1, -1},
  };
  for (const auto& row : rows) {
    const v1::TraceHeader header = HeaderOf(row.name);
    EXPECT_EQ(header.has_epoch() ? header.epoch() : -1, row.epoch) << row.name;
    EXPECT_EQ(header.has_last_batch() ? header.last_batch() : -1, row.last_batch) << row.name;
  }
}

TEST_F(NamedTraceTest, ANameThatSaysAnotherRankThanTheTraceIsTold) {
  const struct {
    const char* name;
    std::optional<std::int32_t> chosen;
    const char* said;
    std::int32_t rank;
    const char* note;  // nullptr: none
  } rows[] = {
      {"rank2.json",
       {},
       R"("distributedInfo":{"rank":7})",
       2,
       "its name says rank 2, the trace itself rank 7; it is kept as rank 2"},
      {"rank2.json", {}, R"("distributedInfo":{"rank":2})", 2, nullptr},
      {"rank2.json", 2, R"("distributedInfo":{"rank":7})", 2, nullptr},
      {"host.json", {}, R"("distributedInfo":{"rank":7})", 7, nullptr},
      {"rank2.json", {}, R"("schemaVersion":1)", 2, nullptr},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(absl::StrCat(row.name, " ", row.said));
    const std::string path = Write(row.name);
    std::ofstream(path) << "{" << row.said << R"(,"traceEvents":[{"ph":"X","ts":1}]})";
    const auto prepared = PrepareTrace(path, {.rank = row.chosen});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    EXPECT_EQ(prepared->header.rank(), row.rank);
    EXPECT_EQ(prepared->notes, row.note == nullptr ? std::vector<std::string>()
                                                   : std::vector<std::string>({row.note}));
  }
}

TEST_F(NamedTraceTest, ASessionNamesWhatIsImportedFromItUnlessBatchesDo) {
  const std::string path = "plugins/profile/s/host.xplane.pb";
  EXPECT_EQ(HeaderOf(path).name(), "host.xplane.pb");
  EXPECT_EQ(HeaderOf(path, {.names_session = true}).name(), "s@host.xplane.pb");
  const std::string of_cycle = "plugins/profile/s/ep0-ba8-rank3.xplane.pb";
  EXPECT_EQ(HeaderOf(of_cycle, {.names_session = true}).name(), "ep0-ba8-rank3.xplane.pb");
}

}  // namespace
}  // namespace stepwell::traces
