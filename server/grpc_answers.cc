#include "server/grpc_answers.h"

#include <optional>
#include <string>

#include "base/steady_time.h"
#include "server/access_rules.h"
#include "server/answer_patience.h"
#include "server/grpc_access.h"
#include "server/rate_limits.h"
#include "server/rate_wait.h"

namespace stepwell {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

// Of one call. gRPC has one of its messages under way at a time.
class AnswerCount final : public Interceptor {
 public:
  AnswerCount(const AccessControl& access, RateLimits& rates, AnswerPatience patience,
              ServerRpcInfo& call)
      : access_(access), rates_(rates), patience_(patience), call_(call) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      Pay(methods->GetSerializedSendMessage()->Length());
    }
    methods->Proceed();
  }

 private:
  void Pay(std::size_t bytes) {
    if (!address_) {
      address_ = AddressOf(*call_.server_context());
      // One that has ended since it was let in is paid for by its address.
      caller_ = KnownCallerOf(&access_, *call_.server_context()).value_or(nullptr);
    }
    const RatePayer payer{*address_, caller_.get()};
    const auto amount = static_cast<double>(bytes);
    if (call_.type() == ServerRpcInfo::Type::SERVER_STREAMING) {
      if (Await(payer, amount)) return;
      // Nobody gets it, and nobody pays.
      if (call_.server_context()->IsCancelled()) return;
    }
    // A unary answer is owed for, whether or not its caller waits for it still: of a synchronous call gRPC tells that only
    // where it has slept for the shortest time that there is, a third of what a chart takes.
    rates_.Spend(RateKind::kReadBytes, payer, amount);
  }
  // Holds the thread of the call, and its place, of which one token has at most half. False: nothing was taken.
  bool Await(const RatePayer& payer, double amount) {
    const SteadyTime until = EndOfWait(patience_, begin_, SteadyTime::Now());
    return AwaitRate(rates_, RateKind::kReadBytes, payer, amount, [&] {
      return !until.HasPassed() && !HasEnded(caller_) && !call_.server_context()->IsCancelled();
    });
  }

  const AccessControl& access_;
  RateLimits& rates_;
  const AnswerPatience patience_;
  const SteadyTime begin_ = SteadyTime::Now();
  ServerRpcInfo& call_;
  // Known with the first message.
  std::optional<std::string> address_;
  Caller caller_;
};

class AnswerCounts final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit AnswerCounts(const AccessControl& access) : access_(access) {}

  // Null: the call goes on as if there were none of these.
  Interceptor* CreateServerInterceptor(ServerRpcInfo* call) override {
    const AccessRule* const rule = FindRuleOfPath(call->method());
    if (rule == nullptr || rule->right != Right::kRead || access_.rates() == nullptr) {
      return nullptr;
    }
    return new AnswerCount(access_, *access_.rates(), PatienceOf(rule->method), *call);
  }

 private:
  const AccessControl& access_;
};

}  // namespace

GrpcInterceptors CountAnswers(const AccessControl& access) {
  GrpcInterceptors made;
  made.push_back(std::make_unique<AnswerCounts>(access));
  return made;
}

}  // namespace stepwell
