// Tells ThreadSanitizer what gRPC orders: what a thread wrote before it started an operation is seen by
// whoever is handed that operation's end. Linked into every executable of the preset tsan only.
//
// Debian's gRPC is not instrumented, but half of grpc++ is headers, compiled here: without this, each
// buffer that travels through a completion queue would be reported. The tag is what both ends know.
//
// Within one process a message is not copied: whoever reads it reads what the sender has written. Its bytes are
// what both know.
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>
#include <sanitizer/tsan_interface.h>

#include "cmake/tsan/real_function.h"

using stepwell::tsan::RealFunction;

namespace {

grpc_event Acquired(grpc_event event) {
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

// What the slices of a message hold outside of themselves.
template <typename Tell>
void ForEachPiece(const grpc_byte_buffer* message, const Tell& tell) {
  if (message == nullptr || message->type != GRPC_BB_RAW) return;
  const grpc_slice_buffer& pieces = message->data.raw.slice_buffer;
  for (size_t i = 0; i < pieces.count; ++i) {
    if (pieces.slices[i].refcount != nullptr) tell(pieces.slices[i].data.refcounted.bytes);
  }
}

}  // namespace

extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t nops, void* tag,
                                      void* reserved) {
  static const auto real =
      reinterpret_cast<decltype(&grpc_call_start_batch)>(RealFunction("grpc_call_start_batch"));
  for (size_t i = 0; i < nops; ++i) {
    if (ops[i].op != GRPC_OP_SEND_MESSAGE) continue;
    ForEachPiece(ops[i].data.send_message.send_message,
                 [](uint8_t* bytes) { __tsan_release(bytes); });
  }
  __tsan_release(tag);
  return real(call, ops, nops, tag, reserved);
}

grpc_call_error grpc_server_request_call(grpc_server* server, grpc_call** call,
                                         grpc_call_details* details, grpc_metadata_array* metadata,
                                         grpc_completion_queue* bound,
                                         grpc_completion_queue* notified, void* tag) {
  static const auto real = reinterpret_cast<decltype(&grpc_server_request_call)>(
      RealFunction("grpc_server_request_call"));
  __tsan_release(tag);
  return real(server, call, details, metadata, bound, notified, tag);
}

grpc_call_error grpc_server_request_registered_call(grpc_server* server, void* method,
                                                    grpc_call** call, gpr_timespec* deadline,
                                                    grpc_metadata_array* metadata,
                                                    grpc_byte_buffer** payload,
                                                    grpc_completion_queue* bound,
                                                    grpc_completion_queue* notified, void* tag) {
  static const auto real = reinterpret_cast<decltype(&grpc_server_request_registered_call)>(
      RealFunction("grpc_server_request_registered_call"));
  __tsan_release(tag);
  return real(server, method, call, deadline, metadata, payload, bound, notified, tag);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static const auto real = reinterpret_cast<decltype(&grpc_completion_queue_next)>(
      RealFunction("grpc_completion_queue_next"));
  return Acquired(real(queue, deadline, reserved));
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static const auto real = reinterpret_cast<decltype(&grpc_completion_queue_pluck)>(
      RealFunction("grpc_completion_queue_pluck"));
  return Acquired(real(queue, tag, deadline, reserved));
}

int grpc_byte_buffer_reader_init(grpc_byte_buffer_reader* reader, grpc_byte_buffer* message) {
  static const auto real = reinterpret_cast<decltype(&grpc_byte_buffer_reader_init)>(
      RealFunction("grpc_byte_buffer_reader_init"));
  ForEachPiece(message, [](uint8_t* bytes) { __tsan_acquire(bytes); });
  return real(reader, message);
}

}  // extern "C"

namespace grpc {

// The core is told another tag of an alarm than its owner, who sees his own.
void Alarm::SetInternal(CompletionQueue* queue, gpr_timespec deadline, void* tag) {
  static const auto real =
      reinterpret_cast<void (*)(Alarm*, CompletionQueue*, gpr_timespec, void*)>(
          RealFunction("_ZN4grpc5Alarm11SetInternalEPNS_15CompletionQueueE12gpr_timespecPv"));
  __tsan_release(tag);
  real(this, queue, deadline, tag);
}

CompletionQueue::NextStatus CompletionQueue::AsyncNextInternal(void** tag, bool* ok,
                                                               gpr_timespec deadline) {
  static const auto real =
      reinterpret_cast<NextStatus (*)(CompletionQueue*, void**, bool*, gpr_timespec)>(
          RealFunction("_ZN4grpc15CompletionQueue17AsyncNextInternalEPPvPb12gpr_timespec"));
  const NextStatus status = real(this, tag, ok, deadline);
  if (status == GOT_EVENT) __tsan_acquire(*tag);
  return status;
}

}  // namespace grpc
