#include "server/ingest_context.h"

#include "server/credit_plan.h"

namespace stepwell {

std::int64_t IngestContext::Credit() const {
  CreditLoad load;
  load.may_take = state.Get().accepting();
  load.queue_bytes = queue.bytes();
  load.queue_bytes_max = queue.bytes_max();
  load.unfolded_bytes = heads.unfolded_bytes();
  load.unfolded_bytes_max = unfolded_bytes_max;
  load.writer_count = static_cast<int>(registry.open_count());
  return PlanCredit(load);
}

}  // namespace stepwell
