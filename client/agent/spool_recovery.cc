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
#include "client/agent/writer_identity.h"

namespace stepwell::agent {
namespace {

// More than a segment's start takes.
constexpr std::size_t kStartBytesMax = 256;
// All segments of one writer hold about as much as the spool may; an earlier agent's bound may have been another.
constexpr std::int64_t kTakenTimesMax = 2;
constexpr std::int64_t kTakenBytesMin = 256 << 20;
// What we say ourselves of a gap is shorter, and each segment's head repeats it.
constexpr std::size_t kGapReasonBytesMax = 256;

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

// Where a group of frames began.
struct GroupStart {
  bool open = false;
  std::size_t offset = 0;
  std::uint64_t next_sequence = 0;
  std::uint64_t last_sequence = 0;
};

// Two segments' worth, with what may come behind the last byte of one: of what is longer the rest is none of ours.
std::int64_t SegmentBytesMax(const Spool::Options& options) {
  return 2 * (options.segment_bytes_max + static_cast<std::int64_t>(kRecordPayloadBytesMax));
}

std::int64_t TakenBytesMax(std::int64_t spool_bytes_max) {
  if (spool_bytes_max > INT64_MAX / kTakenTimesMax) return INT64_MAX;
  return std::max(kTakenTimesMax * spool_bytes_max, kTakenBytesMin);
}

// What of a segment no record that counts covers.
class DamageNote {
 public:
  void Add(std::size_t offset, std::size_t bytes) {
    if (bytes == 0) return;
    if (places_++ == 0) first_offset_ = offset;
    bytes_ += bytes;
  }
  // One line, however many places there are: whoever wrote the segment may have made a million.
  void Log(const std::string& segment) const {
    if (places_ == 0) return;
    log::Warning(
        "spool_damaged",
        {{"segment", segment}, {"offset", first_offset_}, {"bytes", bytes_}, {"places", places_}});
  }

 private:
  std::size_t first_offset_ = 0;
  std::size_t bytes_ = 0;
  std::size_t places_ = 0;
};

}  // namespace

std::string SegmentName(std::uint32_t number);  // spool.cc

// A segment, and where it belongs by its own words.
struct Spool::FoundSegment {
  std::uint32_t number = 0;
  std::int64_t bytes = 0;
  std::uint64_t next_sequence = 0;
  std::optional<Uuid> writer;  // none = its start is damaged
};

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
  known_definitions_ = {};
  if (recovery_.definitions_left_out > 0) {
    log::Warning("spool_definitions_left_out", {{"writer", options_.writer.ToText()},
                                                {"definitions", recovery_.definitions_left_out},
                                                {"taken", definitions_.size()}});
  }
  absl::MutexLock lock(&mu_);
  if (options_.sync_before_send) {
    // An agent that died may have written them without syncing.
    for (const SegmentPtr& segment : segments_) {
      if (fdatasync(segment->file.get()) != 0)
        return absl::ErrnoToStatus(errno, "spool: fdatasync");
    }
  } else {
    SyncNewestLocked();
  }
  synced_sequence_ = last_sequence_;
  acked_highest_ = acked_.sequence;
  acked_written_ = acked_;
  // What was acked is gone: numbers above were given too, and must not be given again.
  lost_acked_ = acked_.sequence > last_sequence_;
  return absl::OkStatus();
}

// As the agent that wrote them would have within half a second. Segments before the newest that has frames were
// synced before its first one, or here. Where the disk refuses, frames are sent all the same.
void Spool::SyncNewestLocked() const {
  for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
    if ((*segment)->last_sequence <= acked_.sequence) return;
    fdatasync((*segment)->file.get());
    if ((*segment)->last_sequence >= (*segment)->first_sequence) return;
  }
}

Spool::FoundSegment Spool::Look(std::uint32_t number) const {
  FoundSegment found;
  found.number = number;
  const auto file = OpenAt(directory_.get(), SegmentName(number), O_RDONLY | O_NONBLOCK);
  struct stat status {};
  if (!file.ok() || fstat(file->get(), &status) != 0) return found;
  found.bytes = status.st_size;
  const auto bytes = ReadAt(file->get(), 0, kStartBytesMax);
  if (!bytes.ok()) return found;
  const auto record = ParseRecord(*bytes, 0);
  if (!record || record->type != RecordType::kSegmentStart) return found;
  if (const std::optional<SegmentStart> start = SegmentStart::Decode(record->payload)) {
    found.writer = start->writer;
    found.next_sequence = start->next_sequence;
  }
  return found;
}

// The newest in any case: its head is what the sequences go on from.
std::size_t Spool::SegmentCountMax() const {
  if (options_.segments == nullptr) return kSegmentCountMax;
  return std::clamp(options_.segments->left(), std::size_t{1}, kSegmentCountMax);
}

// Files may have been exchanged. Of another writer's, sequences and ring positions are none of ours: they
// are left out, and lie there. The writer is the one that was asked for, where any segment is its; else (a
// successor's id is known from its segments alone) the one that the lowest number names. Those that changed
// places are put in the order that they tell themselves; one whose start is damaged stays behind its
// neighbour.
std::vector<std::uint32_t> Spool::OwnSegments(const std::vector<std::uint32_t>& numbers) {
  // Not one beyond is opened: there may be a million.
  const std::size_t beyond = numbers.size() - std::min(numbers.size(), SegmentCountMax());
  recovery_.segments_left_out = beyond;
  std::vector<FoundSegment> own;
  std::uint64_t next_sequence = 0;
  std::optional<Uuid> first;
  bool is_asked_for = false;
  for (std::size_t i = beyond; i < numbers.size(); ++i) {
    FoundSegment found = Look(numbers[i]);
    if (found.writer) {
      next_sequence = found.next_sequence;
      if (!first) first = found.writer;
      is_asked_for = is_asked_for || found.writer == options_.writer;
    }
    found.next_sequence = next_sequence;
    own.push_back(found);
  }
  if (first && !is_asked_for) options_.writer = *first;
  std::erase_if(own, [this](const FoundSegment& found) {
    if (!found.writer || *found.writer == options_.writer) return false;
    log::Warning("spool_segment_of_another", {{"segment", SegmentName(found.number)},
                                              {"writer", options_.writer.ToText()},
                                              {"other", found.writer->ToText()}});
    return true;
  });
  std::stable_sort(own.begin(), own.end(), [](const FoundSegment& left, const FoundSegment& right) {
    return left.next_sequence < right.next_sequence;
  });
  LeaveOutOldest(own);
  std::vector<std::uint32_t> ordered;
  for (const FoundSegment& found : own) ordered.push_back(found.number);
  return ordered;
}

