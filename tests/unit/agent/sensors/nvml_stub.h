// NvmlStub: a scenario for the stand-in of NVIDIA's library, which the process loads once.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "client/agent/sensors/nvml_session.h"

namespace stepwell::agent {

class NvmlStub {
 public:
  explicit NvmlStub(const std::string& scenario) {
    char pattern[] = "/tmp/stepwell-nvml-XXXXXX";
    directory_ = mkdtemp(pattern);
    Play(scenario);
    setenv("STEPWELL_NVML_SCENARIO", path().c_str(), 1);
  }
  ~NvmlStub() {
    // Lets go what hangs in it.
    Play("gpus 0\n");
    std::filesystem::remove_all(directory_);
  }
  NvmlStub(const NvmlStub&) = delete;
  NvmlStub& operator=(const NvmlStub&) = delete;

  // From now on.
  void Play(const std::string& scenario) {
    std::ofstream(path() + ".new", std::ios::trunc) << scenario;
    std::filesystem::rename(path() + ".new", path());
  }
  std::string path() const { return directory_ + "/scenario"; }
  static std::shared_ptr<NvmlSession> Session(const char* library = NVML_STUB_NEW) {
    return std::make_shared<NvmlSession>(NvmlLibrary::Load(library).value());
  }

 private:
  std::string directory_;
};

}  // namespace stepwell::agent
