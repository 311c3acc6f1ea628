#include "client/agent/served_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/spool_numbers.h"

namespace stepwell::agent {
namespace {

constexpr char kSpoolFolder[] = "spool";
constexpr char kDoneFile[] = "done";
// In the folder of a spool that is to be succeeded: RememberBehind, as a number.
constexpr char kBehindFile[] = "behind";
// In the writer's directory, once its rings are given up: also for the next agent.
constexpr char kGivenUpFile[] = "given-up";
// Less than the time between two visits of a quiet writer.
constexpr absl::Duration kTrimInterval = absl::Milliseconds(400);
// From the newest on, for one with samples: some tell losses alone.
constexpr std::uint64_t kFramesLookedAt = 64;
// `stepwell agent status` and the next agent know of acks that late, at visits of one that records.
constexpr absl::Duration kMarkInterval = absl::Milliseconds(400);
constexpr std::size_t kBehindBytesMax = 32;
// A master that takes a writer at all has taken its end by then, as a rule.
constexpr absl::Duration kDeliveryPatience = absl::Minutes(1);
// Beside what is copied: a segment's start with its definitions.
constexpr std::int64_t kSuccessorBytes = 64 << 10;
// Of one writer, the living one among them: an outage retires it once, as a rule. Older ones only lack their Close.
constexpr std::size_t kSpoolCountMax = 16;
// Some ten milliseconds of a disk's time; far more than a writer seals meanwhile.
constexpr std::size_t kMovedBytesPerVisit = 4 << 20;

// `parent` is the directory of both names, which are relative to `root`. On failure either may be
// there.
absl::Status RenameDurably(int root, const std::string& from, const std::string& to, int parent) {
  if (renameat(root, from.c_str(), root, to.c_str()) != 0 || fsync(parent) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("rename ", from, " to ", to));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServedWriter>> ServedWriter::Open(FileDescriptor directory,
                                                                 WriterIdentity identity,
                                                                 const ServeContext& context) {
  std::unique_ptr<ServedWriter> served(
      new ServedWriter(std::move(directory), std::move(identity), context));
  STEPWELL_RETURN_IF_ERROR(served->OpenSpools());
  return served;
}

ServedWriter::~ServedWriter() {
  if (link_ != nullptr) context_.sender.Remove(*link_);
  // The last acks: who looks at the spool later would take for unsent what was stored.
  if (spool_ != nullptr) spool_->Sync().IgnoreError();
  for (const Retired& retired : retired_) context_.sender.Remove(*retired.link);
}

// The highest number is the living spool; lower ones were retired and only lack their Close.
absl::Status ServedWriter::OpenSpools() {
  STEPWELL_ASSIGN_OR_RETURN(spool_root_,
                            OpenDirectoryAt(directory_.get(), kSpoolFolder, WhenAbsent::kCreate));
  gives_up_rings_ = faccessat(directory_.get(), kGivenUpFile, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNames(spool_root_.get()));
  const std::vector<std::uint32_t> numbers = SpoolNumbers(names);
  if (numbers.size() > kSpoolCountMax) {
    log::Warning("spools_left_out", {{"writer", identity_.writer.ToText()},
                                     {"spools", numbers.size() - kSpoolCountMax}});
  }
  const std::size_t first = numbers.size() - std::min(numbers.size(), kSpoolCountMax);
  for (std::size_t i = first; i + 1 < numbers.size(); ++i) {
    const std::string folder = absl::StrCat(numbers[i]);
    STEPWELL_ASSIGN_OR_RETURN(std::shared_ptr<Spool> spool, OpenSpool(folder, identity_.writer));
    retired_.push_back({Link(std::move(spool)), folder});
    retired_.back().link->Retire();
    context_.sender.Add(retired_.back().link);
  }
  folder_number_ = numbers.empty() ? 0 : numbers.back();
  // Each retirement gives the writer a new id; the first has that of the directory.
  const Uuid writer = folder_number_ == 0 ? identity_.writer : Uuid::Random();
  STEPWELL_ASSIGN_OR_RETURN(spool_, OpenSpool(absl::StrCat(folder_number_), writer));
  recovered_sequence_ = spool_->last_sequence();
  sync_pace_ = SyncPace(context_.frame_interval, recovered_sequence_);
  sealer_ = std::make_unique<FrameSealer>(spool_, context_.clock);
  link_ = Link(spool_);
  DefineNew();
  if (const absl::StatusOr<std::string> text = ReadSmallFileAt(
          spool_root_.get(), absl::StrCat(folder_number_, "/", kBehindFile), kBehindBytesMax);
      text.ok()) {
    std::uint64_t behind = 0;
    // Tend goes on with it.
    if (absl::SimpleAtoi(*text, &behind)) {
      behind_ = behind;
      link_->Retire();
    }
  }
  if (spool_->lost_acked() && !behind_) {
    link_->Retire();
    context_.sender.Add(link_);
    set_back_at_open_ = true;
    return Succeed();
  }
  context_.sender.Add(link_);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Spool>> ServedWriter::OpenSpool(const std::string& folder,
                                                               Uuid writer) {
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor directory,
                            OpenDirectoryAt(spool_root_.get(), folder, WhenAbsent::kCreate));
  Spool::Options options = context_.spool;
  options.writer = writer;
  STEPWELL_ASSIGN_OR_RETURN(std::unique_ptr<Spool> spool,
                            Spool::Open(std::move(directory), options, context_.clock));
  return std::shared_ptr<Spool>(std::move(spool));
}

std::shared_ptr<OutboundWriter> ServedWriter::Link(std::shared_ptr<Spool> spool) const {
  return std::make_shared<OutboundWriter>(identity_, context_.face, std::move(spool),
                                          context_.token_for(identity_));
}

// Before the frames that use them.
void ServedWriter::DefineNew() {
  const std::vector<pb::Definition>& definitions = sealer_->catalog().definitions();
  for (; defined_count_ < definitions.size(); ++defined_count_) {
    if (definitions[defined_count_].ref() != 0) link_->AddDefinition(definitions[defined_count_]);
  }
}

absl::Status ServedWriter::Seal(const Checkpoint& checkpoint) {
  DefineNew();
  absl::Status sealed = sealer_->Seal(checkpoint);
  NoteWritten(context_.clock.Monotonic());
  if (sealed.ok()) SyncBeforeSend();
  return sealed;
}

// What could not be synced is written all the same: it is only not sent before a later sync.
void ServedWriter::SyncBeforeSend() {
  if (!context_.spool.sync_before_send) return;
  spool_->Sync().IgnoreError();
  NoteSynced();
}

absl::Status ServedWriter::Retry() {
  absl::Status done = sealer_->Retry();
  NoteWritten(context_.clock.Monotonic());
  if (absl::IsResourceExhausted(done)) {
    // Room may have come from what was acked meanwhile.
    spool_->Trim().IgnoreError();
  }
  if (done.ok()) SyncBeforeSend();
  return done;
}

void ServedWriter::Close(bool died) {
  if (!close_requested_) closed_at_ = context_.clock.Monotonic();
  close_requested_ = true;
  died_ = died;
  link_->RequestClose(died);
}

std::int64_t ServedWriter::LastSampleUs() const {
  const std::uint64_t last = spool_->last_sequence();
  for (std::uint64_t sequence = last; sequence > 0 && last - sequence < kFramesLookedAt;
       --sequence) {
    const absl::StatusOr<SpoolItem> item = spool_->Read(sequence);
    const Frame* const frame = item.ok() ? std::get_if<Frame>(&*item) : nullptr;
    if (frame != nullptr && frame->span.sample_count > 0) return frame->span.last_time_us;
  }
  return 0;
}

bool ServedWriter::done() const {
  const OutboundWriter::Status status = link_->status();
  return close_requested_ && retired_.empty() && !status.retired &&
         status.state == SendWindow::State::kClosed;
}

bool ServedWriter::may_wait() const {
  if (!close_requested_ || sealer_->pending()) return false;
  const bool is_disconnected = link_->status().state == SendWindow::State::kDisconnected;
  return done() || spooled() || refused() || is_disconnected ||
         context_.clock.Monotonic() - closed_at_ >= kDeliveryPatience;
}

AsideWriter ServedWriter::Aside() const {
  AsideWriter aside;
  aside.state = done()      ? AsideWriter::State::kDelivered
                : spooled() ? AsideWriter::State::kSpooled
                : refused() ? AsideWriter::State::kRefused
                            : AsideWriter::State::kUnsent;
  aside.unacked_bytes = unacked_bytes();
  aside.acked_sequence = link_->status().acked_sequence;
  return aside;
}

void ServedWriter::Tend() {
  absl::Status tended;
  TendRetirement(tended);
  const absl::Duration now = context_.clock.Monotonic();
  // What is being moved stays as it is.
  if (!successor_ && now - trimmed_at_ >= kTrimInterval) {
    trimmed_at_ = now;
    tended.Update(spool_->Trim());
  }
  DropRetired();
  MarkDone();
  refusal_note_.Follow(link_->status());
  TellTrouble(tended);
}

void ServedWriter::NoteWritten(absl::Duration now) {
  sync_pace_.OnWritten(spool_->last_sequence(), spool_->acked().sequence, now);
}

void ServedWriter::TendSync(absl::Duration now) {
  NoteWritten(now);
  if (IsSyncDue(now)) return Sync();
  if (now - marked_at_ < kMarkInterval) return;
  marked_at_ = now;
  TellTrouble(spool_->MarkAcked());
}

void ServedWriter::Sync() {
  TellTrouble(spool_->Sync());
  NoteSynced();
}

void ServedWriter::NoteSynced() {
  if (spool_->is_unsynced()) {
    sync_pace_.OnFailed(context_.clock.Monotonic());
  } else {
    sync_pace_.OnSynced();
  }
}

void ServedWriter::TellTrouble(const absl::Status& tended) {
  if (tended.ok() || context_.clock.Monotonic() - trouble_logged_ < absl::Minutes(1)) return;
  trouble_logged_ = context_.clock.Monotonic();
  log::Warning("spool_trouble",
               {{"writer", spool_->writer().ToText()}, {"why", std::string(tended.message())}});
}

bool ServedWriter::IsTendDue() const {
  return sealer_->pending() || successor_ || !retired_.empty() || link_->status().retired;
}

bool ServedWriter::IsSyncDue(absl::Duration now) const {
  return spool_->is_unsynced() && sync_pace_.IsDue(spool_->acked().sequence, now);
}

bool ServedWriter::WasDone(int directory) {
  return faccessat(directory, kDoneFile, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

absl::Time ServedWriter::DoneTime(int directory) {
  struct stat status {};
  if (fstatat(directory, kDoneFile, &status, AT_SYMLINK_NOFOLLOW) != 0) return absl::Now();
  return absl::TimeFromTimespec(status.st_mtim);
}

// For the next agent, which may serve another master: what is done is not told again. Gone while a
// master that came back older is told the tail.
void ServedWriter::MarkDone() {
  if (done() == done_marked_) return;
  done_marked_ = !done_marked_;
  if (done_marked_) {
    OpenAt(directory_.get(), kDoneFile, O_WRONLY | O_CREAT).IgnoreError();
  } else {
    unlinkat(directory_.get(), kDoneFile, 0);
  }
}

// Copying what a successor needs may fail for hours (a full disk): not tried at every visit.
void ServedWriter::TendRetirement(absl::Status& tended) {
  const absl::Duration now = context_.clock.Monotonic();
  if (!link_->status().retired || now < succeed_at_) return;
  // What is given up is counted by its frames.
  if (!seen_alive_ && sealer_->pending()) return;
  const absl::Status succeeded = Succeed();
  if (succeeded.ok()) {
    if (!successor_) succeed_backoff_.Reset();
  } else {
    succeed_at_ = now + succeed_backoff_.NextDelay();
  }
  tended.Update(succeeded);
}

absl::StatusOr<std::uint64_t> ServedWriter::RememberBehind() {
  if (behind_) return *behind_;
  const OutboundWriter::Status old = link_->status();
  // What this process sealed and never sent is stored nowhere, whatever sequence it got.
  const std::uint64_t never_sent_behind = std::max(recovered_sequence_, old.sent_sequence);
  if (!seen_alive_) STEPWELL_RETURN_IF_ERROR(GiveUpRings());
  const std::uint64_t behind = spool_->lost_acked() || !seen_alive_
                                   ? spool_->last_sequence()
                                   : std::min(old.acked_sequence, never_sent_behind);
  const std::string name = absl::StrCat(folder_number_, "/", kBehindFile);
  const std::string draft = absl::StrCat(name, ".draft");
  STEPWELL_ASSIGN_OR_RETURN(const FileDescriptor file,
                            OpenAt(spool_root_.get(), draft, O_WRONLY | O_CREAT | O_TRUNC));
  STEPWELL_RETURN_IF_ERROR(WriteAt(file.get(), 0, absl::StrCat(behind)));
  if (fdatasync(file.get()) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("sync ", draft));
  STEPWELL_ASSIGN_OR_RETURN(
      const FileDescriptor folder,
      OpenDirectoryAt(spool_root_.get(), absl::StrCat(folder_number_), WhenAbsent::kFail));
  STEPWELL_RETURN_IF_ERROR(RenameDurably(spool_root_.get(), draft, name, folder.get()));
  behind_ = behind;
  return behind;
}

void ServedWriter::NoteLife(bool seen_alive) {
  seen_alive_ = seen_alive;
  if (!seen_alive && set_back_at_open_ && !gives_up_rings_) GiveUpRings().IgnoreError();
}

absl::Status ServedWriter::GiveUpRings() {
  gives_up_rings_ = true;
  return OpenAt(directory_.get(), kGivenUpFile, O_WRONLY | O_CREAT).status();
}

// Of the frames that do not move though nobody knows that the master has them.
absl::StatusOr<SampleSpan> ServedWriter::SpanOfGivenUp(std::uint64_t behind) const {
  SampleSpan span;
  if (!gives_up_rings()) return span;
  std::uint64_t sequence = std::min(link_->status().acked_sequence, recovered_sequence_);
  while (sequence < behind) {
    STEPWELL_ASSIGN_OR_RETURN(const SpoolItem item, spool_->Read(sequence + 1));
    if (const Frame* frame = std::get_if<Frame>(&item)) {
      span.Add(frame->span);
      ++sequence;
    } else {
      sequence = std::get<GapSpan>(item).last_sequence;
    }
  }
  return span;
}

// Copying until the disk is full would take the room from others first.
absl::Status ServedWriter::CheckRoom(std::uint64_t behind) const {
  struct statvfs found {};
  if (fstatvfs(spool_root_.get(), &found) != 0) return absl::OkStatus();
  const auto free_bytes =
      static_cast<std::int64_t>(found.f_bavail) * static_cast<std::int64_t>(found.f_frsize);
  const std::int64_t needed = spool_->BytesBehind(behind) + kSuccessorBytes;
  if (free_bytes >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a successor of the spool needs ", needed,
                                                   " bytes, the file system has ", free_bytes));
}

// Rule: never give a sequence twice. What the master surely does not hold moves to a new writer;
// the rest is a gap that says so. A part of it at each call: other writers share the loop.
absl::Status ServedWriter::Succeed() {
  const absl::Status moved = MoveOn();
  if (moved.ok()) return absl::OkStatus();
  if (successor_) {
    RemoveTree(spool_root_.get(), successor_->folder, 2);
    RemoveTree(spool_root_.get(), successor_->draft, 2);
    successor_.reset();
  }
  return Annotate(moved, "retire writer");
}

absl::Status ServedWriter::MoveOn() {
  if (!successor_) STEPWELL_RETURN_IF_ERROR(BeginSuccessor());
  STEPWELL_ASSIGN_OR_RETURN(const bool all_moved, MoveFrames());
  if (!all_moved) return absl::OkStatus();
  Spool& to = *successor_->spool;
  for (std::size_t i = to.definitions().size(); i < spool_->definitions().size(); ++i) {
    STEPWELL_RETURN_IF_ERROR(to.AppendDefinition(spool_->definitions()[i]));
  }
  STEPWELL_RETURN_IF_ERROR(to.AppendCheckpoint(spool_->checkpoint()));
  STEPWELL_RETURN_IF_ERROR(to.Sync());
  // What the successor sends must not be sent once more by an agent that finds only the draft.
  STEPWELL_RETURN_IF_ERROR(
      RenameDurably(spool_root_.get(), successor_->draft, successor_->folder, spool_root_.get()));
  SwitchToSuccessor();
  return absl::OkStatus();
}

absl::Status ServedWriter::BeginSuccessor() {
  // A number that no start would find again (SpoolNumbers): the old spool would live once more.
  if (folder_number_ >= UINT32_MAX - 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("folder ", folder_number_, " of the spool has the last number there is"));
  }
  STEPWELL_ASSIGN_OR_RETURN(const std::uint64_t behind, RememberBehind());
  STEPWELL_RETURN_IF_ERROR(CheckRoom(behind));
  // Gets its number when it is whole: a crash on the way leaves the old one living.
  successor_.emplace();
  successor_->folder = absl::StrCat(folder_number_ + 1);
  successor_->draft = absl::StrCat(successor_->folder, ".draft");
  successor_->moved_sequence = behind;
  RemoveTree(spool_root_.get(), successor_->draft, 2);
  STEPWELL_ASSIGN_OR_RETURN(successor_->spool, OpenSpool(successor_->draft, Uuid::Random()));
  GapSpan gap;
  gap.cause = pb::GAP_CAUSE_SPOOL_LOST;
  gap.reason = absl::StrCat("goes on for writer ", spool_->writer().ToText(), ", known to be at ",
                            link_->status().acked_sequence, " while the spool held ", behind);
  STEPWELL_ASSIGN_OR_RETURN(gap.span, SpanOfGivenUp(behind));
  for (const std::string& definition : spool_->definitions()) {
    STEPWELL_RETURN_IF_ERROR(successor_->spool->AppendDefinition(definition));
  }
  return successor_->spool->AppendGap(std::move(gap));
}

// True: all that the living spool holds by now.
absl::StatusOr<bool> ServedWriter::MoveFrames() {
  Spool& to = *successor_->spool;
  std::size_t moved_bytes = 0;
  while (successor_->moved_sequence < spool_->last_sequence()) {
    if (moved_bytes >= kMovedBytesPerVisit) return false;
    STEPWELL_ASSIGN_OR_RETURN(SpoolItem item, spool_->Read(successor_->moved_sequence + 1));
    if (Frame* frame = std::get_if<Frame>(&item)) {
      const Spool::Sealed sealed{frame->sealed_time_us, frame->span, std::move(frame->body)};
      STEPWELL_RETURN_IF_ERROR(to.AppendFrames({&sealed, 1}, Checkpoint()));
      moved_bytes += sealed.body.size();
      ++successor_->moved_sequence;
    } else {
      STEPWELL_RETURN_IF_ERROR(to.AppendGap(std::get<GapSpan>(item)));
      successor_->moved_sequence = std::get<GapSpan>(item).last_sequence;
    }
  }
  return true;
}

void ServedWriter::SwitchToSuccessor() {
  log::Warning("writer_retired", {{"writer", spool_->writer().ToText()},
                                  {"successor", successor_->spool->writer().ToText()},
                                  {"committed", link_->status().acked_sequence},
                                  {"spooled", spool_->last_sequence()}});
  link_->Retire();
  retired_.push_back({link_, absl::StrCat(folder_number_)});
  ++folder_number_;
  behind_.reset();
  recovered_sequence_ = 0;
  spool_ = std::move(successor_->spool);
  sync_pace_ = SyncPace(context_.frame_interval, spool_->last_sequence());
  successor_.reset();
  link_ = Link(spool_);
  sealer_->SwitchSpool(spool_);
  defined_count_ = 0;
  DefineNew();
  if (close_requested_) link_->RequestClose(died_);
  context_.sender.Add(link_);
}

void ServedWriter::DropRetired() {
  std::erase_if(retired_, [&](const Retired& retired) {
    if (retired.link->status().state != SendWindow::State::kClosed) return false;
    context_.sender.Remove(*retired.link);
    RemoveTree(spool_root_.get(), retired.folder, 2);
    return true;
  });
}

}  // namespace stepwell::agent
