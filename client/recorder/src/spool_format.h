// What the recorder writes and the agent reads: files of one writer, format version 1.
// It is the whole of what the two share; the standard library only. Little-endian, 64-bit Linux.
//
//   <root>/f1/<writer uuid>/
//     lock         empty. The process holds an fcntl write lock (F_SETLK) on byte 0 while it lives,
//                  and its forked worker k (0 ... 1023) one on byte 1 + k. Record locks are not
//                  inherited by fork: each child opens the file anew and locks its own byte.
//     header       one page, WriterHeader. Mapped by both sides.
//     names        NameRecords, append-only; WriterHeader::names_bytes of them are valid.
//     ring-0 ...   one page RingHeader, then RingHeader::capacity events of 32 bytes.
//     writer.json  who the writer is (mode 0600). It is written last, by rename: a directory
//     without
//                  it is not a writer yet (or never will be: its lock is free and it is old).
//     w<k>-<n>/    a forked child that records: worker k, the lowest whose byte was free; n is one
//                  more than the highest that is there, else 0. It holds header, names and rings of its own,
//                  as above. The header is made as header.draft and renamed last: with it the
//                  worker exists. Where a higher n of the same k exists, or byte 1 + k is free, the
//                  worker is dead: drained completely, then removed. Its samples belong to this
//                  writer, each of their series with the label worker = k.
// The writer is dead when byte 0 and all worker bytes are free.
//
// Rings may lie in shared memory instead: writer.json's "rings" names a directory (0700, the same
// owner, its last component the writer's uuid; "" = none) which holds the file `spool` (the path of
// the writer's directory, and in a second line DEVICE:INODE of the format directory it lies in, for
// another container's may have that path), rings, and a directory w<k>-<n> for the rings of a worker. Ring N lies
// there if its file is there, else in the writer's (the worker's) own directory: the recorder chooses
// for each ring by the room there is.
// <root> and everything below is 0700 and owned by the user; a wider <root> is refused.
//
// writer.json, all fields always present:
//   {"format": 1, "writer": UUID, "server": HOST:PORT, "" (the agent's own) or "offline" (the agent
//    drains the rings into the spool and sends nothing), "project": NAME, "trial": NAME or "id:7",
//    "attempt_key": TEXT, "rank": 0, "world_size": 1, "token": TEXT or "", "renews_token": false, "boot_id": UUID,
//    "labels": {NAME: VALUE}, "placement": {"pod": NAME, "slurm_job": NUMBER}, "rings": PATH or "",
//    "path": PATH or "", "pid": 123, "recorder_version": "0.1.0",
//    "opened_time_us": µs since 1970 UTC, "opened_monotonic_ns": CLOCK_MONOTONIC,
//    "sampling": {"on": true, "interval_us": 0, "groups": [], "without": [], "with": []}}
// path: of this directory, as its process sees it. A copy elsewhere is not served while that process lives.
// renews_token: it was fetched for this trial alone, and fetches the next one. placement: where its process runs, as others name it; what does not apply is absent.
// sampling: of the machine and of this process, for this trial; 0 and [] are the agent's default.
// The words are the trial's own: a reader passes over those that it does not know.
//
// Is the process alive? Open `lock` and ask F_GETLK for a write lock on byte 0: F_UNLCK = it is
// dead. Never from inside the process that records: F_GETLK does not see one's own lock, and
// closing any descriptor of the file drops it. Order of a reader's life check: lock first, then the
// rings, so that a writer found dead is drained completely.
//
// How to read a ring. Load `head` (acquire), then WriterHeader::names_bytes (acquire): every name
// that an event up to `head` uses is then readable. Events [tail, head) lie at slot position %
// capacity; copy them with pread and check each copy: stamp == uint32(position + 1), known kind,
// known name. A mismatch below `head` is corruption: skip that event, count it. Store `tail`
// (release) only after the frame that holds the events is written; never more than `head`. A step's
// events stay in the ring until its kStepEnd is sealed; the recorder drops and counts when the ring
// is full. A reader that would rather not let a very long step fill the ring may keep its part sums
// itself and advance. When `state` is kRingSucceeded and tail == head, the thread goes on in ring
// `next_ring`, with the same step still open; when it is kRingEnded, the thread has ended. A
// drained ring in one of these two states may be unlinked. Rings are numbered 0 ..
// WriterHeader::ring_count - 1; a number without a file has been unlinked. Load `state` before
// `head`: nothing is added after it left kRingLive.
//
// How to make samples of events, per thread (a chain of rings), in ring order:
//   kScope, no kInStep    a sample of series (timing, path): time = its start, value = duration in
//                         seconds, no batch. (Other threads, before the first step, after a scope
//                         stayed open across a step's boundary: the recorder has already decided.)
//   kScope, kInStep       keep until the step is decided: add to the step's total and count of
//   path. kRecord, no kInStep   a sample at `time`, value bits = double, batch as given (-1 =
//   none). kRecord, kInStep      a sample at its own `time`; its batch is the step's: keep until
//   decided. kRecordAt             a sample at `time` in µs since 1970 UTC, batch as given.
//   kInstant              no sample: an event of traces at `time`; with kInStep its batch is the step's. Of a reader
//                         that does not know it, it is an event of an unknown kind: counted as lost, nothing else.
//   kStepBegin            opens a step. What was kept before it lies outside any step.
//   kStepEnd              decides the step [time, time + value): ONE tick at `time` with `batch`:
//                         series (timing, "step") = value; per path its total in seconds, and
//                         "<path>.count" (gauge, unit 1) where it occurred more than once. Kept
//                         records get `batch`. Kept events that started before `time` (an earlier
//                         kStepEnd was dropped) lie outside. The next step is open from its end on.
//   end of the thread, closed writer, dead writer: what is still kept lies outside any step.
// Outside any step = one sample per occurrence at its own start (or time), without batch.
// A path is names joined by '/', counted from the step's boundary: NameRecord::parent says it. The
// paths "step" and "*.count" collide with nothing: the recorder refuses those names for scopes.
//
// Times are CLOCK_MONOTONIC nanoseconds except in kRecordAt; the reader converts with its anchors.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace stepwell::spool {

inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr char kFormatDirectory[] = "f1";
// <root>/f1/agent.lock: an agent that serves the root holds an fcntl write lock on byte 0, one that
// is about to leave on byte 1, too.
inline constexpr char kAgentLockFile[] = "agent.lock";
// Beside the writers: a note for each trace that waits to be uploaded, NAME.json, left by a rename.
inline constexpr char kTraceFolder[] = "traces";
inline constexpr char kTraceNoteEnding[] = ".json";
inline constexpr char kLockFile[] = "lock";
inline constexpr char kHeaderFile[] = "header";
inline constexpr char kHeaderDraftFile[] = "header.draft";  // of a worker that is being made
inline constexpr char kNamesFile[] = "names";
inline constexpr char kWriterFile[] = "writer.json";
inline constexpr char kRingFilePrefix[] = "ring-";     // then the number in decimal
inline constexpr char kRingOwnerFile[] = "spool";      // beside rings in shared memory
inline constexpr char kWorkerDirectoryPrefix[] = "w";  // then k-n in decimal
inline constexpr char kServerOffline[] = "offline";    // what "server" says where nothing is sent

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kNamesBytesMax = 512 * 1024;  // the size of `names`, allocated at once
inline constexpr std::size_t kRingBytesFirst =
    256 * 1024;  // of events; the header page comes on top
inline constexpr std::size_t kRingBytesMax = 4 * 1024 * 1024;
inline constexpr std::size_t kProcessRingBytesMax = 64 * 1024 * 1024;

inline constexpr std::int32_t kNoBatch = -1;
inline constexpr std::int32_t kBatchOfStep = -2;  // with kInStep: the batch of the step it lies in
inline constexpr std::uint32_t kNoName = 0;       // ids count from 1 in the order of `names`
inline constexpr std::uint32_t kNoRing = 0xffffffff;
inline constexpr std::uint32_t kNoWorker = 0xffffffff;
inline constexpr std::uint32_t kWorkerCountMax = 1024;  // living at once

// Bytes of `lock`.
inline constexpr std::int64_t kProcessLockByte = 0;
inline constexpr std::int64_t WorkerLockByte(std::uint32_t worker) {
  return 1 + std::int64_t{worker};
}

inline constexpr char kHeaderMagic[8] = {'S', 'W', 'E', 'L', 'L', 'H', 'D', '1'};
inline constexpr char kRingMagic[8] = {'S', 'W', 'E', 'L', 'L', 'R', 'G', '1'};

// --- events
// ---------------------------------------------------------------------------------------

enum class EventKind : std::uint8_t {
  kScope = 1,      // name = scope, time = start, value = duration ns, depth = scopes around it
  kRecord = 2,     // name = series, value = bits of a double
  kRecordAt = 3,   // name = series, time in µs since 1970 UTC, value = bits of a double
  kStepBegin = 4,  // time = start of the step
  kStepEnd = 5,    // time = start, value = duration ns, batch >= 0
  kInstant = 6,    // name = scope, at the top of the path; time = when
};

