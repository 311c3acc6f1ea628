#include "client/agent/start_pages.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stepwell::agent {
namespace {

constexpr std::string_view kKernelsObject = "linux-vdso";  // no file

// Its code was changed when it was loaded: not what the file holds.
bool HasTextRelocations(const dl_phdr_info& object, std::span<const ElfW(Phdr)> headers) {
  for (const ElfW(Phdr) & header : headers) {
    if (header.p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + header.p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_TEXTREL) return true;
      if (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0) return true;
    }
  }
  return false;
}

int ReleaseObject(dl_phdr_info* object, std::size_t /*size*/, void* /*unused*/) {
  const std::span<const ElfW(Phdr)> headers(object->dlpi_phdr, object->dlpi_phnum);
  const std::string_view name = object->dlpi_name == nullptr ? "" : object->dlpi_name;
  if (name.starts_with(kKernelsObject) || HasTextRelocations(*object, headers)) return 0;
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const ElfW(Phdr) & header : headers) {
    // What may be written holds what is in no file.
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (object->dlpi_addr + header.p_vaddr) & ~(page_bytes - 1);
    const std::uintptr_t end = object->dlpi_addr + header.p_vaddr + header.p_memsz;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void ReleaseStartPages() { dl_iterate_phdr(&ReleaseObject, nullptr); }

}  // namespace stepwell::agent
