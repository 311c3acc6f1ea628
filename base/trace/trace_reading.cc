#include "base/trace/trace_reading.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/trace/event_batches.h"
#include "base/trace/gzip_unpacker.h"
#include "base/trace/perfetto_merger.h"
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

// The splitter of the form that the first bytes tell.
class FormSplitter {
 public:
  FormSplitter(SliceForm slice_form, TraceSplitter::Takers takers)
      : slice_form_(slice_form), takers_(std::move(takers)) {}

  absl::Status Feed(std::string_view bytes) {
    if (is_chosen()) return FeedChosen(bytes);
    begin_ += bytes;
    if (begin_.size() < PerfettoSplitter::kBeginBytes) return absl::OkStatus();
    Choose();
    return FeedChosen(std::exchange(begin_, {}));
  }
  absl::StatusOr<TraceForm> Finish() {
    if (!is_chosen()) {
      Choose();
      STEPWELL_RETURN_IF_ERROR(FeedChosen(begin_));
    }
    return perfetto_.has_value() ? perfetto_->Finish() : chrome_->Finish();
  }

 private:
  bool is_chosen() const { return perfetto_.has_value() || chrome_.has_value(); }
  void Choose() {
    if (PerfettoSplitter::IsPerfetto(begin_)) {
      perfetto_.emplace(slice_form_, takers_.event);
    } else {
      chrome_.emplace(takers_);
    }
  }
  absl::Status FeedChosen(std::string_view bytes) {
    return perfetto_.has_value() ? perfetto_->Feed(bytes) : chrome_->Feed(bytes);
  }

  const SliceForm slice_form_;
  const TraceSplitter::Takers takers_;
  std::string begin_;
  std::optional<TraceSplitter> chrome_;
  std::optional<PerfettoSplitter> perfetto_;
};

std::unique_ptr<MergeWriter> WriterOf(const MergePlan& plan, MergeForm form, TakeBytes take) {
  if (form == MergeForm::kChrome) return std::make_unique<TraceMerger>(plan, std::move(take));
  return std::make_unique<PerfettoMerger>(
      plan, PerfettoMerger::Options{.is_packed = form == MergeForm::kPerfetto}, std::move(take));
}

}  // namespace

absl::StatusOr<TraceForm> ReadTrace(const TraceSource& source, TraceSplitter::Takers takers,
                                    SliceForm slice_form) {
  EventBatches batches(std::move(takers));
  FormSplitter splitter(slice_form, batches.Gathered());
  GzipUnpacker unpacker([&](std::string_view bytes) { return splitter.Feed(bytes); });
  const absl::Status read = source([&](std::string_view bytes) { return unpacker.Feed(bytes); });
  absl::StatusOr<TraceForm> form = read.ok() ? splitter.Finish() : read;
  // What came before a failure is handed on, too.
  const absl::Status taken = batches.Finish();
  STEPWELL_RETURN_IF_ERROR(read);
  STEPWELL_RETURN_IF_ERROR(taken);
  if (form.ok()) form->is_cut = form->is_cut || !unpacker.at_end();
  return form;
}

absl::StatusOr<ScannedTrace> ScanTrace(const TraceSource& source) {
  TraceScan scan;
  ScannedTrace scanned;
  STEPWELL_ASSIGN_OR_RETURN(scanned.form,
                            ReadTrace(source,
                                      {.event =
                                           [&](std::string_view json) {
                                             scan.TakeEvent(json);
                                             return absl::OkStatus();
                                           },
                                       .member =
                                           [&](std::string_view name, std::string_view json) {
                                             scan.TakeMember(name, json);
                                             return absl::OkStatus();
                                           }},
                                      SliceForm::kBeginsEnds));
  scanned.origin = scan.Finish();
  return scanned;
}

absl::StatusOr<MergeCounts> MergeTraces(
    const MergePlan& plan, const std::function<TraceSource(const PlacedInput&)>& source_of,
    MergeForm form, const TakeBytes& take,
    const std::function<absl::Status(MergeWriter&)>& add_counters) {
  const std::unique_ptr<MergeWriter> writer = WriterOf(plan, form, take);
  STEPWELL_RETURN_IF_ERROR(writer->Begin());
  std::int64_t flows_left_out = 0;
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    STEPWELL_RETURN_IF_ERROR(writer->BeginInput(i));
    const auto read = ReadTrace(
        source_of(plan.inputs[i]),
        {.event = [&](std::string_view json) { return writer->TakeEvent(json); }, .member = {}});
    STEPWELL_RETURN_IF_ERROR(read.status());
    flows_left_out += read->flows_left_out;
  }
  if (add_counters) STEPWELL_RETURN_IF_ERROR(add_counters(*writer));
  STEPWELL_RETURN_IF_ERROR(writer->End());
  return MergeCounts{writer->written_count(), writer->left_out_count() + flows_left_out};
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
