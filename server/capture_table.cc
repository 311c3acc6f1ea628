#include "server/capture_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

constexpr std::size_t kReasonBytesMax = 64;
constexpr std::size_t kMessageBytesMax = 512;
constexpr std::size_t kNameBytesMax = 255;
// Uploads of a trial that end while a capture is under way, and are not of it.
constexpr std::size_t kUploadsMax = 1024;

std::string CleanReason(const std::string& reason) {
  const bool is_word =
      !reason.empty() && std::all_of(reason.begin(), reason.end(), [](unsigned char c) {
        return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      });
  return is_word ? reason.substr(0, kReasonBytesMax) : "UNKNOWN";
}

std::string CleanText(const std::string& text, std::size_t bytes_max) {
  std::string clean = Shortened(text, bytes_max);
  std::replace_if(
      clean.begin(), clean.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return clean;
}

}  // namespace

CaptureTable::CaptureTable(std::uint64_t number, std::int32_t step_count,
                           const std::vector<Rank>& ranks, bool native)
    : number_(number), step_count_(step_count) {
  STEPWELL_CHECK(number != 0 && step_count > 0);
  for (const Rank& rank : ranks) {
    Row& row = rows_.emplace_back(Row{.asked = rank});
    row.shown.set_rank(rank.rank);
    row.shown.set_state(v1::CAPTURE_STATE_ASKED);
    row.shown.set_message(rank.message);
    if (native) row.shown.mutable_native()->set_state(v1::CAPTURE_STATE_ASKED);
    if (!rank.writer_no) FailRow(row, rank.reason, rank.message);
  }
  std::sort(rows_.begin(), rows_.end(),
            [](const Row& a, const Row& b) { return a.asked.rank < b.asked.rank; });
}

void CaptureTable::FailRow(Row& row, const std::string& reason, const std::string& message) {
  row.shown.set_state(v1::CAPTURE_STATE_FAILED);
  row.shown.set_reason(reason);
  const bool has_note = row.asked.writer_no && !row.asked.message.empty();
  row.shown.set_message(has_note ? absl::StrCat(message, "; ", row.asked.message) : message);
  // Its process was not asked.
  if (row.shown.native().state() == v1::CAPTURE_STATE_ASKED) FailNativeOf(row, reason, message);
}

void CaptureTable::FailNativeOf(Row& row, const std::string& reason, const std::string& message) {
  v1::CapturedNative& native = *row.shown.mutable_native();
  native.set_state(v1::CAPTURE_STATE_FAILED);
  native.set_reason(reason);
  native.set_message(message);
}

bool CaptureTable::HasEnded(v1::CaptureState state) {
  return state == v1::CAPTURE_STATE_STORED || state == v1::CAPTURE_STATE_FAILED;
}

bool CaptureTable::IsOver(const Row& row) {
  return HasEnded(row.shown.state()) &&
         (!row.shown.has_native() || HasEnded(row.shown.native().state()));
}

CaptureTable::Row* CaptureTable::FindLocked(WriterNo writer_no) {
  const auto row = std::find_if(rows_.begin(), rows_.end(),
                                [&](const Row& each) { return each.asked.writer_no == writer_no; });
  return row == rows_.end() ? nullptr : &*row;
}

void CaptureTable::Reported(WriterNo writer_no, std::uint64_t generation,
                            const v1::CaptureReport& report) {
  absl::MutexLock lock(&mu_);
  Row* row = FindLocked(writer_no);
  if (row == nullptr || row->asked.generation != generation || report.capture() != number_) return;
  if (report.native()) {
    if (ReportedNativeLocked(*row, report)) ++version_;
    return;
  }
  const v1::CaptureState state = row->shown.state();
  if (HasEnded(state)) return;
  switch (report.progress()) {
    case v1::CAPTURE_PROGRESS_READY:
      if (state != v1::CAPTURE_STATE_ASKED) return;
      row->first_batch = std::max(report.first_batch(), 0);
      row->shown.set_state(v1::CAPTURE_STATE_RECORDING);
      if (row->shown.has_native() && !HasEnded(row->shown.native().state())) {
        row->shown.mutable_native()->set_state(v1::CAPTURE_STATE_RECORDING);
      }
      break;
    case v1::CAPTURE_PROGRESS_RECORDED:
      if (state != v1::CAPTURE_STATE_RECORDING || !first_batch_) return;
      row->shown.set_state(v1::CAPTURE_STATE_UPLOADING);
      row->shown.set_name(CleanText(report.name(), kNameBytesMax));
      row->shown.set_step_count(std::clamp(report.step_count(), 0, step_count_));
      row->shown.set_span_count(std::max<std::int64_t>(report.span_count(), 0));
      row->shown.set_left_out_count(std::max<std::int64_t>(report.left_out_count(), 0));
      SettleLocked(*row);
      break;
    case v1::CAPTURE_PROGRESS_FAILED:
      FailRow(*row, CleanReason(report.reason()), CleanText(report.message(), kMessageBytesMax));
      break;
    default:
      return;
  }
  ++version_;
}

bool CaptureTable::ReportedNativeLocked(Row& row, const v1::CaptureReport& report) {
  if (!row.shown.has_native() || HasEnded(row.shown.native().state())) return false;
  v1::CapturedNative& native = *row.shown.mutable_native();
  if (report.progress() == v1::CAPTURE_PROGRESS_FAILED) {
    FailNativeOf(row, CleanReason(report.reason()), CleanText(report.message(), kMessageBytesMax));
    return true;
  }
  if (report.progress() != v1::CAPTURE_PROGRESS_RECORDED || !first_batch_ ||
      native.state() != v1::CAPTURE_STATE_RECORDING) {
    return false;
  }
  native.set_state(v1::CAPTURE_STATE_UPLOADING);
  native.set_name(CleanText(report.name(), kNameBytesMax));
  native.set_step_count(std::clamp(report.step_count(), 0, step_count_));
  SettleNativeLocked(row);
  return true;
}

