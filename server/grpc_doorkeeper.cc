#include "server/grpc_doorkeeper.h"

#include <google/protobuf/empty.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include <optional>
#include <utility>

#include "server/grpc_access.h"
#include "server/grpc_error.h"

namespace stepwell {
namespace {

// grpc.health.v1.HealthCheckResponse.ServingStatus; no package of Debian's carries its generated code.
constexpr int kServing = 1;
constexpr int kNotServing = 2;
constexpr int kServiceUnknown = 3;
// What a name of a service may have; a longer one is none of ours.
constexpr std::size_t kRequestBytesMax = 1024;

grpc::ByteBuffer HealthAnswer(int status) {
  // Field 1, a varint.
  const char bytes[] = {0x08, static_cast<char>(status)};
  const grpc::Slice slice(bytes, sizeof bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// Field 1 of HealthCheckRequest, a string. Nothing where it is no such message.
std::optional<std::string> NameIn(const grpc::ByteBuffer& request_untrusted) {
  if (request_untrusted.Length() > kRequestBytesMax) return std::nullopt;
  grpc::Slice whole;
  if (!request_untrusted.DumpToSingleSlice(&whole).ok()) return std::nullopt;
  google::protobuf::Empty message;
  if (!message.ParseFromArray(whole.begin(), static_cast<int>(whole.size()))) return std::nullopt;
  std::string name;
  const auto& fields = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    if (field.number() == 1 &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      name = field.length_delimited();
    }
  }
  return name;
}

grpc::Status NoRequest() {
  return {grpc::StatusCode::INVALID_ARGUMENT,
          "the message is no grpc.health.v1.HealthCheckRequest"};
}

// Reads nothing.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const grpc::Status& why) { Finish(why); }
  void OnDone() override { delete this; }
};

}  // namespace

class GrpcDoorkeeper::Check final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Check(GrpcDoorkeeper& keeper) : keeper_(keeper) { StartRead(&request_); }
  void OnReadDone(bool ok) override {
    const std::optional<std::string> name = ok ? NameIn(request_) : std::nullopt;
    if (!name) return Finish(NoRequest());
    if (!keeper_.IsKnown(*name)) {
      return Finish(grpc::Status(grpc::StatusCode::NOT_FOUND, "service name unknown"));
    }
    {
      const absl::MutexLock lock(&keeper_.mu_);
      answer_ = HealthAnswer(keeper_.StatusOf(*name));
    }
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  GrpcDoorkeeper& keeper_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
};

// Tells what is now, and each change, of which one that comes while another is on its way is told last.
class GrpcDoorkeeper::Watch final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Watch(GrpcDoorkeeper& keeper) : keeper_(keeper) { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    std::optional<std::string> name = ok ? NameIn(request_) : std::nullopt;
    const absl::MutexLock lock(&keeper_.mu_);
    if (!name) return FinishOnce(NoRequest());
    name_ = *std::move(name);
    keeper_.watches_.insert(this);
    TellLocked();
  }
  void OnWriteDone(bool ok) override {
    const absl::MutexLock lock(&keeper_.mu_);
    is_writing_ = false;
    if (!ok) return FinishOnce(grpc::Status::CANCELLED);
    TellLocked();
  }
  void OnCancel() override {
    const absl::MutexLock lock(&keeper_.mu_);
    FinishOnce(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    {
      const absl::MutexLock lock(&keeper_.mu_);
      keeper_.watches_.erase(this);
    }
    delete this;
  }
  void TellLocked() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const int status = keeper_.StatusOf(name_);
    if (is_writing_ || is_over_ || status == told_) return;
    told_ = status;
    is_writing_ = true;
    answer_ = HealthAnswer(status);
    StartWrite(&answer_);
  }

 private:
  void FinishOnce(const grpc::Status& status) {
    if (!std::exchange(is_over_, true)) Finish(status);
  }

  GrpcDoorkeeper& keeper_;
  // All of it under the keeper's lock.
  std::string name_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  int told_ = 0;
  bool is_writing_ = false;
  bool is_over_ = false;
};

int GrpcDoorkeeper::StatusOf(const std::string& name) const {
  if (!IsKnown(name)) return kServiceUnknown;
  return is_serving_ ? kServing : kNotServing;
}

void GrpcDoorkeeper::SetServing(bool serving) {
  const absl::MutexLock lock(&mu_);
  is_serving_ = serving;
  for (Watch* watch : watches_) watch->TellLocked();
}

grpc::ServerGenericBidiReactor* GrpcDoorkeeper::CreateReactor(
    grpc::GenericCallbackServerContext* call) {
  const GrpcEntry entry = EnterOther(access_, *call);
  if (!entry.ok()) return new Refusal(entry.status);
  if (call->method() == "/grpc.health.v1.Health/Check") return new Check(*this);
  if (call->method() == "/grpc.health.v1.Health/Watch") return new Watch(*this);
  return new Refusal(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "there is no such method"));
}

}  // namespace stepwell
