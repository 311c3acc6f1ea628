#include "base/trace/perfetto_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/trace/open_slices.h"
#include "base/trace/perfetto_fields.h"
#include "base/trace/perfetto_writer.h"
#include "base/trace/proto_bytes.h"

namespace stepwell {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr std::int64_t kBase = 1'700'000'000'000'000'000;

// A process with two threads, track 2 and 3.
struct Written {
  std::string bytes;
  PerfettoWriter writer{{.base_time_ns = kBase}, [this](std::string_view packets) {
                          bytes += packets;
                          return absl::OkStatus();
                        }};
  Written() {
    writer.DescribeProcess(1, {.pid = 40, .name = "loop", .labels = {}});
    writer.DescribeThread(2, {.pid = 40, .tid = 41, .name = "main"});
    writer.DescribeThread(3, {.pid = 40, .tid = 42, .name = "other"});
  }
  void Begin(std::uint64_t track, std::int64_t at_ns, std::string_view name,
             const std::vector<std::uint64_t>& flows = {}, bool is_end = false) {
    std::string body;
    writer.AppendName(name, body);
    writer.AppendArg("batch", std::int64_t{7}, body);
    for (const std::uint64_t id : flows) PerfettoWriter::AppendFlow(id, is_end, body);
    writer.BeginSlice(track, kBase + at_ns, body);
  }
  void End(std::uint64_t track, std::int64_t at_ns) { writer.EndSlice(track, kBase + at_ns); }

  // Its events but for metadata: "X a 41 2000+3000", each time in nanoseconds from the base on.
  std::vector<std::string> Read(SliceForm form) {
    EXPECT_TRUE(writer.HandOver(0).ok());
    std::vector<std::string> lines;
    PerfettoSplitter splitter(form, [&](std::string_view text) {
      const json event = json::parse(text);
      if (event.at("ph") == "M") return absl::OkStatus();
      std::string line = absl::StrCat(event.at("ph").get<std::string>(), " ",
                                      event.value("name", ""), " ", event.at("tid").get<int>());
      if (event.contains("id")) absl::StrAppend(&line, " #", event.at("id").get<int>());
      if (event.contains("dur")) absl::StrAppend(&line, " +", event.at("dur").get<double>());
      if (event.contains("args")) {
        absl::StrAppend(&line, " b", event.at("args").at("batch").get<int>());
      }
      lines.push_back(std::move(line));
      return absl::OkStatus();
    });
    EXPECT_TRUE(splitter.Feed(bytes).ok());
    const auto finished = splitter.Finish();
    EXPECT_TRUE(finished.ok()) << finished.status();
    passed_over = finished->passed_over;
    flows_left_out = finished->flows_left_out;
    return lines;
  }
  std::int64_t passed_over = 0;
  std::int64_t flows_left_out = 0;
};

TEST(PerfettoSplitter, ASliceIsOneEventWithItsLength) {
  Written written;
  written.Begin(2, 1000, "outer");
  written.Begin(3, 1500, "beside");
  written.Begin(2, 2000, "inner");
  written.End(2, 4500);
  written.End(2, 9000);
  written.End(2, 9500);  // of nothing
  written.Begin(2, 9600, "unfinished");
  EXPECT_THAT(written.Read(SliceForm::kWhole),
              ElementsAre("X inner 41 +2.5 b7", "X outer 41 +8 b7", "E  41", "B unfinished 41 b7",
                          "B beside 42 b7"));
  EXPECT_THAT(written.Read(SliceForm::kBeginsEnds),
              ElementsAre("B outer 41 b7", "B beside 42 b7", "B inner 41 b7", "E  41", "E  41",
                          "E  41", "B unfinished 41 b7"));
}

// The file has the later thread first, as one that is written row by row.
TEST(PerfettoSplitter, FlowsJoinTheSlicesThatCarryThemInOrderOfTime) {
  Written written;
  written.Begin(3, 3000, "kernel", {77, 78}, true);
  written.End(3, 3500);
  written.Begin(2, 1000, "launch", {77, 5});
  written.End(2, 1500);
  written.Begin(2, 2000, "middle", {77});
  written.End(2, 2500);
  // The same id once more, behind its end.
  written.Begin(2, 4000, "launch", {77});
  written.End(2, 4500);
  written.Begin(3, 5000, "kernel", {77}, true);
  written.End(3, 5500);
  std::vector<std::string> flows;
  for (const std::string& line : written.Read(SliceForm::kWhole)) {
    if (line.find(" flow ") != std::string::npos) flows.push_back(line);
  }
  EXPECT_THAT(flows, ElementsAre("s flow 41 #1", "t flow 41 #1", "f flow 42 #1", "s flow 41 #2",
                                 "f flow 42 #2"));
  EXPECT_EQ(written.flows_left_out, 2) << "5 and 78 join nothing";
  EXPECT_EQ(written.passed_over, 0);
}

// A kilobyte of gzip says a megabyte of names.
TEST(PerfettoSplitter, TextsBeyondABoundOfBytesAreKeptByNobody) {
  constexpr int kTexts = 100;
  std::string bytes;
  const auto add = [&](const std::string& packet) { AppendProtoBytes(1, packet, bytes); };
  for (int i = 1; i <= kTexts; ++i) {
    std::string text, interned, packet;
    AppendProtoInt(perfetto::interned::kNumber, static_cast<std::uint64_t>(i), text);
    AppendProtoBytes(perfetto::interned::kText, std::string(1 << 20, 'a'), text);
    AppendProtoBytes(perfetto::interned::kNames, text, interned);
    AppendProtoBytes(perfetto::packet::kInternedData, interned, packet);
    add(packet);
  }
  for (const std::uint64_t named : {1, kTexts}) {
    std::string event, packet;
    AppendProtoInt(perfetto::event::kType, 3, event);
    AppendProtoInt(perfetto::event::kNameNumber, named, event);
    AppendProtoInt(perfetto::packet::kTimestamp, kBase, packet);
    AppendProtoBytes(perfetto::packet::kTrackEvent, event, packet);
    add(packet);
  }
  std::vector<std::size_t> name_bytes;
  PerfettoSplitter splitter(SliceForm::kWhole, [&](std::string_view text) {
    name_bytes.push_back(json::parse(text).value("name", "").size());
    return absl::OkStatus();
  });
  ASSERT_TRUE(splitter.Feed(bytes).ok());
  const auto form = splitter.Finish();
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_THAT(name_bytes, ElementsAre(1 << 20, 0));
  EXPECT_EQ(form->passed_over, kTexts - 63);
}

// The second byte is the first packet's length: some lengths are white space, or open an object.
TEST(PerfettoSplitter, APacketOfAnyLengthIsNoJson) {
  for (int length = 1; length < 128; ++length) {
    const std::string begin = {'\n', static_cast<char>(length), '\x40'};
    EXPECT_TRUE(PerfettoSplitter::IsPerfetto(begin)) << length;
  }
  for (const char* json_begin :
       {"\n{\"t", "\n[{\"", "\n\n{", "\n {", "\n\t[", "{\"t", "[\n{", "\n{}", "\n[]"}) {
    EXPECT_FALSE(PerfettoSplitter::IsPerfetto(std::string_view(json_begin).substr(0, 3)))
        << json_begin;
  }
}

TEST(OpenSlices, WhatTheEndSaysUnderOtherNamesIsKept) {
  OpenSlices slices;
  EXPECT_EQ(slices.Begin(1, 0, "", R"("id":1,"a\"b":[2])"), "");
  EXPECT_EQ(slices.End(1, 1000, "", R"("a\"b":3,"id":4,"result":{"x":5})"),
            R"({"ph":"X","dur":1.000,"args":{"id":1,"a\"b":[2],"result":{"x":5}}})");
}

