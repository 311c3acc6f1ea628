// Traces in the database: parts, caps, what is refused, what goes, and an upload that is cut at every part.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "storage/pg_trace_store.h"
#include "storage/trace_uploading.h"
#include "tests/contract/caps_store_test.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::kEpoch;
using testing::kNowUs;

std::string BytesOf(std::int64_t count, char seed) {
  std::string bytes(static_cast<std::size_t>(count), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(seed + static_cast<char>(i * 31 + i / 977));
  }
  return bytes;
}

struct TraceBeginning {
  TrialSelector trial = {};
  StoredTraceHeader header = {};
};

TraceBeginning BeginningOf(const std::string& trial, const std::string& name,
                           const std::string& bytes) {
  Sha256 sha;
  sha.Feed(bytes);
  TraceBeginning beginning;
  beginning.trial.external_id = trial;
  beginning.header.name = name;
  beginning.header.byte_count = static_cast<std::int64_t>(bytes.size());
  beginning.header.sha256 = sha.Finish();
  return beginning;
}

class TraceStoreTest : public CapsStoreTest {
 protected:
  // From where the store stands, `count` bytes at most.
  absl::StatusOr<TraceRecord> Upload(const TraceBeginning& beginning, const std::string& bytes,
                                     std::int64_t count = INT64_MAX) {
    TraceUploading uploading(traces_, kEpoch);
    if (absl::Status begun = uploading.Begin(beginning.trial, kAllProjects, beginning.header);
        !begun.ok())
      return begun;
    const auto size = static_cast<std::int64_t>(bytes.size());
    std::int64_t at = uploading.trace().received_bytes;
    const std::int64_t end = count < size - at ? at + count : size;
    while (at < end) {
      const std::int64_t piece = std::min<std::int64_t>(700'000, end - at);
      const absl::Status taken =
          uploading.Take(at, std::string_view(bytes).substr(static_cast<std::size_t>(at),
                                                            static_cast<std::size_t>(piece)));
      if (!taken.ok()) return taken;
      at += piece;
    }
    return uploading.trace();
  }
  std::string Read(const TraceRecord& trace) {
    std::string bytes;
    for (std::int64_t part = 0; part * kTracePartBytes < trace.header.byte_count; ++part) {
      const auto read = traces_.ReadPart(trace, part);
      EXPECT_TRUE(read.ok()) << read.status();
      if (!read.ok()) return bytes;
      bytes += *read;
    }
    return bytes;
  }
  TraceList List(const std::string& trial) {
    const auto list = traces_.List({.external_id = trial}, kAllProjects, 0, 1000);
    EXPECT_TRUE(list.ok()) << list.status();
    return list.ok() ? *list : TraceList();
  }
  // The ledger says what the table holds.
  void ExpectLedger() {
    EXPECT_EQ(Number("select count(*) from stepwell.trace_usage u where u.byte_count <> (select "
                     "coalesce(sum(t.byte_count), 0) from stepwell.traces t where t.trial_id = "
                     "u.trial_id and t.state <= 2)"),
              0);
    EXPECT_EQ(
        Number("select count(*) from stepwell.trace_parts p where not exists (select from "
               "stepwell.traces t where t.trial_id = p.trial_id and t.trace_no = p.trace_no)"),
        0);
    EXPECT_EQ(Number("select count(*) from stepwell.traces t where t.state <= 2 and t.part_count "
                     "<> (select count(*) from stepwell.trace_parts p where p.trial_id = "
                     "t.trial_id and p.trace_no = t.trace_no)"),
              0);
  }
  static std::string ReasonOf(const absl::Status& status) {
    const auto reason = status.GetPayload("stepwell/reason");
    return reason ? std::string(*reason) : "";
  }

  PgTraceStore traces_{{.url = url_}};
};

TEST_F(TraceStoreTest, WhatCameIsReadByteForByteWhateverItsLength) {
  OpenWriter("t");
  int no = 0;
  for (const std::int64_t size : {std::int64_t{1}, kTracePartBytes - 1, kTracePartBytes,
                                  kTracePartBytes + 1, 2 * kTracePartBytes + 5}) {
    const std::string bytes = BytesOf(size, 'a');
    const auto trace = Upload(BeginningOf("t", absl::StrCat(size, ".json"), bytes), bytes);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->trace_no, ++no);
    EXPECT_EQ(trace->state, StoredTraceState::kComplete);
    EXPECT_TRUE(Read(*trace) == bytes) << size;
  }
  EXPECT_EQ(List("t").traces.size(), 5U);
  ExpectLedger();
}

