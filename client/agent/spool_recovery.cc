// How a spool is taken over from an earlier agent: Spool::Open.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/spool.h"

namespace stepwell::agent {
namespace {

// More than a segment's start takes.
constexpr std::size_t kStartBytesMax = 256;

// "0000000012.seg" -> 12; nothing for any other name.
std::optional<std::uint32_t> SegmentNumber(std::string_view name) {
  std::uint32_t number = 0;
  if (name.size() != 14 || name.substr(10) != ".seg") return std::nullopt;
  const absl::string_view digits(name.data(), 10);
  if (!absl::SimpleAtoi(digits, &number) || number == 0) return std::nullopt;
  return number;
}

absl::StatusOr<std::vector<std::uint32_t>> ListSegments(int directory) {
  const int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, "spool: open directory");
  DIR* listing = fdopendir(fd);
  if (listing == nullptr) {
    close(fd);
    return absl::ErrnoToStatus(errno, "spool: list directory");
  }
  const absl::Cleanup closer = [listing] { closedir(listing); };
  std::vector<std::uint32_t> numbers;
  while (const dirent* entry = readdir(listing)) {
    if (const auto number = SegmentNumber(entry->d_name)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// A segment, and where it belongs by its own words.
struct Placed {
  std::uint32_t number = 0;
  std::uint64_t next_sequence = 0;
  std::optional<Uuid> writer;  // none = its start is damaged
};

// Where a group of frames began.
struct GroupStart {
  bool open = false;
  std::size_t offset = 0;
  std::uint64_t next_sequence = 0;
  std::uint64_t last_sequence = 0;
};

}  // namespace

std::string SegmentName(std::uint32_t number);  // spool.cc

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(FileDescriptor directory, Options options,
                                                   const Clock& clock) {
  std::unique_ptr<Spool> spool(new Spool(std::move(directory), options, clock));
  spool->SetBounds({options.bytes_max, options.bytes_max, options.bytes_max / 4});
  STEPWELL_RETURN_IF_ERROR(spool->Recover());
  return spool;
}

absl::Status Spool::Recover() {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> numbers,
                            ListSegments(directory_.get()));
  if (!numbers.empty()) segment_number_last_ = numbers.back();
  const std::vector<std::uint32_t> own = OwnSegments(numbers);
  for (const std::uint32_t number : own) {
    STEPWELL_RETURN_IF_ERROR(RecoverSegment(number, number == own.back()));
  }
  absl::MutexLock lock(&mu_);
  if (options_.sync_before_send) {
    // An agent that died may have written them without syncing.
    for (const SegmentPtr& segment : segments_) {
      if (fdatasync(segment->file.get()) != 0)
        return absl::ErrnoToStatus(errno, "spool: fdatasync");
    }
  }
  synced_sequence_ = last_sequence_;
  acked_highest_ = acked_.sequence;
  acked_written_ = acked_;
  // What was acked is gone: numbers above were given too, and must not be given again.
  lost_acked_ = acked_.sequence > last_sequence_;
  return absl::OkStatus();
}

std::optional<SegmentStart> Spool::ReadStart(std::uint32_t number) const {
  const auto file = OpenAt(directory_.get(), SegmentName(number), O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return std::nullopt;
  const auto bytes = ReadAt(file->get(), 0, kStartBytesMax);
  if (!bytes.ok()) return std::nullopt;
  const auto record = ParseRecord(*bytes, 0);
  if (!record || record->type != RecordType::kSegmentStart) return std::nullopt;
  return SegmentStart::Decode(record->payload);
}

// Files may have been exchanged. Of another writer's, sequences and ring positions are none of ours: they
// are left out, and lie there. The writer is the one that was asked for, where any segment is its; else (a
// successor's id is known from its segments alone) the one that the lowest number names. Those that changed
// places are put in the order that they tell themselves; one whose start is damaged stays behind its
// neighbour.
std::vector<std::uint32_t> Spool::OwnSegments(const std::vector<std::uint32_t>& numbers) {
  std::vector<Placed> own;
  std::uint64_t next_sequence = 0;
  std::optional<Uuid> first;
  bool is_asked_for = false;
  for (const std::uint32_t number : numbers) {
    const std::optional<SegmentStart> start = ReadStart(number);
    if (start) {
      next_sequence = start->next_sequence;
      if (!first) first = start->writer;
      is_asked_for = is_asked_for || start->writer == options_.writer;
    }
    own.push_back({number, next_sequence, start ? std::optional(start->writer) : std::nullopt});
  }
  if (first && !is_asked_for) options_.writer = *first;
  std::erase_if(own, [this](const Placed& placed) {
    if (!placed.writer || *placed.writer == options_.writer) return false;
    log::Warning("spool_segment_of_another", {{"segment", SegmentName(placed.number)},
                                              {"writer", options_.writer.ToText()},
                                              {"other", placed.writer->ToText()}});
    return true;
  });
  std::stable_sort(own.begin(), own.end(), [](const Placed& left, const Placed& right) {
    return left.next_sequence < right.next_sequence;
  });
  std::vector<std::uint32_t> ordered;
  for (const Placed& placed : own) ordered.push_back(placed.number);
  return ordered;
}

absl::Status Spool::RecoverSegment(std::uint32_t number, bool is_last) {
  auto segment = std::make_shared<Segment>();
  segment->number = number;
  STEPWELL_ASSIGN_OR_RETURN(segment->file,
                            OpenAt(directory_.get(), SegmentName(number), O_RDWR | O_NONBLOCK));
  // An agent that is killed again and again leaves many short ones: room for a whole one each time
  // would make every start slower than the one before.
  struct stat status {};
  if (fstat(segment->file.get(), &status) != 0) {
    return absl::ErrnoToStatus(errno, "spool: " + SegmentName(number));
  }
  const std::size_t bytes_max =
      2 * (static_cast<std::size_t>(options_.segment_bytes_max) + kRecordPayloadBytesMax);
  STEPWELL_ASSIGN_OR_RETURN(const std::string bytes,
                            ReadAt(segment->file.get(), 0,
                                   std::min(static_cast<std::size_t>(status.st_size), bytes_max)));
  std::uint64_t next_sequence = NextSequence();
  segment->first_sequence = next_sequence;
  segment->last_sequence = next_sequence - 1;
  std::size_t offset = 0;
  GroupStart group;
  while (offset < bytes.size()) {
    if (const auto record = ParseRecord(bytes, offset)) {
      const bool in_group = group.open;
      const GroupStart before{true, offset, next_sequence, segment->last_sequence};
      group.open = TakeRecord(*record, *segment, next_sequence);
      if (group.open && !in_group) {
        group = before;
        // What is missing before its first frame is a gap by now, whatever becomes of the group.
        group.next_sequence = next_sequence - 1;
      }
      offset = record->end;
      continue;
    }
    const std::size_t next = FindRecord(bytes, offset);
    if (next == std::string::npos) break;
    log::Warning("spool_damaged",
                 {{"segment", SegmentName(number)}, {"offset", offset}, {"bytes", next - offset}});
    offset = next;
  }
  if (group.open && is_last) {
    // Its checkpoint never came: what it holds is still in the rings.
    offset = group.offset;
    next_sequence = group.next_sequence;
    segment->last_sequence = group.last_sequence;
    // Of what was missing within it: these sequences are given anew.
    absl::MutexLock lock(&mu_);
    std::erase_if(gaps_, [&](const GapSpan& gap) { return gap.first_sequence >= next_sequence; });
  }
  if (offset < bytes.size() && is_last) {
    // Torn by a crash: cut, so that the next scan does not take it for damage.
    log::Info("spool_tail_cut",
              {{"segment", SegmentName(number)}, {"bytes", bytes.size() - offset}});
    if (ftruncate(segment->file.get(), static_cast<off_t>(offset)) != 0) {
      return absl::ErrnoToStatus(errno, "spool: cut torn tail");
    }
  }
  segment->bytes = static_cast<std::int64_t>(offset);
  segment->written_at = clock_.Monotonic();
  segment->written_before = absl::TimeFromTimespec(status.st_mtim);
  absl::MutexLock lock(&mu_);
  last_sequence_ = next_sequence - 1;
  segments_.push_back(std::move(segment));
  return absl::OkStatus();
}

// A sequence that is jumped over belonged to a damaged record, unless a gap record names it.
void Spool::ReachSequence(std::uint64_t sequence, std::uint64_t& next_sequence) {
  if (sequence <= next_sequence) return;
  absl::MutexLock lock(&mu_);
  GapSpan hole;
  hole.first_sequence = next_sequence;
  hole.last_sequence = sequence - 1;
  hole.cause = pb::GAP_CAUSE_SPOOL_CORRUPT;
  hole.reason = "frames of the spool failed their checksum";
  AddGapLocked(std::move(hole));
  next_sequence = sequence;
}

void Spool::TakeSegmentStart(const SegmentStart& start, Segment& segment,
                             std::uint64_t& next_sequence) {
  bool is_first = false;
  {
    absl::MutexLock lock(&mu_);
    acked_.sequence = std::max(acked_.sequence, start.acked_sequence);
    is_first = segments_.empty();
  }
  if (is_first) {
    // A second start in it is forged: sequences that were counted are not given again.
    next_sequence = std::max(next_sequence, start.next_sequence);
  } else {
    ReachSequence(start.next_sequence, next_sequence);
  }
  segment.first_sequence = next_sequence;
  segment.last_sequence = next_sequence - 1;
}

// Returns whether a group of frames goes on behind this one.
bool Spool::TakeFrame(std::string_view payload, Segment& segment, std::uint64_t& next_sequence) {
  Frame frame;
  Checkpoint checkpoint;
  if (!Frame::Decode(payload, frame, &checkpoint)) return false;
  if (frame.sequence < next_sequence) return false;
  ReachSequence(frame.sequence, next_sequence);
  if (segment.last_sequence < segment.first_sequence) segment.first_sequence = frame.sequence;
  segment.last_sequence = frame.sequence;
  next_sequence = frame.sequence + 1;
  segment.span.Add(frame.span);
  checkpoint_.MergeFrom(checkpoint);
  return frame.group_continues;
}

// Returns whether a group of frames goes on behind this record.
bool Spool::TakeRecord(const RecordView& record, Segment& segment, std::uint64_t& next_sequence) {
  switch (record.type) {
    case RecordType::kSegmentStart: {
      const auto start = SegmentStart::Decode(record.payload);
      if (start) TakeSegmentStart(*start, segment, next_sequence);
      return false;
    }
    case RecordType::kDefinition: {
      std::string definition(record.payload);
      if (std::find(definitions_.begin(), definitions_.end(), definition) == definitions_.end()) {
        definitions_.push_back(std::move(definition));
      }
      return false;
    }
    case RecordType::kFrame:
      return TakeFrame(record.payload, segment, next_sequence);
    case RecordType::kGap: {
      const auto gap = GapSpan::Decode(record.payload);
      if (!gap) return false;
      ReachSequence(gap->first_sequence, next_sequence);
      next_sequence = std::max(next_sequence, gap->last_sequence + 1);
      absl::MutexLock lock(&mu_);
      AddGapLocked(*gap);
      return false;
    }
    case RecordType::kCheckpoint: {
      Checkpoint checkpoint;
      if (Checkpoint::Decode(record.payload, checkpoint)) checkpoint_.MergeFrom(checkpoint);
      return false;
    }
    case RecordType::kAcked: {
      const auto mark = AckedMark::Decode(record.payload);
      absl::MutexLock lock(&mu_);
      if (mark) acked_ = *mark;
      return false;
    }
  }
  return false;
}

}  // namespace stepwell::agent
