// Stands where an agent would: started as `agent_probe agent --spool-dir ROOT --on-demand`, it leaves
// its first process, takes the lock of ROOT, writes down what it got from the trial, and tells each
// closed writer that all of it is stored. Ends when ROOT is gone.
//
// STEPWELL_PROBE: "refuse" = its first process ends with exit code 64; "late" = it takes the lock
// after STEPWELL_PROBE_DELAY_MS.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "client/recorder/src/spool_format.h"

extern char** environ;

namespace stepwell::recorder {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

std::string LineOf(const char* path, const std::string& begin) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(begin, 0) == 0) return line;
  }
  return begin + " none";
}

// In the first process: what a directory iterator opens itself is the highest.
std::string OpenDescriptors() {
  std::string text = "descriptors";
  for (int fd = 0; fd < 256; ++fd) {
    std::error_code error;
    const fs::path target = fs::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
    if (!error) text += " " + std::to_string(fd) + "=" + target.string();
  }
  return text;
}

std::string Inherited() {
  std::string text = OpenDescriptors() + "\n";
  text += "cwd " + fs::current_path().string() + "\n";
  text += std::string("session ") + (getsid(0) == getpid() ? "own" : "shared") + "\n";
  text += LineOf("/proc/self/status", "SigBlk:") + "\n";
  text += LineOf("/proc/self/status", "SigIgn:") + "\n";
  for (char** variable = environ; *variable != nullptr; ++variable) {
    text += std::string("variable ") + *variable + "\n";
  }
  return text;
}

bool TakeLock(const std::string& root) {
  const std::string folder = root + "/" + spool::kFormatDirectory;
  const int fd = open((folder + "/" + spool::kAgentLockFile).c_str(), O_RDWR | O_CREAT, 0600);
  struct flock wanted {};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_len = 1;
  return fcntl(fd, F_SETLK, &wanted) == 0;
}

void AckIfClosed(const fs::path& writer) {
  const int fd = open((writer / spool::kHeaderFile).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* mapped = mmap(nullptr, spool::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return;
  auto* header = static_cast<spool::WriterHeader*>(mapped);
  if (header->state == spool::kWriterClosed) header->agent_state = spool::kAgentAcked;
  munmap(mapped, spool::kPageBytes);
}

void Serve(const std::string& root) {
  for (; fs::exists(root); std::this_thread::sleep_for(milliseconds(5))) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root + "/" + spool::kFormatDirectory, error)) {
      if (entry.is_directory(error)) AckIfClosed(entry.path());
    }
  }
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path + ".draft") << text;
  fs::rename(path + ".draft", path);
}

int Main(int argc, char** argv) {
  const char* mode = std::getenv("STEPWELL_PROBE");
  const std::string wanted = mode == nullptr ? "" : mode;
  if (argc != 5 || wanted == "refuse") return 64;
  const std::string root = argv[3];
  std::string words;
  for (int i = 1; i < argc; ++i) words += std::string(i == 1 ? "" : " ") + argv[i];
  const std::string inherited = "words " + words + "\n" + Inherited();
  if (fork() != 0) return 0;
  if (wanted == "late") {
    std::this_thread::sleep_for(milliseconds(std::atoi(std::getenv("STEPWELL_PROBE_DELAY_MS"))));
  }
  if (!TakeLock(root)) return 0;
  Write(root + "/probe", "pid " + std::to_string(getpid()) + "\n" + inherited);
  Serve(root);
  return 0;
}

}  // namespace
}  // namespace stepwell::recorder

int main(int argc, char** argv) { return stepwell::recorder::Main(argc, argv); }
