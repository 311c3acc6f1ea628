// What a sweep would remove, read from the ledger some trials at a time. A function for PgCapsStore.
#pragma once

#include "absl/status/statusor.h"
#include "storage/caps_store.h"
#include "storage/pg_connection.h"

namespace stepwell {

// As CapsStore::Preview.
absl::StatusOr<CapRemovals> PreviewCaps(PgConnection& connection, const PreviewRequest& request,
                                        const ProjectFilter& projects);

}  // namespace stepwell
