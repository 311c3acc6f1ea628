// RequestAbout: for any method of the wire contract a request about one trial, for tests that ask all of them.
// Header only.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "stepwell/v1/caps.pb.h"
#include "stepwell/v1/ingest.pb.h"
#include "stepwell/v1/trace.pb.h"
#include "tests/e2e/ingest_client.h"

namespace stepwell::testing {

enum class AskedBy {
  kUsual,  // its number; a writer that opens: its name
  kNumber,
  kName  // where the request has room for one
};

struct AskedTrial {
  std::int64_t id = 0;
  std::string project;
  std::string name;
  AskedBy by = AskedBy::kUsual;
};

inline std::string PathOf(const google::protobuf::MethodDescriptor& method) {
  return absl::StrCat(method.service()->full_name(), "/", method.name());
}

inline void SetTrial(google::protobuf::Message& request, const AskedTrial& asked) {
  const auto& type = *request.GetDescriptor();
  const auto& reflection = *request.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const auto* field = type.field(i);
    if (field->name() == "trial_id") reflection.SetInt64(&request, field, asked.id);
    if (field->message_type() != v1::TrialRef::descriptor()) continue;
    auto* trial = field->is_repeated() ? reflection.AddMessage(&request, field)
                                       : reflection.MutableMessage(&request, field);
    auto& ref = static_cast<v1::TrialRef&>(*trial);
    if (asked.by != AskedBy::kName) {
      ref.set_trial_id(asked.id);
      continue;
    }
    ref.set_project(asked.project);
    ref.set_external_id(asked.name);
  }
}

// Whatever the method; the rest is empty. A writer that opens is a new one.
inline std::unique_ptr<google::protobuf::Message> RequestAbout(
    const google::protobuf::MethodDescriptor& method, const AskedTrial& asked) {
  std::unique_ptr<google::protobuf::Message> request(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(method.input_type())
          ->New());
  const bool opens_number = asked.by == AskedBy::kNumber;
  auto open = OpenMessage({.writer = Uuid::Random(),
                           .external_id = opens_number ? std::string() : asked.name,
                           .trial_id = opens_number ? asked.id : 0});
  if (!opens_number) open.mutable_open()->set_project(asked.project);
  SetTrial(*request, asked);
  if (auto* upload = dynamic_cast<v1::UploadTraceRequest*>(request.get())) {
    SetTrial(*upload->mutable_upload(), asked);
  }
  if (auto* stream = dynamic_cast<v1::StreamChunksRequest*>(request.get())) *stream = open;
  if (auto* caps = dynamic_cast<v1::GetCapsRequest*>(request.get())) {
    SetTrial(*caps->mutable_place(), asked);
  }
  if (auto* write = dynamic_cast<v1::WriteChunksRequest*>(request.get())) {
    *write->add_messages() = open;
  }
  return request;
}

}  // namespace stepwell::testing
