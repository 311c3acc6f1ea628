// A recorder's directory made by hand, so that each byte and each moment of a crash can be chosen, and
// a sink that shows what was read of it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/agent/recorded_writer.h"

namespace stepwell::agent {

using Lines = std::vector<std::string>;

class TextSink final : public ThreadSampleSink {
 public:
  // "3" is the thread of the process itself, "w1/3" one of its worker 1.
  void EnterThread(const RecordedProcess& process, std::uint32_t thread) override {
    thread_ = absl::StrCat(thread);
    if (process.worker != spool::kNoWorker)
      thread_ = absl::StrCat("w", process.worker, "/", thread);
  }
  void LeaveProcess(std::uint64_t) override { ++left_count; }
  void OnStep(const StepTotals& step) override {
    std::string line = absl::StrCat(thread_, " step ", step.start_ns, " b", step.batch);
    for (const PathTotal& path : step.paths) {
      absl::StrAppend(&line, " ", path.path, ":", path.total_ns, "/", path.count);
    }
    lines.push_back(line);
  }
  void OnOccurrence(std::uint32_t path, std::uint64_t start_ns, std::uint64_t ns) override {
    lines.push_back(absl::StrCat(thread_, " once ", path, " ", start_ns, " ", ns));
  }
  void OnRecord(std::uint32_t series, std::uint64_t time_ns, std::int32_t batch,
                double value) override {
    lines.push_back(
        absl::StrCat(thread_, " record ", series, " ", time_ns, " b", batch, " ", value));
  }
  void OnRecordAt(std::uint32_t, std::int64_t, std::int32_t, double) override {}
  void OnInstant(std::uint32_t path, std::uint64_t time_ns, std::int32_t batch) override {
    lines.push_back(absl::StrCat(thread_, " instant ", path, " ", time_ns, " b", batch));
  }
  void OnLoss(const EventLoss& loss) override {
    lines.push_back(absl::StrCat("loss ", static_cast<int>(loss.cause), " n", loss.event_count, " ",
                                 loss.first_ns, "-", loss.last_ns));
  }
  bool full() const override { return lines.size() >= line_count_max; }

  Lines lines;
  std::size_t line_count_max = SIZE_MAX;
  int left_count = 0;

 private:
  std::string thread_;
};

// The files of one recording process below `path`.
class RecordedDirectory {
 public:
  using Event = spool::Event;
  using EventKind = spool::EventKind;