// What is beyond the bounds was written by nobody of ours, or by an agent with another bound. The newest ones tell where the
// sequences go on; those of the others are gaps by that, and their files stay where they are.
void Spool::LeaveOutOldest(std::vector<FoundSegment>& own) {
  std::int64_t left = TakenBytesMax(options_.bytes_max);
  std::size_t kept = 0;
  for (auto found = own.rbegin(); found != own.rend(); ++found, ++kept) {
    const std::int64_t bytes = std::min(found->bytes, SegmentBytesMax(options_));
    if (bytes > left) break;
    left -= bytes;
  }
  recovery_.segments_left_out += own.size() - kept;
  own.erase(own.begin(), own.end() - static_cast<std::ptrdiff_t>(kept));
  if (recovery_.segments_left_out == 0) return;
  log::Warning("spool_segments_left_out", {{"writer", options_.writer.ToText()},
                                           {"segments", recovery_.segments_left_out},
                                           {"taken", own.size()}});
}

absl::Status Spool::RecoverSegment(std::uint32_t number, bool is_last) {
  auto segment = std::make_shared<Segment>();
  segment->number = number;
  STEPWELL_ASSIGN_OR_RETURN(segment->file,
                            OpenAt(directory_.get(), SegmentName(number), O_RDWR | O_NONBLOCK));
  segment->slot = SegmentSlot(options_.segments);
  // An agent that is killed again and again leaves many short ones: room for a whole one each time
  // would make every start slower than the one before.
  struct stat status {};
  if (fstat(segment->file.get(), &status) != 0) {
    return absl::ErrnoToStatus(errno, "spool: " + SegmentName(number));
  }
  const std::int64_t bytes_max = std::min(std::int64_t{status.st_size}, SegmentBytesMax(options_));
  STEPWELL_ASSIGN_OR_RETURN(const std::string bytes,
                            ReadAt(segment->file.get(), 0, static_cast<std::size_t>(bytes_max)));
  std::uint64_t next_sequence = NextSequence();
  segment->first_sequence = next_sequence;
  segment->last_sequence = next_sequence - 1;
  std::size_t offset = 0;
  GroupStart group;
  RecordReader reader(bytes, false_bytes_left_);
  DamageNote damage;
  while (const auto record = reader.Next()) {
    damage.Add(offset, record->begin - offset);
    const bool in_group = group.open;
    const GroupStart before{true, record->begin, next_sequence, segment->last_sequence};
    group.open = TakeRecord(*record, *segment, next_sequence);
    if (group.open && !in_group) {
      group = before;
      // What is missing before its first frame is a gap by now, whatever becomes of the group.
      group.next_sequence = next_sequence - 1;
    }
    offset = record->end;
  }
  recovery_.checked_bytes += reader.checked_bytes();
  false_bytes_left_ -= std::min(false_bytes_left_, reader.false_bytes());
  // No crash made that: what lies there may be frames.
  if (reader.gave_up()) damage.Add(offset, bytes.size() - offset);
  damage.Log(SegmentName(number));
  if (group.open && is_last) {
    // Its checkpoint never came: what it holds is still in the rings.
    offset = group.offset;
    next_sequence = group.next_sequence;
    segment->last_sequence = group.last_sequence;
    // Of what was missing within it: these sequences are given anew.
    absl::MutexLock lock(&mu_);
    gaps_.erase(gaps_.lower_bound(next_sequence), gaps_.end());
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

// Each segment repeats them.
void Spool::TakeDefinition(std::string_view payload) {
  std::string definition(payload);
  if (known_definitions_.contains(definition)) return;
  if (definitions_.size() >= kDefinitionCountMax ||
      definition_bytes_ + payload.size() > kDefinitionsBytesMax) {
    ++recovery_.definitions_left_out;
    return;
  }
  definition_bytes_ += payload.size();
  known_definitions_.insert(definition);
  definitions_.push_back(std::move(definition));
}

// Returns whether a group of frames goes on behind this record.
bool Spool::TakeRecord(const RecordView& record, Segment& segment, std::uint64_t& next_sequence) {
  switch (record.type) {
    case RecordType::kSegmentStart: {
      const auto start = SegmentStart::Decode(record.payload);
      if (start) TakeSegmentStart(*start, segment, next_sequence);
      return false;
    }
    case RecordType::kDefinition:
      TakeDefinition(record.payload);
      return false;
    case RecordType::kFrame:
      return TakeFrame(record.payload, segment, next_sequence);
    case RecordType::kGap: {
      auto gap = GapSpan::Decode(record.payload);
      if (!gap) return false;
      gap->reason = CleanText(gap->reason, kGapReasonBytesMax);
      ReachSequence(gap->first_sequence, next_sequence);
      next_sequence = std::max(next_sequence, gap->last_sequence + 1);
      absl::MutexLock lock(&mu_);
      AddGapLocked(*std::move(gap));
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