TEST_F(TraceStoreTest, AnUploadThatIsCutAtEveryPartGoesOnAndIsThereOnce) {
  OpenWriter("t");
  const std::string bytes = BytesOf(4 * kTracePartBytes + 77, 'q');
  const TraceBeginning beginning = BeginningOf("t", "cut.json", bytes);
  std::int64_t before = -1;
  // A part and a half each: the half comes again.
  for (int calls = 0; calls < 10; ++calls) {
    const auto trace = Upload(beginning, bytes, kTracePartBytes * 3 / 2);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->trace_no, 1);
    if (trace->state == StoredTraceState::kComplete) break;
    EXPECT_GT(trace->received_bytes, before);
    EXPECT_EQ(trace->received_bytes % kTracePartBytes, 0);
    before = trace->received_bytes;
    ExpectLedger();
  }
  const auto again = Upload(beginning, bytes);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->trace_no, 1);
  EXPECT_EQ(again->state, StoredTraceState::kComplete);
  EXPECT_TRUE(Read(*again) == bytes);
  EXPECT_EQ(Number("select count(*) from stepwell.trace_parts"), 5);
  EXPECT_EQ(List("t").byte_count, static_cast<std::int64_t>(bytes.size()));
}

TEST_F(TraceStoreTest, HolesRepeatsAndWrongBytesAreAnswered) {
  OpenWriter("t");
  const std::string bytes = BytesOf(kTracePartBytes + 10, 'h');
  TraceUploading uploading(traces_, kEpoch);
  const TraceBeginning beginning = BeginningOf("t", "holes.json", bytes);
  ASSERT_TRUE(uploading.Begin(beginning.trial, kAllProjects, beginning.header).ok());
  const std::string_view all = bytes;
  ASSERT_TRUE(uploading.Take(0, all.substr(0, 100)).ok());
  const absl::Status hole = uploading.Take(101, all.substr(101, 5));
  EXPECT_EQ(hole.code(), absl::StatusCode::kOutOfRange) << hole;
  EXPECT_EQ(hole.GetPayload("stepwell/metadata/received_bytes").value_or(absl::Cord()), "100");
  EXPECT_EQ(uploading.Take(0, std::string(kTracePartBytes + 1, 'x')).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(uploading.Take(kTracePartBytes, all.substr(0, 11)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(uploading.Take(-1, "x").code(), absl::StatusCode::kInvalidArgument);
  // The same once more, with more behind it.
  ASSERT_TRUE(uploading.Take(50, all.substr(50, 1000)).ok());
  ASSERT_TRUE(uploading.Take(1050, all.substr(1050, kTracePartBytes - 1050)).ok());
  EXPECT_EQ(uploading.trace().received_bytes, kTracePartBytes);

  // Another call ends it meanwhile.
  ASSERT_TRUE(Upload(BeginningOf("t", "holes.json", bytes), bytes).ok());
  const absl::Status late = uploading.Take(kTracePartBytes, all.substr(kTracePartBytes));
  EXPECT_EQ(late.code(), absl::StatusCode::kFailedPrecondition) << late;
  EXPECT_EQ(ReasonOf(late), "TRACE_MOVED");

  // One that ends with other bytes than were told takes nothing from the one that is whole.
  const TraceBeginning twice = BeginningOf("t", "twice.json", bytes.substr(0, 10));
  TraceUploading good(traces_, kEpoch), bad(traces_, kEpoch);
  ASSERT_TRUE(good.Begin(twice.trial, kAllProjects, twice.header).ok());
  ASSERT_TRUE(bad.Begin(twice.trial, kAllProjects, twice.header).ok());
  ASSERT_TRUE(good.Take(0, all.substr(0, 10)).ok());
  EXPECT_EQ(bad.Take(0, "0123456789").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Read(good.trace()), bytes.substr(0, 10));

  std::string wrong = bytes;
  wrong.back() ^= 1;
  TraceBeginning other = BeginningOf("t", "wrong.json", bytes);
  const auto damaged = Upload(other, wrong);
  EXPECT_EQ(damaged.status().code(), absl::StatusCode::kDataLoss) << damaged.status();
  // Sent again, it is there.
  const auto right = Upload(other, bytes);
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_TRUE(Read(*right) == bytes);
  ExpectLedger();
}

TEST_F(TraceStoreTest, CapsRefuseAndAreNotedOnce) {
  const OpenedWriter writer = OpenWriter("t");
  SetCaps({}, {.trace_bytes = 1000, .trial_trace_bytes = 2500});
  const std::string large = BytesOf(1001, 'l');
  for (int times = 0; times < 3; ++times) {
    const auto refused = Upload(BeginningOf("t", "large.json", large), large);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted) << refused.status();
    EXPECT_EQ(ReasonOf(refused.status()), "trace_bytes");
  }
  const std::string one = BytesOf(1000, '1'), two = BytesOf(1000, '2'), three = BytesOf(501, '3');
  ASSERT_TRUE(Upload(BeginningOf("t", "1.json", one), one).ok());
  // What was begun counts whole.
  ASSERT_TRUE(Upload(BeginningOf("t", "2.json", two), two, 0).ok());
  const auto beyond = Upload(BeginningOf("t", "3.json", three), three);
  EXPECT_EQ(ReasonOf(beyond.status()), "trial_trace_bytes") << beyond.status();
  TraceList list = List("t");
  ASSERT_EQ(list.traces.size(), 4U);
  EXPECT_EQ(list.refused_count, 2);
  EXPECT_EQ(list.byte_count, 2000);
  EXPECT_EQ(list.traces[0].state, StoredTraceState::kRefused);
  EXPECT_EQ(list.traces[0].reason, "trace_bytes");
  // Raised, the same is taken under its number; those of other trials are not concerned.
  SetCaps(Of(writer), {.trace_bytes = 0, .trial_trace_bytes = 0});
  const auto taken = Upload(BeginningOf("t", "large.json", large), large);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->trace_no, 1);
  OpenWriter("other");
  EXPECT_EQ(ReasonOf(Upload(BeginningOf("other", "large.json", large), large).status()),
            "trace_bytes");
  ExpectLedger();
}

TEST_F(TraceStoreTest, WithoutAnyCapSetThereAreThoseOfTheProduct) {
  OpenWriter("t");
  TraceBeginning beginning = BeginningOf("t", "huge.json", "x");
  beginning.header.byte_count = (INT64_C(256) << 20) + 1;
  EXPECT_EQ(ReasonOf(Upload(beginning, "").status()), "trace_bytes");
  for (int i = 0; i < 4; ++i) {
    beginning = BeginningOf("t", absl::StrCat(i, ".json"), absl::StrCat(i));
    beginning.header.byte_count = INT64_C(256) << 20;
    EXPECT_TRUE(Upload(beginning, "").ok());
  }
  const std::string one = "1";
  EXPECT_EQ(ReasonOf(Upload(BeginningOf("t", "more.json", one), one).status()),
            "trial_trace_bytes");
}

TEST_F(TraceStoreTest, WhoMayNotAddIsTold) {
  const Uuid own = Uuid::Random();
  const Uuid of_another = Uuid::Random();
  const OpenedWriter writer = OpenWriter("t", kEpoch, own);
  OpenWriter("other", kEpoch, of_another);
  const std::string bytes = BytesOf(10, 'w');
  TraceBeginning beginning = BeginningOf("t", "w.json", bytes);
  for (const Uuid& stranger : {of_another, Uuid::Random()}) {
    beginning.header.writer = stranger;
    EXPECT_EQ(ReasonOf(Upload(beginning, bytes).status()), "WRITER_OF_ANOTHER_TRIAL");
  }
  beginning.header.writer = own;
  const auto taken = Upload(beginning, bytes);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->header.writer, own);
  EXPECT_EQ(Upload(BeginningOf("none", "w.json", bytes), bytes).status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(caps_.Archive(kEpoch, {.external_id = "t"}, kAllProjects, true).ok());
  EXPECT_EQ(ReasonOf(Upload(BeginningOf("t", "w.json", bytes), bytes).status()), "TRIAL_ARCHIVED");
  ASSERT_TRUE(caps_.Archive(kEpoch, {.external_id = "t"}, kAllProjects, false).ok());
  TraceUploading uploading(traces_, kEpoch);
  beginning = BeginningOf("t", "under-way.json", bytes);
  ASSERT_TRUE(uploading.Begin(beginning.trial, kAllProjects, beginning.header).ok());
  ASSERT_TRUE(caps_.Delete(kEpoch, {.trial_id = Value(writer.trial_id)}, kAllProjects).ok());
  EXPECT_EQ(uploading.Take(0, bytes).code(), absl::StatusCode::kNotFound);
  SweepAll();
  EXPECT_EQ(Number("select count(*) from stepwell.traces"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.trace_usage"), 0);
}

// A trace may have a tebibyte: whoever goes on with one is asked before each part that is read again.
TEST_F(TraceStoreTest, WhatIsReadAgainIsAskedForAndMayBeRefused) {
  OpenWriter("t");
  const std::string bytes = BytesOf(3 * kTracePartBytes + 7, 'r');
  const TraceBeginning beginning = BeginningOf("t", "r.json", bytes);
  ASSERT_TRUE(Upload(beginning, bytes, 3 * kTracePartBytes).ok());
  const std::string_view last = std::string_view(bytes).substr(3 * kTracePartBytes);
  std::int64_t asked = 0;
  std::int64_t allowed = kTracePartBytes;
  const auto before_reading = [&](std::int64_t byte_count) {
    if (asked + byte_count > allowed) return absl::CancelledError("nobody waits any more");
    asked += byte_count;
    return absl::OkStatus();
  };
  for (int call = 0; call < 2; ++call) {
    TraceUploading uploading(traces_, kEpoch, before_reading);
    ASSERT_TRUE(uploading.Begin(beginning.trial, kAllProjects, beginning.header).ok());
    const absl::Status taken = uploading.Take(3 * kTracePartBytes, last);
    EXPECT_EQ(uploading.is_complete(), call == 1);
    EXPECT_EQ(taken.code(), call == 0 ? absl::StatusCode::kCancelled : absl::StatusCode::kOk);
    EXPECT_EQ(asked, allowed);
    asked = 0;
    allowed = 3 * kTracePartBytes;
  }
}

TEST_F(TraceStoreTest, AnotherMasterIsNoticedBeforeAnythingIsWritten) {
  OpenWriter("t");
  Run("insert into stepwell.masters (slot, master_id, epoch, address, renewed_time, migration) "
      "values (0, 'another', 99, '', now(), 20) on conflict (slot) do update set epoch = 99");
  const std::string bytes = BytesOf(10, 'w');
  EXPECT_EQ(Upload(BeginningOf("t", "w.json", bytes), bytes).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(Number("select count(*) from stepwell.traces"), 0);
}

TEST_F(TraceStoreTest, SweepsTakeWhatIsTooOldTooMuchOrAbandoned) {
  const OpenedWriter writer = OpenWriter("t");
  OpenWriter("kept");
  const std::string bytes = BytesOf(2 * kTracePartBytes + 1, 's');
  const auto size = static_cast<std::int64_t>(bytes.size());
  for (const char* name : {"1", "2", "3", "4"}) {
    ASSERT_TRUE(Upload(BeginningOf("t", name, bytes), bytes).ok());
  }
  ASSERT_TRUE(Upload(BeginningOf("kept", "1", bytes), bytes).ok());
  ASSERT_TRUE(Upload(BeginningOf("t", "5", bytes), bytes, kTracePartBytes).ok());
  Run("update stepwell.traces set created_time = now() - interval '3 days' where name = '1'");
  Run("update stepwell.traces set changed_time = now() - interval '25 hours' where name = '5'");
  SetCaps(Of(writer), {.trial_trace_bytes = 2 * size, .trace_age_seconds = 2 * 86'400});
  SweepAll();
  const TraceList list = List("t");
  ASSERT_EQ(list.traces.size(), 5U);
  EXPECT_EQ(list.traces[0].reason, "trace_age_seconds");
  EXPECT_EQ(list.traces[1].reason, "trial_trace_bytes");
  EXPECT_EQ(list.traces[2].state, StoredTraceState::kComplete);
  EXPECT_EQ(list.traces[3].state, StoredTraceState::kComplete);
  EXPECT_EQ(list.traces[4].reason, "abandoned");
  EXPECT_EQ(list.byte_count, 2 * size);
  EXPECT_EQ(Number("select count(*) from stepwell.trace_parts"), 3 * 3);
  EXPECT_EQ(List("kept").traces[0].state, StoredTraceState::kComplete);
  EXPECT_EQ(traces_.ReadPart(list.traces[0], 0).status().code(), absl::StatusCode::kNotFound);
  ExpectLedger();
  // What went may come again, as another.
  SetCaps(Of(writer), {.trial_trace_bytes = 0});
  const auto again = Upload(BeginningOf("t", "1", bytes), bytes);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->trace_no, 6);
}

TEST_F(TraceStoreTest, APreviewTellsWhatTheNextSweepRemoves) {
  const OpenedWriter writer = OpenWriter("t");
  const OpenedWriter other = OpenWriter("other");
  const std::string bytes = BytesOf(2 * kTracePartBytes + 1, 's');
  const auto size = static_cast<std::int64_t>(bytes.size());
  for (const char* trial : {"t", "other"}) {
    for (const char* name : {"1", "2", "3", "4"}) {
      ASSERT_TRUE(Upload(BeginningOf(trial, name, bytes), bytes).ok());
    }
    // Under way, and then nobody went on with the one of "other".
    ASSERT_TRUE(Upload(BeginningOf(trial, "5", bytes), bytes, kTracePartBytes).ok());
  }
  Run("update stepwell.traces set created_time = now() - interval '3 days' where name = '1'");
  Run(
      absl::StrCat("update stepwell.traces set changed_time = now() - interval '25 hours' where "
                   "name = '5' and trial_id = ",
                   Value(other.trial_id)));
  const auto removals = [](const std::vector<CapRemoval>& removed) {
    std::vector<std::tuple<std::int64_t, std::string, std::int64_t, std::int64_t>> lines;
    for (const CapRemoval& each : removed) {
      lines.emplace_back(Value(each.trial_id), each.field, each.trace_count, each.trace_bytes);
    }
    return lines;
  };
  // Of caps that are not set: as they would be, of their place alone, and nothing goes.
  const auto as_if = caps_.Preview(
      {.target = Of(writer), .caps = Caps{.trial_trace_bytes = 3 * size}, .now_us = kNowUs},
      kAllProjects);
  ASSERT_TRUE(as_if.ok()) << as_if.status();
  EXPECT_EQ(removals(as_if->removals),
            (decltype(removals({})){{Value(writer.trial_id), "trial_trace_bytes", 2, 2 * size}}));
  const auto of_group =
      caps_.Preview({.target = Of(writer, "gpu"), .now_us = kNowUs}, kAllProjects);
  ASSERT_TRUE(of_group.ok()) << of_group.status();
  EXPECT_TRUE(of_group->removals.empty());
  EXPECT_EQ(List("t").byte_count, 5 * size);

  SetCaps(Of(writer), {.trial_trace_bytes = 2 * size, .trace_age_seconds = 2 * 86'400});
  const auto preview = caps_.Preview({.now_us = kNowUs}, kAllProjects);
  ASSERT_TRUE(preview.ok()) << preview.status();
  EXPECT_EQ(removals(preview->removals),
            (decltype(removals({})){{Value(writer.trial_id), "trace_age_seconds", 1, size},
                                    {Value(writer.trial_id), "trial_trace_bytes", 2, 2 * size},
                                    {Value(other.trial_id), "abandoned", 1, size}}));
  const SweepResult swept = SweepAll();
  EXPECT_EQ(preview->removals, swept.removed.removals);
  const auto again = caps_.Preview({.now_us = kNowUs}, kAllProjects);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->removals.empty());
  ExpectLedger();
}

TEST_F(TraceStoreTest, OneIsDeletedAndATrialTakesAllOfItsOwnAlong) {
  const OpenedWriter writer = OpenWriter("t");
  OpenWriter("other");
  const std::string bytes = BytesOf(10, 'd');
  const std::string two = BytesOf(2 * kTracePartBytes, 'e');
  ASSERT_TRUE(Upload(BeginningOf("t", "1", bytes), bytes).ok());
  ASSERT_TRUE(Upload(BeginningOf("t", "2", two), two).ok());
  // Of more parts than go in two slices.
  Run("insert into stepwell.trace_parts select trial_id, 1, g, 'x' from stepwell.traces, "
      "generate_series(1, 99) g where name = '1'");
  Run("update stepwell.traces set part_count = 100 where name = '1'");
  const std::string small = "{}";
  ASSERT_TRUE(Upload(BeginningOf("other", "1", small), small).ok());
  {
    // A sweep clears beside it.
    std::thread sweeping([&] {
      PgCapsStore beside({.url = url_});
      for (int i = 0; i < 20; ++i)
        EXPECT_TRUE(beside.Sweep(kEpoch, {.now_us = kNowUs}, kAllProjects).ok());
    });
    ASSERT_TRUE(traces_.Delete(kEpoch, {.external_id = "t"}, kAllProjects, 1).ok());
    sweeping.join();
  }
  EXPECT_EQ(traces_.Delete(kEpoch, {.external_id = "t"}, kAllProjects, 1).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(traces_.Find({.external_id = "t"}, kAllProjects, 1).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(List("t").traces.size(), 1U);
  SweepAll();
  EXPECT_EQ(Number("select count(*) from stepwell.trace_parts"), 2 + 1);
  ExpectLedger();
  ASSERT_TRUE(caps_.Delete(kEpoch, {.trial_id = Value(writer.trial_id)}, kAllProjects).ok());
  SweepAll();
  EXPECT_EQ(Number("select count(*) from stepwell.trace_parts"), 1);
  EXPECT_EQ(Number("select count(*) from stepwell.traces"), 1);
  EXPECT_EQ(Number("select count(*) from stepwell.trace_usage"), 1);
  ExpectLedger();
}

}  // namespace
}  // namespace stepwell
