#include "server/access_rules.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "server/wire.h"
#include "stepwell/v1/admin.pb.h"
#include "stepwell/v1/clock.pb.h"
#include "stepwell/v1/ingest.pb.h"
#include "stepwell/v1/query.pb.h"
#include "stepwell/v1/token.pb.h"
#include "stepwell/v1/trace.pb.h"

namespace stepwell {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr std::array kRules = {
    AccessRule{"stepwell.v1.IngestService.StreamChunks", Right::kIngest, Subject::kEachWriter},
    AccessRule{"stepwell.v1.IngestService.WriteChunks", Right::kIngest, Subject::kEachWriter},

    AccessRule{"stepwell.v1.ClockService.ReadClock", Right::kIngest, Subject::kIngest},

    AccessRule{"stepwell.v1.QueryService.ListTrials", Right::kRead, Subject::kList},
    AccessRule{"stepwell.v1.QueryService.GetTrial", Right::kRead, Subject::kTrials},
    AccessRule{"stepwell.v1.QueryService.ListSeries", Right::kRead, Subject::kTrials},
    AccessRule{"stepwell.v1.QueryService.LatestValues", Right::kRead, Subject::kTrials},
    AccessRule{"stepwell.v1.QueryService.ReadSamples", Right::kRead, Subject::kTrials},
    AccessRule{"stepwell.v1.QueryService.FollowSamples", Right::kRead, Subject::kTrials},
    AccessRule{"stepwell.v1.QueryService.QueryBuckets", Right::kRead, Subject::kTrials},
    AccessRule{"stepwell.v1.QueryService.SummarizeTimings", Right::kRead, Subject::kTrials},
    AccessRule{"stepwell.v1.QueryService.CompareTrials", Right::kRead, Subject::kTrials},

    AccessRule{"stepwell.v1.AdminService.Flush", Right::kWrite, Subject::kTrialId},
    // Names agents of all projects.
    AccessRule{"stepwell.v1.AdminService.GetStatus", Right::kRead, Subject::kMaster},
    AccessRule{"stepwell.v1.AdminService.SetProfiling", Right::kWrite, Subject::kTrials},
    // Names places with caps: the service leaves out those of others.
    AccessRule{"stepwell.v1.AdminService.GetCaps", Right::kRead, Subject::kPlace},
    AccessRule{"stepwell.v1.AdminService.SetCaps", Right::kAdmin, Subject::kMaster},
    AccessRule{"stepwell.v1.AdminService.PreviewCaps", Right::kAdmin, Subject::kMaster},
    AccessRule{"stepwell.v1.AdminService.SweepCaps", Right::kAdmin, Subject::kMaster},
    AccessRule{"stepwell.v1.AdminService.ArchiveTrial", Right::kWrite, Subject::kTrials},
    AccessRule{"stepwell.v1.AdminService.DeleteTrial", Right::kWrite, Subject::kTrials},

    AccessRule{"stepwell.v1.TraceService.UploadTrace", Right::kIngest, Subject::kTrials},
    AccessRule{"stepwell.v1.TraceService.ListTraces", Right::kRead, Subject::kTrials},
    AccessRule{"stepwell.v1.TraceService.GetTrace", Right::kRead, Subject::kTrials},
    AccessRule{"stepwell.v1.TraceService.MergeTraces", Right::kRead, Subject::kTrials},
    AccessRule{"stepwell.v1.TraceService.SummarizeTrace", Right::kRead, Subject::kTrials},
    AccessRule{"stepwell.v1.TraceService.DeleteTrace", Right::kWrite, Subject::kTrials},
    AccessRule{"stepwell.v1.TraceService.CaptureTrace", Right::kWrite, Subject::kTrials},

    AccessRule{"stepwell.v1.TokenService.CreateToken", Right::kAdmin, Subject::kMaster},
    AccessRule{"stepwell.v1.TokenService.ListTokens", Right::kAdmin, Subject::kMaster},
    AccessRule{"stepwell.v1.TokenService.RevokeToken", Right::kAdmin, Subject::kMaster},
    AccessRule{"stepwell.v1.TokenService.FetchIngestToken", Right::kIngest, Subject::kTrials},
};

using RulesByRequest = absl::flat_hash_map<const Descriptor*, const AccessRule*>;

RulesByRequest MakeRules() {
  // So that their files are in the pool, whatever the linker thinks of them.
  for (const Descriptor* one :
       {v1::Open::descriptor(), v1::ListTrialsRequest::descriptor(), v1::FlushRequest::descriptor(),
        v1::TraceUpload::descriptor(), v1::CreateTokenRequest::descriptor(),
        v1::ReadClockRequest::descriptor()}) {
    STEPWELL_CHECK(one != nullptr);
  }
  RulesByRequest rules;
  const auto& pool = *google::protobuf::DescriptorPool::generated_pool();
  for (const AccessRule& rule : kRules) {
    const auto* method = pool.FindMethodByName(std::string(rule.method));
    STEPWELL_CHECK(method != nullptr);
    STEPWELL_CHECK(rules.emplace(method->input_type(), &rule).second);
  }
  return rules;
}

const v1::TrialRef& AsTrialRef(const Message& message) {
  return static_cast<const v1::TrialRef&>(message);
}

}  // namespace

std::span<const AccessRule> AccessRules() { return kRules; }

const AccessRule* FindRule(const Descriptor& request) {
  static const RulesByRequest& rules = *new RulesByRequest(MakeRules());
  const auto found = rules.find(&request);
  return found == rules.end() ? nullptr : found->second;
}

const AccessRule* FindRuleOfPath(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0 || path.front() != '/') return nullptr;
  const std::string_view service = path.substr(1, slash - 1);
  const std::string_view method = path.substr(slash + 1);
  const auto* const rule = std::find_if(kRules.begin(), kRules.end(), [&](const AccessRule& each) {
    return each.method.size() == service.size() + 1 + method.size() &&
           each.method.starts_with(service) && each.method[service.size()] == '.' &&
           each.method.ends_with(method);
  });
  return rule == kRules.end() ? nullptr : rule;
}

std::vector<v1::TrialRef> TrialsOf(const Message& request) {
  std::vector<v1::TrialRef> trials;
  const auto& reflection = *request.GetReflection();
  const Descriptor& type = *request.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.message_type() != v1::TrialRef::descriptor()) continue;
    if (!field.is_repeated()) {
      trials.push_back(AsTrialRef(reflection.GetMessage(request, &field)));
      continue;
    }
    for (int j = 0; j < reflection.FieldSize(request, &field); ++j) {
      trials.push_back(AsTrialRef(reflection.GetRepeatedMessage(request, &field, j)));
    }
  }
  return trials;
}

const v1::CapsPlace* CapsPlaceOf(const Message& request) {
  const FieldDescriptor* field = request.GetDescriptor()->FindFieldByName("place");
  if (field == nullptr || field->is_repeated() ||
      field->message_type() != v1::CapsPlace::descriptor()) {
    return nullptr;
  }
  return static_cast<const v1::CapsPlace*>(&request.GetReflection()->GetMessage(request, field));
}

std::int64_t TrialIdOf(const Message& request) {
  const FieldDescriptor* field = request.GetDescriptor()->FindFieldByName("trial_id");
  if (field == nullptr || field->cpp_type() != FieldDescriptor::CPPTYPE_INT64) return 0;
  return request.GetReflection()->GetInt64(request, field);
}

}  // namespace stepwell
