#include "server/http/ready_answer.h"

#include "nlohmann/json.hpp"

namespace stepwell {

HttpResponse ReadyAnswer(const MasterState::Snapshot& now, bool strangers_ask) {
  const nlohmann::json answer{{"ready", now.accepting()},
                              {"role", now.role_name()},
                              {"epoch", now.epoch},
                              {"reason", strangers_ask ? now.public_reason() : now.reason()}};
  HttpResponse response;
  response.status = now.accepting() ? 200 : 503;
  response.body = answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return response;
}

}  // namespace stepwell
