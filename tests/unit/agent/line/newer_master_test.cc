// A master of a newer contract: what this agent does not know of it is passed over.
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::UnknownFieldSet;

constexpr int kSteps = 100;

// The first number that its contract has not given away.
int NextNumberOf(const Message& message) {
  int highest = 0;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    highest = std::max(highest, message.GetDescriptor()->field(i)->number());
  }
  return highest + 1;
}

UnknownFieldSet& UnknownOf(Message& message) {
  return *message.GetReflection()->MutableUnknownFields(&message);
}

// A field of each wire type, in `message` and in all that lies in it.
void AddUnknownFields(Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      AddUnknownFields(*reflection.MutableMessage(&message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      AddUnknownFields(*reflection.MutableRepeatedMessage(&message, field, i));
    }
  }
  const int number = NextNumberOf(message);
  UnknownFieldSet& unknown = UnknownOf(message);
  unknown.AddVarint(number, 1);
  unknown.AddFixed32(number + 1, 2);
  unknown.AddFixed64(number + 2, 3);
  unknown.AddLengthDelimited(number + 3, "\xff is no UTF-8, and no message");
  unknown.AddGroup(number + 4)->AddVarint(1, 4);
}

// "Do this", of a kind that is not in the contract yet.
pb::Directive UnknownDirective(const std::string& writer) {
  pb::Directive directive;
  directive.set_writer(writer);
  UnknownOf(directive).AddGroup(NextNumberOf(directive) + 1)->AddVarint(1, 1);
  UnknownOf(directive).AddLengthDelimited(NextNumberOf(directive), "\x08\x01");
  return directive;
}

// A message of a kind that is not in the contract yet; the writer is its field 1, as in all others.
pb::StreamChunksResponse UnknownMessage(const std::string& writer) {
  pb::StreamChunksResponse message;
  UnknownFieldSet content;
  content.AddLengthDelimited(1, writer);
  content.AddVarint(2, 7);
  std::string bytes;
  content.SerializeToString(&bytes);
  UnknownOf(message).AddLengthDelimited(NextNumberOf(message), bytes);
  return message;
}

pb::Directive Profile(bool on) {
  pb::Directive directive;
  directive.mutable_profiling()->set_on(on);
  return directive;
}

class NewerMasterTest : public AgentTest {
 protected:
  // Before each thing that is said one that is unknown, behind it a directive, in it more fields.
  void Rewrite(std::vector<pb::StreamChunksResponse>& said) {
    std::vector<pb::StreamChunksResponse> newer;
    for (pb::StreamChunksResponse& message : said) {
      const std::string writer =
          message.has_opened() ? message.opened().writer() : message.ack().writer();
      if (message.has_opened()) {
        // What is known lies between what is not.
        *message.mutable_opened()->add_directives() = UnknownDirective(writer);
        *message.mutable_opened()->add_directives() = Profile(true);
        *message.mutable_opened()->add_directives() = UnknownDirective(writer);
      }
      AddUnknownFields(message);
      newer.push_back(UnknownMessage(writer));
      newer.push_back(std::move(message));
      *newer.emplace_back().mutable_directive() = UnknownDirective(writer);
      ++rewritten_count_;
    }
    said = std::move(newer);
  }

  std::atomic<int> rewritten_count_{0};
};

TEST_F(NewerMasterTest, AgentRule05_WhatIsUnknownIsPassedOverAndNothingIsLost) {
  master_.SetRewrite([this](auto& said) { Rewrite(said); });
  StartAgent();
  const pid_t child = Record("t", 0, [] {
    RecordSteps(kSteps, /*pause_us=*/2000);
    stepwell_close(20000);
  });
  EXPECT_EQ(Wait(child), 0);
  ASSERT_TRUE(WaitForClosed());
  StopAgent();
  const Writers writers = master_.writers();
  ASSERT_EQ(writers.size(), 1U);
  ExpectEachStepOnce(writers, kSteps);
  EXPECT_TRUE(writers.begin()->second.gaps.empty());
  EXPECT_EQ(writers.begin()->second.open_count, 1) << "it stayed on its stream";
  EXPECT_EQ(writers.begin()->second.resend_count, 0);
  EXPECT_EQ(master_.stream_count(), 1);
  EXPECT_GE(rewritten_count_, 3) << "an Opened and several acks, at least";
}

}  // namespace
}  // namespace stepwell::agent