inline constexpr std::uint8_t kInStep = 1;  // belongs to the step that is open on its thread
inline constexpr std::uint8_t kLossy = 2;   // kStepEnd: some events of this step were dropped

struct Event {
  std::uint64_t time;
  std::uint64_t value;
  std::uint32_t name;
  std::int32_t batch;
  EventKind kind;
  std::uint8_t flags;
  std::uint16_t depth;
  std::uint32_t stamp;  // low 32 bits of (position + 1), written with the rest: the reader's check
};
static_assert(sizeof(Event) == 32 && alignof(Event) == 8);
static_assert(kPageBytes % sizeof(Event) == 0);

// --- ring-<n>
// -------------------------------------------------------------------------------------

enum RingState : std::uint32_t {
  kRingLive = 1,
  kRingSucceeded = 2,  // full; the thread goes on in `next_ring`
  kRingEnded = 3,      // the thread has ended
};

struct RingHeader {
  // Constant once the ring is counted in WriterHeader::ring_count.
  char magic[8];
  std::uint32_t format_version;
  std::uint32_t capacity;  // events, a power of two
  std::uint32_t ring;      // its own number
  std::uint32_t previous;  // the ring this one succeeds, or kNoRing
  std::uint32_t thread;    // index of the thread in its writer, from 0; the same along a chain
  std::uint32_t worker;    // index of the forked worker it belongs to, or kNoWorker
  std::uint64_t created_ns;
  // As the kernel knew it, NUL-terminated. Empty while the ring waits for a thread: it is made ahead.
  char thread_name[16];
  // The kernel's number of the thread, in its process' PID namespace; 0 = not told. As above.
  std::uint32_t thread_id;

  // Written by the recording thread.
  alignas(64) std::atomic<std::uint64_t> head;  // events ever pushed
  std::atomic<std::uint64_t> dropped;           // events that found the ring full
  std::atomic<std::uint64_t> dropped_first_ns;  // when the first and the last of them happened,
  std::atomic<std::uint64_t> dropped_last_ns;   // 0 = none yet
  std::atomic<std::uint32_t> state;             // RingState
  std::atomic<std::uint32_t> next_ring;         // valid with kRingSucceeded

  // Written by the agent.
  alignas(64) std::atomic<std::uint64_t> tail;  // events consumed and safe in a frame
};
static_assert(offsetof(RingHeader, head) == 64 && offsetof(RingHeader, tail) == 128);
static_assert(sizeof(RingHeader) == 192 && sizeof(RingHeader) <= kPageBytes);

inline constexpr std::size_t RingFileBytes(std::uint32_t capacity) {
  return kPageBytes + std::size_t{capacity} * sizeof(Event);
}
inline constexpr std::size_t EventOffset(std::uint32_t capacity, std::uint64_t position) {
  return kPageBytes + (position & (capacity - 1)) * sizeof(Event);
}

// --- header
// ---------------------------------------------------------------------------------------

enum WriterState : std::uint32_t {
  kWriterOpen = 1,
  kWriterClosed = 2,  // close() was called: the rings' heads are final, an ack is awaited
};

enum AgentState : std::uint32_t {
  kAgentNone = 0,
  kAgentServing = 1,  // an agent drains this writer
  kAgentAcked = 2,    // the writer is closed and the master holds all of it, Close included
  kAgentRefused = 3,  // nothing will ever be stored; waiting is pointless
  kAgentSpooled = 4,  // an offline writer is closed and wholly in the spool: no ack will come
};

// How far the process is with a native profiler over the steps of `capture_request`.
enum CaptureOutcome : std::uint32_t {
  kCaptureNone = 0,
  kCaptureRunning = 1,     // it records
  kCaptureHandedOver = 2,  // word of its file lies among the traces; the file is called
                           // capture-ep0-ba<batches that are over>-rank<rank>.pt.trace.json
  kCaptureNoProfiler = 3,  // the program has not imported what has one
  kCaptureBusy = 4,        // another one runs, or began within the steps
  kCaptureLate = 5,        // the first of the steps had begun
  kCaptureFailed = 6,      // it could not be started or ended
  kCaptureNotWritten = 7,  // it could not write what it saw, or no agent would take that
  kCaptureNoSteps = 8,     // the loop, or the run, ended before one of the steps was over
};

inline constexpr std::uint32_t kControlOff = 1;  // stop recording at the next StepEnd; cleared = on

struct WriterHeader {
  // Constant once writer.json exists.
  char magic[8];
  std::uint32_t format_version;
  std::uint32_t pid;
  std::uint64_t opened_ns;

