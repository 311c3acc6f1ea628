#include "base/trace/trace_reading.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/trace/gzip_unpacker.h"
#include "base/trace/trace_merger.h"

namespace stepwell {
namespace {

std::string LastPart(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// The digits right behind `word`, at its first place that has some; empty: there are none.
std::string DigitsBehind(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t begin = at + word.size();
    const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    if (end > begin) return text.substr(begin, end - begin);
  }
  return "";
}

}  // namespace

absl::StatusOr<TraceForm> ReadTrace(const TraceSource& source, TraceSplitter::Takers takers) {
  TraceSplitter splitter(std::move(takers));
  GzipUnpacker unpacker([&](std::string_view bytes) { return splitter.Feed(bytes); });
  STEPWELL_RETURN_IF_ERROR(source([&](std::string_view bytes) { return unpacker.Feed(bytes); }));
  STEPWELL_ASSIGN_OR_RETURN(TraceForm form, splitter.Finish());
  form.is_cut = form.is_cut || !unpacker.at_end();
  return form;
}

absl::StatusOr<ScannedTrace> ScanTrace(const TraceSource& source) {
  TraceScan scan;
  ScannedTrace scanned;
  STEPWELL_ASSIGN_OR_RETURN(
      scanned.form, ReadTrace(source, {.event =
                                           [&](std::string_view json) {
                                             scan.TakeEvent(json);
                                             return absl::OkStatus();
                                           },
                                       .member =
                                           [&](std::string_view name, std::string_view json) {
                                             scan.TakeMember(name, json);
                                             return absl::OkStatus();
                                           }}));
  scanned.origin = scan.Finish();
  return scanned;
}

absl::StatusOr<MergeCounts> MergeTraces(
    const MergePlan& plan, const std::function<TraceSource(const PlacedInput&)>& source_of,
    const TakeBytes& take) {
  TraceMerger merger(plan, take);
  STEPWELL_RETURN_IF_ERROR(merger.Begin());
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    merger.BeginInput(i);
    const auto form = ReadTrace(
        source_of(plan.inputs[i]),
        {.event = [&](std::string_view json) { return merger.TakeEvent(json); }, .member = {}});
    STEPWELL_RETURN_IF_ERROR(form.status());
  }
  STEPWELL_RETURN_IF_ERROR(merger.End());
  return MergeCounts{merger.written_count(), merger.left_out_count()};
}

std::optional<std::int32_t> RankOfTraceName(std::string_view path) {
  std::int32_t rank = 0;
  const bool is_number = absl::SimpleAtoi(DigitsBehind(LastPart(path), "rank"), &rank);
  return is_number ? std::optional(rank) : std::nullopt;
}

std::string CycleOfTraceName(std::string_view path) {
  const std::string name = LastPart(path);
  const std::string epoch = DigitsBehind(name, "ep");
  const std::string batch = DigitsBehind(name, "ba");
  return epoch.empty() || batch.empty() ? "" : absl::StrCat("ep", epoch, "-ba", batch);
}

}  // namespace stepwell
