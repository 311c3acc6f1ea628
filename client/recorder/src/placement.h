// Placement: which pod and which job of Slurm this process runs in, by its environment: what other tools'
// series of the same machine are labelled with. Pure.
#pragma once

#include <map>
#include <string>

#include "client/recorder/src/environment.h"

namespace stepwell::recorder {

// "pod": POD_NAME, which a pod is given by the downward API, else the host name in a pod; "slurm_job":
// SLURM_JOB_ID. What is not so is absent.
std::map<std::string, std::string> PlacementOf(const Environment& environment);

}  // namespace stepwell::recorder