  // A scope `forward` is name 1, a series `training/loss` name 2.
  void Make(const std::filesystem::path& path, std::uint64_t opened_ns = 0) {
    path_ = path;
    name_count_ = 0;
    names_bytes_ = 0;
    capacities_.clear();
    heads_.clear();
    std::ofstream(path_ / "header") << std::string(spool::kPageBytes, '\0');
    std::ofstream(path_ / "names");
    Put("header", 0, std::string(spool::kHeaderMagic, 8));
    PutNumber<std::uint32_t>("header", offsetof(spool::WriterHeader, format_version), 1);
    PutNumber<std::uint64_t>("header", offsetof(spool::WriterHeader, opened_ns), opened_ns);
    AddName(spool::NameKind::kScope, {"forward"});
    AddName(spool::NameKind::kSeries, {"training", "loss", "1"});
  }
  std::filesystem::path Locate(const std::string& file) const {
    return (file.starts_with("ring-") && !ring_path.empty() ? ring_path : path_) / file;
  }
  void Put(const std::string& file, std::size_t offset, const std::string& bytes) {
    std::fstream out(Locate(file), std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(static_cast<std::streamoff>(offset));
    out << bytes;
  }
  template <typename T>
  void PutNumber(const std::string& file, std::size_t offset, T value) {
    Put(file, offset, std::string(reinterpret_cast<const char*>(&value), sizeof(value)));
  }
  void AddName(spool::NameKind kind, const Lines& texts) {
    spool::NameRecord head{};
    std::string body;
    for (const std::string& text : texts) {
      const auto length = static_cast<std::uint16_t>(text.size());
      body.append(reinterpret_cast<const char*>(&length), sizeof(length));
      body += text;
    }
    body.resize((body.size() + 7) / 8 * 8);
    head.record_bytes = static_cast<std::uint32_t>(sizeof(head) + body.size());
    head.id = ++name_count_;
    head.kind = kind;
    head.series_kind = spool::SeriesKind::kGauge;
    head.text_count = static_cast<std::uint16_t>(texts.size());
    Put("names", names_bytes_,
        std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + body);
    names_bytes_ += head.record_bytes;
    PutNumber<std::uint64_t>("header", offsetof(spool::WriterHeader, names_bytes), names_bytes_);
  }
  void MakeRing(std::uint32_t number, std::uint32_t capacity, std::uint32_t thread) {
    const std::string file = absl::StrCat("ring-", number);
    std::ofstream(Locate(file)) << std::string(spool::RingFileBytes(capacity), '\0');
    Put(file, 0, std::string(spool::kRingMagic, 8));
    PutNumber<std::uint32_t>(file, offsetof(spool::RingHeader, format_version), 1);
    PutNumber<std::uint32_t>(file, offsetof(spool::RingHeader, capacity), capacity);
    PutNumber<std::uint32_t>(file, offsetof(spool::RingHeader, ring), number);
    PutNumber<std::uint32_t>(file, offsetof(spool::RingHeader, thread), thread);
    PutNumber<std::uint32_t>(file, offsetof(spool::RingHeader, worker), spool::kNoWorker);
    SetState(number, spool::kRingLive);
    PutNumber<std::uint32_t>("header", offsetof(spool::WriterHeader, ring_count), number + 1);
    capacities_[number] = capacity;
    heads_[number] = 0;
    ring_count = number + 1;
  }
  void SetState(std::uint32_t ring, spool::RingState state) {
    PutNumber<std::uint32_t>(absl::StrCat("ring-", ring), offsetof(spool::RingHeader, state),
                             state);
  }
  std::uint64_t Tail(std::uint32_t ring) {
    std::ifstream in(Locate(absl::StrCat("ring-", ring)), std::ios::binary);
    in.seekg(offsetof(spool::RingHeader, tail));
    std::uint64_t tail = 0;
    in.read(reinterpret_cast<char*>(&tail), sizeof(tail));
    return tail;
  }
  bool Room(std::uint32_t ring) { return heads_[ring] - Tail(ring) < capacities_[ring]; }
  void Push(std::uint32_t ring, Event event) {
    const std::uint64_t position = heads_[ring]++;
    event.stamp = static_cast<std::uint32_t>(position + 1);
    Put(absl::StrCat("ring-", ring), spool::EventOffset(capacities_[ring], position),
        std::string(reinterpret_cast<const char*>(&event), sizeof(event)));
    PutNumber<std::uint64_t>(absl::StrCat("ring-", ring), offsetof(spool::RingHeader, head),
                             heads_[ring]);
  }
  static Event Scope(std::uint64_t start, std::uint64_t ns, std::uint8_t flags = spool::kInStep) {
    return {start, ns, 1, spool::kNoBatch, EventKind::kScope, flags, 0, 0};
  }
  static Event Record(std::uint64_t time, double value) {
    return {time,
            std::bit_cast<std::uint64_t>(value),
            2,
            spool::kBatchOfStep,
            EventKind::kRecord,
            spool::kInStep,
            0,
            0};
  }
  static Event Instant(std::uint64_t time, std::uint32_t name = 1) {
    return {time, 0, name, spool::kNoBatch, EventKind::kInstant, spool::kInStep, 0, 0};
  }
  static Event Begin(std::uint64_t time) {
    return {time, 0, 0, -1, EventKind::kStepBegin, 0, 0, 0};
  }
  static Event End(std::uint64_t start, std::uint64_t ns, std::int32_t batch) {
    return {start, ns, 0, batch, EventKind::kStepEnd, 0, 0, 0};
  }

  std::uint32_t ring_count = 0;
  // Where rings are made; empty = beside the header.
  std::filesystem::path ring_path;

 protected:
  std::filesystem::path path_;
  std::uint32_t name_count_ = 0;
  std::size_t names_bytes_ = 0;
  std::map<std::uint32_t, std::uint32_t> capacities_;
  std::map<std::uint32_t, std::uint64_t> heads_;
};

}  // namespace stepwell::agent
