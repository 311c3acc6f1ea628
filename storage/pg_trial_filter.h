// TrialFilter in SQL: a condition over a trial t of a project p, and the five values that come first where it stands.
//
//   std::vector<PgParam> params = PgTrialFilter(trials);
//   params.emplace_back(trial_id);  // $6
#pragma once

#include <vector>

#include "storage/pg_array.h"
#include "storage/pg_param.h"
#include "storage/trial_filter.h"

// $1 whether it has to lie in one of the projects $2, or be one of $3 or of the names $4, $5. Null for one without a
// name that is none of the others.
#define STEPWELL_TRIAL_LET_THROUGH                       \
  "(not $1 or p.name = any($2) or t.trial_id = any($3) " \
  "or (p.name, t.external_id) in (select * from unnest($4::text[], $5::text[])))"

namespace stepwell {

// It borrows from `trials`.
inline std::vector<PgParam> PgTrialFilter(const TrialFilter& trials) {
  return {!trials.projects().is_all(), PgArray(trials.projects().named()),
          PgArray(trials.trial_ids()), PgArray(trials.name_projects()),
          PgArray(trials.external_ids())};
}

}  // namespace stepwell
