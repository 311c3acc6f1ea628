#include "client/recorder/src/placement.h"

namespace stepwell::recorder {
namespace {

std::string PodOf(const Environment& environment) {
  std::string named = ReadVariable(environment, "POD_NAME");
  if (!named.empty()) return named;
  // Set in each container of Kubernetes, whose host name is its pod's, but for one that has the node's network.
  if (ReadVariable(environment, "KUBERNETES_SERVICE_HOST").empty()) return "";
  std::string host = ReadVariable(environment, "HOSTNAME");
  return host == ReadVariable(environment, "NODE_NAME") ? std::string() : host;
}

}  // namespace

std::map<std::string, std::string> PlacementOf(const Environment& environment) {
  std::map<std::string, std::string> placement;
  const std::string pod = PodOf(environment);
  if (!pod.empty()) placement["pod"] = pod;
  const std::string job = ReadVariable(environment, "SLURM_JOB_ID");
  if (!job.empty()) placement["slurm_job"] = job;
  return placement;
}

}  // namespace stepwell::recorder
