// SpoolNumbers: which spools a writer has. Each retirement begins another, in a folder named by its
// number: the highest is the living one. Whose files they are may make any names beside them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepwell::agent {

// Of the names in the folder of a writer's spools, ascending. Only the one way we write them
// counts: "07" would be the spool "7" once more. Behind 4294967294 no other spool begins.
std::vector<std::uint32_t> SpoolNumbers(const std::vector<std::string>& names);

}  // namespace stepwell::agent
