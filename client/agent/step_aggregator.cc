#include "client/agent/step_aggregator.h"

#include <algorithm>
#include <bit>

#include "client/agent/byte_buffer.h"

namespace stepwell::agent {
namespace {

using spool::Event;
using spool::EventKind;

// Records of one step that wait for its batch beyond their ring. Past it they go without batch.
constexpr std::size_t kRecordsFoldedMax = spool::kRingBytesMax / sizeof(Event);

bool InStep(const Event& event) { return (event.flags & spool::kInStep) != 0; }

std::int32_t OwnBatch(const Event& event) { return std::max(event.batch, spool::kNoBatch); }

}  // namespace

void SampleSink::OnScope(std::uint32_t, std::uint64_t, std::uint64_t, std::int32_t) {}

void SampleSink::OnInstant(std::uint32_t, std::uint64_t, std::int32_t) {}

void StepAggregator::Add(const Event& event, SampleSink& sink) {
  switch (event.kind) {
    case EventKind::kScope:
    case EventKind::kRecord:
    case EventKind::kRecordAt:
    case EventKind::kInstant:
      return Keep(event, sink);
    case EventKind::kStepBegin:
      return FlushOutside(sink);
    case EventKind::kStepEnd:
      return EndStep(event, sink);
  }
}

void StepAggregator::Keep(const Event& event, SampleSink& sink) {
  const bool waits = InStep(event) && event.kind != EventKind::kRecordAt;
  // What stands alone could go at once, but not past what waits: its event could not be freed.
  if (waits || !decided()) {
    kept_.push_back(event);
  } else {
    EmitOutside(event, sink);
  }
}

void StepAggregator::EndStep(const Event& step_end, SampleSink& sink) {
  absl::flat_hash_map<std::uint32_t, PathTotal> totals;
  const std::int32_t batch = OwnBatch(step_end);
  const auto add = [&](const PathTotal& part) {
    PathTotal& total = totals[part.path];
    total.path = part.path;
    total.count += part.count;
    total.total_ns += part.total_ns;
  };
  const auto place = [&](const Event& event) {
    if (event.kind == EventKind::kRecordAt || !InStep(event) || event.time < step_end.time) {
      EmitOutside(event, sink);
    } else if (event.kind == EventKind::kScope) {
      sink.OnScope(event.name, event.time, event.value, batch);
      add({event.name, 1, event.value, event.time});
    } else if (event.kind == EventKind::kInstant) {
      sink.OnInstant(event.name, event.time, batch);
    } else {
      sink.OnRecord(event.name, event.time, batch, std::bit_cast<double>(event.value));
    }
  };
  for (const auto& [path, sum] : sums_) {
    if (sum.first_start_ns >= step_end.time) {
      add(sum);
    } else {
      sink.OnOccurrence(path, sum.first_start_ns, sum.total_ns);
    }
  }
  for (const Event& record : records_) place(record);
  for (const Event& event : kept_) place(event);
  sums_.clear();
  records_.clear();
  kept_.clear();

  std::vector<PathTotal> paths;
  paths.reserve(totals.size());
  for (const auto& [path, total] : totals) paths.push_back(total);
  std::sort(paths.begin(), paths.end(),
            [](const PathTotal& a, const PathTotal& b) { return a.path < b.path; });
  sink.OnStep({step_end.time, step_end.value, batch, paths});
}

void StepAggregator::End(SampleSink& sink) { FlushOutside(sink); }

void StepAggregator::FlushOutside(SampleSink& sink) {
  // A folded sum has lost its single starts: one sample at the first of them.
  for (const auto& [path, sum] : sums_) sink.OnOccurrence(path, sum.first_start_ns, sum.total_ns);
  for (const Event& record : records_) EmitOutside(record, sink);
  for (const Event& event : kept_) EmitOutside(event, sink);
  sums_.clear();
  records_.clear();
  kept_.clear();
}

void StepAggregator::EmitOutside(const Event& event, SampleSink& sink) {
  switch (event.kind) {
    case EventKind::kScope:
      sink.OnScope(event.name, event.time, event.value, spool::kNoBatch);
      return sink.OnOccurrence(event.name, event.time, event.value);
    case EventKind::kRecord:
      return sink.OnRecord(event.name, event.time, OwnBatch(event),
                           std::bit_cast<double>(event.value));
    case EventKind::kRecordAt:
      return sink.OnRecordAt(event.name, static_cast<std::int64_t>(event.time), OwnBatch(event),
                             std::bit_cast<double>(event.value));
    case EventKind::kInstant:
      return sink.OnInstant(event.name, event.time, spool::kNoBatch);
    case EventKind::kStepBegin:
    case EventKind::kStepEnd:
      return;
  }
}

void StepAggregator::AddToSums(const Event& scope) {
  PathTotal& sum = sums_[scope.name];
  sum.path = scope.name;
  // Scopes close inside out: the first to be seen need not be the first to start.
  sum.first_start_ns = sum.count == 0 ? scope.time : std::min(sum.first_start_ns, scope.time);
  sum.count += 1;
  sum.total_ns += scope.value;
}

std::string StepAggregator::FoldKept(SampleSink& sink) {
  for (const Event& event : kept_) {
    if (event.kind == EventKind::kRecordAt || event.kind == EventKind::kInstant || !InStep(event)) {
      EmitOutside(event, sink);
    } else if (event.kind == EventKind::kScope) {
      sink.OnScope(event.name, event.time, event.value, spool::kNoBatch);
      AddToSums(event);
    } else if (records_.size() < kRecordsFoldedMax) {
      records_.push_back(event);
    } else {
      EmitOutside(event, sink);
    }
  }
  kept_.clear();
  ByteWriter writer;
  writer.U32(static_cast<std::uint32_t>(sums_.size()));
  for (const auto& [path, sum] : sums_) {
    writer.U32(path);
    writer.U64(sum.count);
    writer.U64(sum.total_ns);
    writer.U64(sum.first_start_ns);
  }
  writer.U32(static_cast<std::uint32_t>(records_.size()));
  for (const Event& record : records_) {
    writer.U32(record.name);
    writer.U64(record.time);
    writer.U64(record.value);
  }
  return writer.Take();
}

bool StepAggregator::Restore(std::string_view state) {
  ByteReader reader(state);
  for (std::uint32_t left = reader.U32(); left > 0 && reader.ok(); --left) {
    PathTotal sum;
    sum.path = reader.U32();
    sum.count = reader.U64();
    sum.total_ns = reader.U64();
    sum.first_start_ns = reader.U64();
    sums_[sum.path] = sum;
  }
  for (std::uint32_t left = reader.U32(); left > 0 && reader.ok(); --left) {
    Event record{};
    record.kind = EventKind::kRecord;
    record.flags = spool::kInStep;
    record.batch = spool::kBatchOfStep;
    record.name = reader.U32();
    record.time = reader.U64();
    record.value = reader.U64();
    records_.push_back(record);
  }
  if (reader.ok() && reader.AtEnd()) return true;
  sums_.clear();
  records_.clear();
  return false;
}

}  // namespace stepwell::agent
