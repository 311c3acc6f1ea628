// The unary call of IngestService: some messages of a stream that opens, sends and ends at once.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "server/deadline_watch.h"
#include "server/grpc_access.h"
#include "server/grpc_deadline.h"
#include "server/grpc_error.h"
#include "server/ingest_service.h"
#include "server/limits.h"
#include "server/message_need.h"

namespace stepwell {
namespace {

// For room, with its messages in hand.
constexpr absl::Duration kRoomPatience = absl::Seconds(1);

SteadyTime DeadlineOf(const grpc::ServerContext& call, absl::Duration wait_max) {
  return std::min(CallDeadline(call), SteadyTime::Now() + wait_max);
}

// A call would hold a thread while it waits: it is refused. Its samples, series and writers are counted as they come.
absl::Status MayWrite(RateLimits* rates, const RatePayer& payer, std::size_t bytes) {
  if (rates == nullptr) return absl::OkStatus();
  STEPWELL_RETURN_IF_ERROR(rates->Take(RateKind::kCalls, payer, 1));
  for (const RateKind kind : {RateKind::kIngestSamples, RateKind::kSeries, RateKind::kOpens}) {
    STEPWELL_RETURN_IF_ERROR(rates->Take(kind, payer, 0));
  }
  return rates->Take(RateKind::kIngestBytes, payer, static_cast<double>(bytes));
}

bool Defines(const pb::WriteChunksRequest& request) {
  return std::any_of(request.messages().begin(), request.messages().end(),
                     [](const auto& message) { return message.has_definitions(); });
}

// Its messages are there already, built: who finds no room soon comes again. Where some of them wait for numbers of their
// series the others do, too.
absl::StatusOr<MemoryRoom::Place> PlaceToWrite(MessageRooms& rooms,
                                               const pb::WriteChunksRequest& request,
                                               std::size_t bytes, SteadyTime deadline) {
  const bool defines = Defines(request);
  std::int64_t need = kChunkNeedFactor * static_cast<std::int64_t>(bytes);
  if (defines) {
    need =
        std::max(need, kDefinitionNeedFactor * static_cast<std::int64_t>(request.SpaceUsedLong()));
  }
  if (need <= kSmallNeedBytes) return MemoryRoom::Place();
  const SteadyTime until = std::min(deadline, SteadyTime::Now() + kRoomPatience);
  MemoryRoom& room = defines ? rooms.others : rooms.chunks;
  auto place = room.Take(need, [until] { return !until.HasPassed(); });
  if (place) return *std::move(place);
  return absl::ResourceExhaustedError("messages of others take all room; send it again");
}

}  // namespace

grpc::Status IngestService::WriteChunks(grpc::ServerContext* call,
                                        const pb::WriteChunksRequest* request,
                                        pb::WriteChunksResponse* response) {
  const auto caller = CallerOf(context_.access, *call);
  if (!caller.ok()) return GrpcError(caller.status());
  const std::string address = AddressOf(*call);
  const std::size_t bytes = request->ByteSizeLong();
  // Also of what is refused below: it was read as well.
  const absl::Status may = MayWrite(context_.rates, {address, caller->get()}, bytes);
  if (!may.ok()) return GrpcError(may);
  if (bytes > static_cast<std::size_t>(kMessageBytesMax)) {
    return GrpcError(Invalid(
        "MESSAGE_BYTES",
        absl::StrCat("messages have ", bytes, " bytes, allowed are at most ", kMessageBytesMax)));
  }
  const SteadyTime deadline = DeadlineOf(*call, options_.write_wait_max);
  const auto place = PlaceToWrite(rooms_, *request, bytes, deadline);
  if (!place.ok()) {
    return GrpcError(
        place.status(),
        {.reason = "MESSAGES_UNDER_WAY", .retry_delay = absl::Seconds(1), .violations = {}});
  }
  auto stream =
      IngestStream::Create(context_, [] {}, *caller, {.address = address, .is_slowed = false});
  if (!stream.ok()) return GrpcError(stream.status());
  pb::StreamChunksResponse answer;
  const auto take_answers = [&] {
    while ((*stream)->board().TakeNext(answer)) *response->add_messages() = std::move(answer);
  };
  // Handle waits for the database and for room in the queue.
  const DeadlineWatch watch(deadline, [&stream] {
    (*stream)->End(absl::DeadlineExceededError("not all was taken in time; send it again"));
  });
  for (const pb::StreamChunksRequest& message : request->messages()) {
    if (!(*stream)->end_status().ok()) break;
    (*stream)->Handle(message);
    // Acks wait until all is answered, so that there is one per writer.
    while ((*stream)->board().TakeMessage(answer)) *response->add_messages() = std::move(answer);
  }
  const bool settled = (*stream)->WaitSettled(deadline);
  take_answers();
  const absl::Status end = (*stream)->end_status();
  (*stream)->Finish();
  if (!end.ok()) return GrpcError(end);
  if (!settled) {
    return GrpcError(
        absl::UnavailableError("not all was committed in time; send it again"),
        {.reason = "NOT_COMMITTED", .retry_delay = absl::Seconds(1), .violations = {}});
  }
  return grpc::Status::OK;
}

}  // namespace stepwell
