// NvmlStub: a stand-in of NVIDIA's library with a scenario: a copy of its own, so that no test finds what
// another left in it.
#pragma once

#include <dlfcn.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "client/agent/sensors/nvml_session.h"
#include "tests/support/places/places.h"

namespace stepwell::agent {

class NvmlStub {
 public:
  explicit NvmlStub(const std::string& scenario,
                    const std::string& library = BuildPlace("nvml_stub/new/libnvidia-ml.so.1")) {
    char pattern[] = "/tmp/stepwell-nvml-XXXXXX";
    directory_ = mkdtemp(pattern);
    std::filesystem::copy_file(library, this->library());
    Play(scenario);
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
  // The scenario lies beside it.
  std::string library() const { return directory_ + "/libnvidia-ml.so.1"; }
  std::shared_ptr<NvmlSession> Session() const {
    return std::make_shared<NvmlSession>(NvmlLibrary::Load(library()).value());
  }
  // REQUIRES: loaded.
  int inits() const {
    void* const handle = dlopen(library().c_str(), RTLD_NOW | RTLD_NOLOAD);
    const int count = reinterpret_cast<int (*)()>(dlsym(handle, "StepwellStubInits"))();
    dlclose(handle);
    return count;
  }

 private:
  std::string directory_;
};

}  // namespace stepwell::agent
