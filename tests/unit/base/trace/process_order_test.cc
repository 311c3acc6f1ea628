// In which order a merge of several ranks asks viewers to show them, written and read back in each form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/trace/trace_reading.h"
#include "tests/unit/base/trace/perfetto_reading.h"
#include "tests/unit/base/trace/plan_of_texts.h"

namespace stepwell {
namespace {

using testing::PerfettoReading;
using testing::PlanOf;
using ::testing::SizeIs;
using testing::SourceOf;

std::string Trace(int rank, const std::string& events) {
  return absl::StrCat("{\"distributedInfo\":{\"rank\":", rank, "},\"traceEvents\":[", events, "]}");
}

// The names of a trace's processes in the order that it asks for, as its events tell it.
std::vector<std::string> InOrder(const std::string& bytes) {
  std::map<int, std::string> names;
  std::map<int, std::int64_t> indices;
  const auto form = ReadTrace(SourceOf(bytes),
                              {.event =
                                   [&](std::string_view text) {
                                     const auto event = nlohmann::json::parse(text);
                                     if (event.value("name", "") == "process_name") {
                                       names[event.at("pid")] = event.at("args").at("name");
                                     } else if (event.value("name", "") == "process_sort_index") {
                                       indices[event.at("pid")] = event.at("args").at("sort_index");
                                     }
                                     return absl::OkStatus();
                                   },
                               .member = {}});
  EXPECT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(indices.size(), names.size());
  std::map<std::int64_t, std::string> ordered;
  for (const auto& [pid, index] : indices) ordered[index] = names[pid];
  std::vector<std::string> result;
  for (const auto& [index, name] : ordered) result.push_back(name);
  return result;
}

TEST(ProcessOrder, ProcessesStandInOrderOfRanksInEachForm) {
  const char* event = R"({"ph":"X","name":"a","ts":10,"dur":1,"pid":1,"tid":1})";
  const std::vector<std::string> texts = {Trace(10, event), Trace(2, event),
                                          Trace(4'000'000, event)};
  const MergePlan plan = PlanOf(texts);
  for (const MergeForm form :
       {MergeForm::kPerfetto, MergeForm::kPerfettoPlain, MergeForm::kChrome}) {
    std::string bytes;
    const auto counts = MergeTraces(
        plan, [&](const PlacedInput& placed) { return SourceOf(texts[std::stoul(placed.label)]); },
        form,
        [&](std::string_view piece) {
          bytes += piece;
          return absl::OkStatus();
        },
        [](MergeWriter& writer) {
          EXPECT_TRUE(writer.BeginCounter({"machine a", "cpu_util_simple", "percent"}).ok());
          return writer.TakeCount(10'000, 0.1);
        });
    ASSERT_TRUE(counts.ok()) << counts.status();
    const std::vector<std::string> order = InOrder(bytes);
    ASSERT_THAT(order, SizeIs(4));
    EXPECT_EQ(order[0], "machine a");
    for (std::size_t i = 1; i < order.size(); ++i) {
      constexpr const char* kRanks[] = {"", "rank 2", "rank 10", "rank 4000000"};
      EXPECT_THAT(order[i], ::testing::StartsWith(kRanks[i]));
    }
    if (form == MergeForm::kChrome) continue;
    // As the descriptors say it, an int32.
    std::set<std::int64_t> indices;
    for (const auto& [uuid, track] : PerfettoReading::Read(bytes).tracks) {
      if (track.is_process) indices.insert(track.sort_index);
    }
    EXPECT_EQ(*indices.begin(), -1);
    EXPECT_EQ(*indices.rbegin(), INT32_MAX);
  }
}

}  // namespace
}  // namespace stepwell
