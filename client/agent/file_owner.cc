#include "client/agent/file_owner.h"

#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

namespace stepwell::agent {

// The calls give what was before and never fail aloud: asked with -1 they only tell.
ActAs::ActAs(const std::optional<FileOwner>& owner) {
  if (!owner) return;
  before_.emplace();
  before_->gid = static_cast<gid_t>(setfsgid(owner->gid));
  before_->uid = static_cast<uid_t>(setfsuid(owner->uid));
  STEPWELL_CHECK(static_cast<uid_t>(setfsuid(static_cast<uid_t>(-1))) == owner->uid);
  STEPWELL_CHECK(static_cast<gid_t>(setfsgid(static_cast<gid_t>(-1))) == owner->gid);
}

ActAs::~ActAs() {
  if (!before_) return;
  setfsuid(before_->uid);
  setfsgid(before_->gid);
}

FileOwner Oneself() { return {geteuid(), getegid()}; }

// The C library's call would change all threads, those of a test's own too.
void DropGroups() {
  if (geteuid() == 0) syscall(SYS_setgroups, 0, nullptr);
}

}  // namespace stepwell::agent
