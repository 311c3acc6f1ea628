// Tells ThreadSanitizer of abseil's locks. Linked into every executable of the preset tsan only.
//
// Debian's abseil is not instrumented, so that all that absl::Mutex guards would be reported. What
// stands here takes the place of its locks (also for the libraries that use them, such as gRPC), calls
// the real one of the shared library and says what it ordered: an acquire once the lock is held, a
// release before it is given away.
//
// Waits evaluate each other's conditions: whoever unlocks looks at the conditions of those who wait,
// under the lock. So the evaluation, too, acquires and releases the mutex in hand.
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "cmake/tsan/real_function.h"

namespace {

// The mutex whose function this thread is in: Condition::Eval is not told.
thread_local void* mutex_in_hand = nullptr;

// Between the two ends of a call on `mutex`.
class InHand {
 public:
  explicit InHand(const void* mutex) : before_(mutex_in_hand) {
    mutex_in_hand = const_cast<void*>(mutex);
  }
  ~InHand() { mutex_in_hand = before_; }
  InHand(const InHand&) = delete;
  InHand& operator=(const InHand&) = delete;

 private:
  void* const before_;
};

void Acquire(const void* address) { __tsan_acquire(const_cast<void*>(address)); }
void Release(const void* address) { __tsan_release(const_cast<void*>(address)); }

// Readers give way to a later writer only, so what they release stands beside the writers' release:
// a write under a reader's lock stays a race.
const void* ReadersOf(const void* mutex) { return static_cast<const char*>(mutex) + 1; }

void AcquireForWriter(const void* mutex) {
  Acquire(mutex);
  Acquire(ReadersOf(mutex));
}

}  // namespace

// The real function behind a member of abseil, found once: REAL(result, "mangled name", types...).
#define REAL(result, name, ...)                                       \
  static const auto real = reinterpret_cast<result (*)(__VA_ARGS__)>( \
      stepwell::tsan::RealFunction("_ZN4absl7debian3" name))
#define REAL_CONST(result, name, ...)                                 \
  static const auto real = reinterpret_cast<result (*)(__VA_ARGS__)>( \
      stepwell::tsan::RealFunction("_ZNK4absl7debian3" name))

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  REAL(void, "5Mutex4LockEv", Mutex*);
  const InHand in_hand(this);
  real(this);
  AcquireForWriter(this);
}

bool Mutex::TryLock() {
  REAL(bool, "5Mutex7TryLockEv", Mutex*);
  const InHand in_hand(this);
  const bool locked = real(this);
  if (locked) AcquireForWriter(this);
  return locked;
}

void Mutex::Unlock() {
  REAL(void, "5Mutex6UnlockEv", Mutex*);
  const InHand in_hand(this);
  Release(this);
  real(this);
}

void Mutex::ReaderLock() {
  REAL(void, "5Mutex10ReaderLockEv", Mutex*);
  const InHand in_hand(this);
  real(this);
  Acquire(this);
}

bool Mutex::ReaderTryLock() {
  REAL(bool, "5Mutex13ReaderTryLockEv", Mutex*);
  const InHand in_hand(this);
  const bool locked = real(this);
  if (locked) Acquire(this);
  return locked;
}

void Mutex::ReaderUnlock() {
  REAL(void, "5Mutex12ReaderUnlockEv", Mutex*);
  const InHand in_hand(this);
  Release(ReadersOf(this));
  real(this);
}

// A wait gives the lock away and has it again at its end. It may be a reader's or a writer's; both
// ends count as a writer's, since only writers wait in this program.
void Mutex::Await(const Condition& condition) {
  REAL(void, "5Mutex5AwaitERKNS0_9ConditionE", Mutex*, const Condition&);
  const InHand in_hand(this);
  Release(this);
  real(this, condition);
  AcquireForWriter(this);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  REAL(bool, "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE", Mutex*, const Condition&,
       Duration);
  const InHand in_hand(this);
  Release(this);
  const bool holds = real(this, condition, timeout);
  AcquireForWriter(this);
  return holds;
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  REAL(bool, "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE", Mutex*, const Condition&,
       Time);
  const InHand in_hand(this);
  Release(this);
  const bool holds = real(this, condition, deadline);
  AcquireForWriter(this);
  return holds;
}

// Whoever unlocks evaluates the condition that is handed in here, so it has to see it: a release
// before the lock is held.
void Mutex::LockWhen(const Condition& condition) {
  REAL(void, "5Mutex8LockWhenERKNS0_9ConditionE", Mutex*, const Condition&);
  const InHand in_hand(this);
  Release(this);
  real(this, condition);
  AcquireForWriter(this);
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  REAL(bool, "5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE", Mutex*,
       const Condition&, Duration);
  const InHand in_hand(this);
  Release(this);
  const bool holds = real(this, condition, timeout);
  AcquireForWriter(this);
  return holds;
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  REAL(bool, "5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE", Mutex*, const Condition&,
       Time);
  const InHand in_hand(this);
  Release(this);
  const bool holds = real(this, condition, deadline);
  AcquireForWriter(this);
  return holds;
}

void Mutex::ReaderLockWhen(const Condition& condition) {
  REAL(void, "5Mutex14ReaderLockWhenERKNS0_9ConditionE", Mutex*, const Condition&);
  const InHand in_hand(this);
  Release(ReadersOf(this));
  real(this, condition);
  Acquire(this);
}

bool Condition::Eval() const {
  REAL_CONST(bool, "9Condition4EvalEv", const Condition*);
  if (mutex_in_hand == nullptr) return real(this);
  AcquireForWriter(mutex_in_hand);
  const bool holds = real(this);
  Release(mutex_in_hand);
  return holds;
}

void CondVar::Wait(Mutex* mutex) {
  REAL(void, "7CondVar4WaitEPNS0_5MutexE", CondVar*, Mutex*);
  const InHand in_hand(mutex);
  Release(mutex);
  real(this, mutex);
  AcquireForWriter(mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  REAL(bool, "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE", CondVar*, Mutex*, Duration);
  const InHand in_hand(mutex);
  Release(mutex);
  const bool timed_out = real(this, mutex, timeout);
  AcquireForWriter(mutex);
  return timed_out;
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  REAL(bool, "7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE", CondVar*, Mutex*, Time);
  const InHand in_hand(mutex);
  Release(mutex);
  const bool timed_out = real(this, mutex, deadline);
  AcquireForWriter(mutex);
  return timed_out;
}

// A notification is seen by a glance at its flag, without the lock.
void Notification::Notify() {
  REAL(void, "12Notification6NotifyEv", Notification*);
  Release(this);
  Release(static_cast<const void*>(&notified_yet_));
  real(this);
}

void Notification::WaitForNotification() const {
  REAL_CONST(void, "12Notification19WaitForNotificationEv", const Notification*);
  real(this);
  Acquire(this);
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  REAL_CONST(bool, "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE",
             const Notification*, Duration);
  const bool notified = real(this, timeout);
  if (notified) Acquire(this);
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  REAL_CONST(bool, "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE",
             const Notification*, Time);
  const bool notified = real(this, deadline);
  if (notified) Acquire(this);
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
