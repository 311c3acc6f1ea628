// What keeps the secrets that a process was given from others of its machine: from core files, from debuggers of its own user,
// and from `ps`. Masters, agents and commands share it. Thread-safe but for what changes arguments, which comes first in main.
//
//   HideOptionValue(argc, argv, "--token");
//   if (HoldsClientSecret(arguments)) KeepMemoryPrivate();
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell {

// No core file is written of this process, and nobody of its user reads its memory or its environment: the kernel shows them to root
// alone (PR_SET_DUMPABLE). It ends where this process becomes another program, and no child that is another program has it;
// so nothing of a training changes where `stepwell run` becomes one. Doing it twice is fine.
void KeepMemoryPrivate();

// The same where this process acts for other users in turn (seteuid), by which the kernel forgets it as
// fs.suid_dumpable says: limits core files, too. Children inherit that one.
void KeepMemoryPrivateOfAllUsers();

// Writes '*' over those bytes of each argument in which `shown` of it differs from it: from the first such byte to the
// last. `ps` and /proc show arguments to everybody; until this is called they do.
void HideInArguments(int argc, char** argv,
                     const std::function<std::string(const std::string& given)>& shown);
// Over the value of `option`, in "--token VALUE" and "--token=VALUE".
void HideOptionValue(int argc, char** argv, std::string_view option);

// Whether a client that was called so shows a token, or has a key: STEPWELL_TOKEN, STEPWELL_TLS_KEY, --token, --tls-key; or makes
// keys: `tls init`.
bool HoldsClientSecret(const std::vector<std::string>& arguments);

}  // namespace stepwell
