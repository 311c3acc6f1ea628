// ReadyAnswer: what /readyz says of a master. A pure function.
#pragma once

#include "server/http/http_message.h"
#include "server/master_state.h"

namespace stepwell {

// `strangers_ask`: the reason names nothing of the database's words.
HttpResponse ReadyAnswer(const MasterState::Snapshot& now, bool strangers_ask);

}  // namespace stepwell
