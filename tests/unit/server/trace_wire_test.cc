#include "server/trace_wire.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace stepwell {
namespace {

pb::TraceUpload Good() {
  pb::TraceUpload upload;
  upload.mutable_trial()->set_external_id("t");
  pb::TraceHeader& header = *upload.mutable_header();
  header.set_name("ep0-ba7-rank3.json.gz");
  header.set_format(pb::TRACE_FORMAT_CHROME_JSON);
  header.set_byte_count(5);
  header.set_sha256(std::string(32, 's'));
  return upload;
}

TEST(TraceWireTest, AHeaderGoesThereAndBack) {
  pb::TraceUpload upload = Good();
  pb::TraceHeader& header = *upload.mutable_header();
  header.set_rank(3);
  header.set_writer(std::string(16, 'w'));
  header.set_machine("node-1");
  header.set_epoch(0);
  header.set_first_batch(5);
  header.set_last_batch(7);
  TraceBeginning beginning;
  ASSERT_FALSE(CheckTraceUpload(upload, beginning));
  EXPECT_EQ(beginning.trial.external_id, "t");
  TraceRecord record{.trace_no = 4, .header = beginning.header};
  record.state = StoredTraceState::kComplete;
  const pb::Trace wire = ToWire(record);
  EXPECT_EQ(wire.header().SerializeAsString(), header.SerializeAsString());
  EXPECT_EQ(wire.state(), pb::TRACE_STATE_COMPLETE);
  EXPECT_EQ(wire.trace_no(), 4);
}

TEST(TraceWireTest, WhatIsUnknownStaysUnknown) {
  TraceBeginning beginning;
  ASSERT_FALSE(CheckTraceUpload(Good(), beginning));
  const pb::Trace wire = ToWire(TraceRecord{.header = beginning.header});
  EXPECT_FALSE(wire.header().has_rank() || wire.header().has_epoch() ||
               wire.header().has_first_batch() || wire.header().has_last_batch());
  EXPECT_EQ(wire.header().writer(), "");
}

TEST(TraceWireTest, EachFieldIsNamedWhereItIsWrong) {
  struct Row {
    std::function<void(pb::TraceUpload&)> change;
    std::string says;
  };
  const auto of_header = [](const std::function<void(pb::TraceHeader&)>& change) {
    return [change](pb::TraceUpload& upload) { change(*upload.mutable_header()); };
  };
  const Row rows[] = {
      {[](auto& upload) { upload.clear_trial(); }, "trial is missing"},
      {[](auto& upload) { upload.clear_header(); }, "upload.header.name"},
      {of_header([](auto& header) { header.set_name(std::string(256, 'n')); }),
       "upload.header.name"},
      {of_header([](auto& header) { header.set_name("a\nb"); }), "upload.header.name"},
      {of_header([](auto& header) { header.set_name("\xff"); }), "upload.header.name"},
      {of_header([](auto& header) { header.set_name("../x"); }), "without '/'"},
      {of_header([](auto& header) { header.set_name(".."); }), "without '/'"},
      {of_header([](auto& header) { header.clear_format(); }), "upload.header.format is 0"},
      {of_header([](auto& header) { header.set_format(static_cast<pb::TraceFormat>(99)); }),
       "upload.header.format is 99"},
      {of_header([](auto& header) { header.set_byte_count(0); }), "there is nothing to keep"},
      {of_header([](auto& header) { header.set_byte_count(-1); }),
       "upload.header.byte_count is -1"},
      {of_header([](auto& header) { header.set_byte_count(INT64_MAX); }),
       "upload.header.byte_count is 9223372036854775807"},
      {of_header([](auto& header) { header.set_sha256("short"); }), "upload.header.sha256 has 5"},
      {of_header([](auto& header) { header.set_writer("w"); }), "upload.header.writer has 1"},
      {of_header([](auto& header) { header.set_machine(std::string(129, 'm')); }),
       "upload.header.machine"},
      {of_header([](auto& header) { header.set_rank(-1); }), "upload.header.rank is -1"},
      {of_header([](auto& header) { header.set_epoch(-1); }), "upload.header.epoch is -1"},
      {of_header([](auto& header) {
         header.set_first_batch(7);
         header.set_last_batch(6);
       }),
       "upload.header.last_batch is 6; allowed: 7 and above"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.says);
    pb::TraceUpload upload = Good();
    row.change(upload);
    TraceBeginning beginning;
    const MaybeComplaint complaint = CheckTraceUpload(upload, beginning);
    ASSERT_TRUE(complaint);
    EXPECT_EQ(complaint->code, absl::StatusCode::kInvalidArgument);
    EXPECT_NE(complaint->message.find(row.says), std::string::npos) << complaint->message;
  }
}

}  // namespace
}  // namespace stepwell