TEST(OpenSlices, WhatFindsNoRoomIsToldApart) {
  OpenSlices slices;
  const std::string large(1 << 20, ' ');
  EXPECT_EQ(slices.Begin(1, 10, ",\"name\":\"first\"", ""), "");
  int held = 0;
  while (slices.Begin(2, 20, large, "").empty()) ++held;
  EXPECT_LE(held, 64);
  EXPECT_GE(held, 60);
  // Within the first one of this row is one that was told: its end is its own.
  EXPECT_EQ(slices.Begin(1, 30, large, "").substr(0, 9), "{\"ph\":\"B\"");
  EXPECT_EQ(slices.Begin(3, 40, large, "").substr(0, 9), "{\"ph\":\"B\"");
  EXPECT_EQ(slices.End(3, 50, "", ""), R"({"ph":"E"})");
  EXPECT_EQ(slices.End(2, 50, "", ""), R"({"ph":"E"})") << "the one too many";
  EXPECT_EQ(slices.End(2, 60, "", "").substr(0, 9), "{\"ph\":\"X\"");
  // Now there is room, and what lies within one that was told is told, too: ends have no names.
  EXPECT_EQ(slices.Begin(1, 70, "", ""), R"({"ph":"B"})");
  EXPECT_EQ(slices.End(1, 80, "", ""), R"({"ph":"E"})");
  EXPECT_EQ(slices.End(1, 90, "", ""), R"({"ph":"E"})");
  EXPECT_EQ(slices.End(1, 2010, "", "\"a\":1"),
            R"({"ph":"X","name":"first","dur":2.000,"args":{"a":1}})");
  EXPECT_THAT(slices.TakeUnfinished(), SizeIs(static_cast<std::size_t>(held - 1)));
}

}  // namespace
}  // namespace stepwell