// Its upload may be over already.
void CaptureTable::SettleNativeLocked(Row& row) {
  v1::CapturedNative& native = *row.shown.mutable_native();
  const auto ended = uploads_.find(native.name());
  if (ended == uploads_.end()) return;
  if (ended->second.trace_no == 0) return FailNativeOf(row, "UPLOAD_REFUSED", ended->second.why);
  native.set_state(v1::CAPTURE_STATE_STORED);
  native.set_trace_no(ended->second.trace_no);
}

// Its upload may be over already.
void CaptureTable::SettleLocked(Row& row) {
  const auto ended = uploads_.find(row.shown.name());
  if (ended == uploads_.end()) return;
  if (ended->second.trace_no > 0) {
    row.shown.set_state(v1::CAPTURE_STATE_STORED);
    row.shown.set_trace_no(ended->second.trace_no);
  } else {
    FailRow(row, "UPLOAD_REFUSED", ended->second.why);
  }
}

void CaptureTable::EndUploadLocked(const std::string& name, Ended ended) {
  if (uploads_.size() < kUploadsMax || uploads_.contains(name)) uploads_[name] = std::move(ended);
  for (Row& row : rows_) {
    if (row.shown.state() == v1::CAPTURE_STATE_UPLOADING && row.shown.name() == name) {
      SettleLocked(row);
      ++version_;
    }
    if (row.shown.native().state() == v1::CAPTURE_STATE_UPLOADING &&
        row.shown.native().name() == name) {
      SettleNativeLocked(row);
      ++version_;
    }
  }
}

void CaptureTable::Uploaded(const std::string& name, std::int32_t trace_no) {
  absl::MutexLock lock(&mu_);
  EndUploadLocked(name, {.trace_no = trace_no});
}

void CaptureTable::NotUploaded(const std::string& name, const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  EndUploadLocked(name, {.why = CleanText(std::string(why.message()), kMessageBytesMax)});
}

void CaptureTable::Fail(WriterNo writer_no, v1::CaptureState state, const std::string& reason,
                        const std::string& message) {
  absl::MutexLock lock(&mu_);
  Row* row = FindLocked(writer_no);
  if (row == nullptr || HasEnded(row->shown.state()) || row->shown.state() > state) return;
  FailRow(*row, reason, message);
  // Its agent will say no more.
  if (row->shown.native().state() == v1::CAPTURE_STATE_RECORDING) {
    FailNativeOf(*row, reason, message);
  }
  ++version_;
}

void CaptureTable::FailNative(v1::CaptureState state, const std::string& reason,
                              const std::string& message) {
  absl::MutexLock lock(&mu_);
  for (Row& row : rows_) FailNativeLocked(row, state, reason, message);
}

void CaptureTable::FailNative(WriterNo writer_no, v1::CaptureState state, const std::string& reason,
                              const std::string& message) {
  absl::MutexLock lock(&mu_);
  if (Row* row = FindLocked(writer_no)) FailNativeLocked(*row, state, reason, message);
}

void CaptureTable::FailNativeLocked(Row& row, v1::CaptureState state, const std::string& reason,
                                    const std::string& message) {
  if (!row.shown.has_native()) return;
  const v1::CaptureState now = row.shown.native().state();
  if (HasEnded(now) || now > state) return;
  FailNativeOf(row, reason, message);
  ++version_;
}

std::optional<std::int32_t> CaptureTable::Decide() {
  absl::MutexLock lock(&mu_);
  if (first_batch_) return std::nullopt;
  std::optional<std::int32_t> first;
  for (const Row& row : rows_) {
    if (row.shown.state() == v1::CAPTURE_STATE_ASKED) return std::nullopt;
    if (row.shown.state() != v1::CAPTURE_STATE_RECORDING) continue;
    first = std::max(first.value_or(0), row.first_batch);
  }
  if (!first) return std::nullopt;
  first_batch_ = first;
  ++version_;
  return first;
}

std::vector<CaptureTable::Writer> CaptureTable::In(v1::CaptureState state) const {
  std::vector<Writer> writers;
  absl::MutexLock lock(&mu_);
  for (const Row& row : rows_) {
    if (row.shown.state() != state || !row.asked.writer_no) continue;
    writers.push_back({*row.asked.writer_no, row.asked.generation});
  }
  return writers;
}

std::vector<CaptureTable::Writer> CaptureTable::NativeIn(v1::CaptureState state) const {
  std::vector<Writer> writers;
  absl::MutexLock lock(&mu_);
  for (const Row& row : rows_) {
    if (row.shown.native().state() != state || !row.asked.writer_no) continue;
    writers.push_back({*row.asked.writer_no, row.asked.generation});
  }
  return writers;
}

CaptureTable::Shown CaptureTable::Show() const {
  absl::MutexLock lock(&mu_);
  Shown shown;
  shown.version = version_;
  if (first_batch_) shown.answer.set_first_batch(*first_batch_);
  shown.answer.set_step_count(step_count_);
  for (const Row& row : rows_) *shown.answer.add_ranks() = row.shown;
  shown.answer.set_is_over(std::all_of(rows_.begin(), rows_.end(), &IsOver));
  return shown;
}

void CaptureTable::AwaitChange(std::uint64_t version, SteadyTime deadline) const {
  const auto changed = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return version_ != version; };
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&changed), deadline.Left());
}

}  // namespace stepwell
