// AccessRules: what each method of the wire contract asks of who calls it. One table; a method that is not in
// it is refused to everybody. A core.
//
//   const AccessRule* rule = FindRule(*request.GetDescriptor());
//   if (rule == nullptr) return Refuse();
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "stepwell/v1/caps.pb.h"
#include "stepwell/v1/model.pb.h"

namespace google::protobuf {
class Descriptor;
class Message;
}  // namespace google::protobuf

namespace stepwell {

enum class Right { kIngest, kRead, kWrite, kAdmin };

// What a request is about.
enum class Subject {
  kTrials,      // those that its fields of type TrialRef name
  kTrialId,     // the one of its field trial_id; 0 is the master
  kList,        // nothing that it names: it is answered of what the caller may read
  kEachWriter,  // asked for each writer that opens
  kIngest,      // nothing: it is for whoever may ingest anything
  kPlace,  // the project or trial of its field place; neither is what any reader may ask, of what he reads
  kMaster,  // the master as a whole: read:* where it is to read, otherwise admin
};

struct AccessRule {
  std::string_view method;  // "stepwell.v1.QueryService.GetTrial"
  Right right;
  Subject subject;
};

// All there are.
std::span<const AccessRule> AccessRules();
// By the type of a method's request, of which each method has its own; null = there is none.
const AccessRule* FindRule(const google::protobuf::Descriptor& request);
// By a method's path, "/stepwell.v1.QueryService/GetTrial"; null = there is none.
const AccessRule* FindRuleOfPath(std::string_view path);
// The trials that a request names in its own fields, in their order.
std::vector<v1::TrialRef> TrialsOf(const google::protobuf::Message& request);
// Its field place; null where its type has none.
const v1::CapsPlace* CapsPlaceOf(const google::protobuf::Message& request);
// Its field trial_id; 0 where it has none.
std::int64_t TrialIdOf(const google::protobuf::Message& request);

}  // namespace stepwell
