#include "client/recorder/src/spool_place.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "client/recorder/src/agent_presence.h"
#include "client/recorder/src/spool_root.h"

namespace stepwell::recorder {
namespace {

RootSurroundings ReadSurroundings(const Environment& environment) {
  RootSurroundings around;
  around.environment = environment;
  std::array<char, 4096> folder{};
  if (getcwd(folder.data(), folder.size()) != nullptr) around.working_directory = folder.data();
  around.user = geteuid();
  around.is_served = &IsSystemRootServed;
  return around;
}

std::unique_ptr<SpoolWriter> TryRoot(SpoolRoot& root, const Identity& identity,
                                     const Environment& environment, std::string* why) {
  const bool is_fresh = root.kind == RootKind::kPrivate;
  if (is_fresh) root.path = MakePrivateRoot(root.path, why);
  if (root.path.empty()) return nullptr;
  // Who chose another root has said what is shared between containers; of this one nobody has.
  SharedRingPlace rings;
  if (root.kind == RootKind::kDefault) {
    rings = SharedRingPlace::Read(environment, identity.world_size);
  }
  std::unique_ptr<SpoolWriter> writer = SpoolWriter::Create(root.path, identity, rings, why);
  if (writer == nullptr && is_fresh) rmdir(root.path.c_str());
  return writer;
}

}  // namespace

SpoolPlace SpoolPlace::Find(const Identity& identity, const std::string& given,
                            const Environment& environment) {
  SpoolPlace place;
  for (SpoolRoot& root : ListRoots(given, ReadSurroundings(environment))) {
    std::string why;
    place.writer = TryRoot(root, identity, environment, &why);
    if (place.writer != nullptr) {
      if (!place.remarks.empty()) place.remarks.push_back("records into " + root.path);
      place.root = std::move(root);
      return place;
    }
    place.remarks.push_back(std::move(why));
    if (root.kind == RootKind::kGiven) break;
  }
  if (place.remarks.size() > 1) {
    place.remarks.push_back("set STEPWELL_SPOOL_DIR to a directory on a local file system");
  }
  place.writer = SpoolWriter::CreateInMemory(identity);
  return place;
}

}  // namespace stepwell::recorder