  // Written by the recorder.
  alignas(64) std::atomic<std::uint32_t> state;  // WriterState, release-stored
  std::atomic<std::uint32_t> ring_count;         // rings ever made, release-stored
  std::atomic<std::uint64_t> names_bytes;        // valid bytes of `names`, release-stored
  // (StepEnds so far, modulo 2^32) << 32 | batch of the last one: one word, so that a machine's
  // tick is stamped with a pair that belongs together. 0 = no StepEnd yet.
  std::atomic<std::uint64_t> last_step;
  std::atomic<std::uint64_t> last_step_ns;     // when it ended
  std::atomic<std::uint64_t> dropped_no_ring;  // events of threads that could get no ring
  std::atomic<std::uint64_t> dropped_no_name;  // events of names that found no room in `names`
  std::atomic<std::uint64_t> closed_ns;        // valid with kWriterClosed
  // Events that the process holds itself because their thread's ring is not ready. Of a writer that
  // died they are lost; a closed one has none.
  std::atomic<std::uint64_t> early_count;

  // Written by the agent. Zero is the state before any agent came.
  alignas(64) std::atomic<std::uint32_t> control;  // kControlOff; loaded by StepEnd
  // Number of the capture for which a native profiler is wanted, which no other one has; 0 = none.
  // Stored after `capture_steps`; a process that has one looks at each StepEnd.
  std::atomic<std::uint32_t> capture_request;
  std::atomic<std::uint32_t> agent_state;  // AgentState, release-stored
  // 1: the agent takes nothing more of this writer. It says so before it asks the lock's bytes a last
  // time; a child that has taken its byte and then sees it opens a writer of its own.
  std::atomic<std::uint32_t> ended;
  std::atomic<std::uint64_t> capture_steps;  // first batch << 32 | how many

  // Written by the process, zero where its recorder is of before native captures.
  alignas(64) std::atomic<std::uint32_t> capture_offered;  // 1: it looks, and may have a profiler
  std::atomic<std::uint64_t> capture_answer;               // PackCaptureAnswer; 0 = none yet
};
static_assert(offsetof(WriterHeader, state) == 64 && offsetof(WriterHeader, control) == 128 &&
              offsetof(WriterHeader, early_count) == 120);
static_assert(offsetof(WriterHeader, capture_steps) == 144 &&
              offsetof(WriterHeader, capture_offered) == 192);
static_assert(sizeof(WriterHeader) == 256 && sizeof(WriterHeader) <= kPageBytes);

// One word, so that what belongs together is read together. step_count: of the steps, those over.
inline constexpr std::uint64_t PackCaptureAnswer(std::uint32_t request, std::uint32_t outcome,
                                                 std::uint32_t step_count) {
  return std::uint64_t{request} << 32 | (outcome & 0xff) << 24 | (step_count & 0xffffff);
}

inline constexpr std::uint64_t PackLastStep(std::uint32_t step_count, std::int32_t batch) {
  return std::uint64_t{step_count} << 32 | static_cast<std::uint32_t>(batch);
}
inline constexpr std::int32_t BatchOfLastStep(std::uint64_t last_step) {
  return last_step == 0 ? kNoBatch : static_cast<std::int32_t>(last_step & 0xffffffff);
}

// --- names
// ----------------------------------------------------------------------------------------

enum class NameKind : std::uint8_t { kScope = 1, kSeries = 2 };
enum class SeriesKind : std::uint8_t { kNone = 0, kGauge = 1, kCounter = 2, kDuration = 3 };

// Followed by text_count texts, each uint16 length + UTF-8 bytes, then zeros up to a multiple of 8.
//   kScope:  name (one segment of the path; `parent` has those before it, and their labels); behind it,
//            not counted, labels as of a series: an agent that does not know them passes over them
//   kSeries: metric group, name, unit, then label name and label value in turn, sorted by label
//   name
struct NameRecord {
  std::uint32_t record_bytes;  // of the whole record, a multiple of 8
  std::uint32_t id;            // 1 for the first record, then one more each
  std::uint32_t parent;  // kScope: id of the enclosing scope, kNoName at the top; else kNoName
  NameKind kind;
  SeriesKind series_kind;
  std::uint16_t text_count;
};
static_assert(sizeof(NameRecord) == 16);

inline constexpr std::size_t kTextBytesMax = 1024;  // of one text
inline constexpr std::size_t kLabelCountMax = 32;
inline constexpr std::size_t kWriterLabelCountMax = 30;  // rank and agent come on top
inline constexpr int kScopeDepthMax = 32;                // deeper scopes are dropped and counted

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace stepwell::spool
