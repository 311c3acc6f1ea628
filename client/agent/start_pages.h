// Start pages: what the start of a program touched of its own file and of its libraries: symbol
// tables, relocations, constructors. An agent runs beside each training for days, and most of these
// pages, of dozens of libraries, are never looked at again.
//
//   ReleaseStartPages();   // first thing in main
#pragma once

namespace stepwell::agent {

// Lets the kernel unmap them. They are clean parts of files: what is needed again is mapped again,
// from the page cache as a rule.
void ReleaseStartPages();

}  // namespace stepwell::agent
