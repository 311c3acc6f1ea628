// Which services a master has registered with gRPC, by its own reflection: those that tests of doors ask each method of, and no other.
#include <gmock/gmock.h>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>

#include <set>

#include "tests/e2e/spine.h"
#include "tests/support/every_method.h"

namespace stepwell::testing {
namespace {

using google::protobuf::UnknownField;

// The contents of that field, which has a length, wherever it stands in a message of a type that is not ours.
std::vector<std::string> FieldOf(const std::string& bytes, int number) {
  google::protobuf::Empty message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  std::vector<std::string> found;
  const auto& fields = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() == number && field.type() == UnknownField::TYPE_LENGTH_DELIMITED) {
      found.push_back(field.length_delimited());
    }
  }
  return found;
}

class ServedServicesTest : public SpineTest {
 protected:
  // What ServerReflectionInfo answers to an empty list_services.
  std::string Listed() {
    grpc::GenericStub stub(client_->channel());
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
    grpc::CompletionQueue queue;
    const auto next = [&] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    const auto call = stub.PrepareCall(
        &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
    call->StartCall(nullptr);
    EXPECT_TRUE(next());
    const grpc::Slice asked("\x3a\x00", 2);
    call->WriteLast(grpc::ByteBuffer(&asked, 1), grpc::WriteOptions(), nullptr);
    EXPECT_TRUE(next());
    grpc::ByteBuffer answer;
    call->Read(&answer, nullptr);
    EXPECT_TRUE(next());
    grpc::Status ended;
    call->Finish(&ended, nullptr);
    EXPECT_TRUE(next());
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(answer.Dump(&slices).ok());
    std::string bytes;
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return bytes;
  }
};

TEST_F(ServedServicesTest, AreThoseOfTheContractAndGrpcsOwn) {
  // Where a token is asked for there is no reflection.
  StartMaster({});
  std::set<std::string> served;
  for (const std::string& list : FieldOf(Listed(), 6)) {
    for (const std::string& service : FieldOf(list, 1)) {
      for (const std::string& name : FieldOf(service, 1)) served.insert(name);
    }
  }
  std::set<std::string> known = {"grpc.health.v1.Health",
                                 "grpc.reflection.v1alpha.ServerReflection"};
  for (const auto* method : EveryMethod()) known.insert(method->service()->full_name());
  EXPECT_EQ(served, known);
}

}  // namespace
}  // namespace stepwell::testing
