#include "base/bind_calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace penstock {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kSlotOfCall = R_X86_64_JUMP_SLOT;
constexpr std::uint32_t kSlotOfAddress = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr std::uint32_t kSlotOfCall = R_AARCH64_JUMP_SLOT;
constexpr std::uint32_t kSlotOfAddress = R_AARCH64_GLOB_DAT;
#else
constexpr std::uint32_t kSlotOfCall = 0;
constexpr std::uint32_t kSlotOfAddress = 0;
#endif

/// ELF speaks of addresses as numbers.
template <typename T>
T* pointer_to(ElfW(Addr) address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

/// What a loaded object's dynamic section says of its relocations.
struct Relocations {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::span<const ElfW(Rela)> of_calls;
  std::span<const ElfW(Rela)> of_data;
};

Relocations relocations_of(const dl_phdr_info& object, const ElfW(Dyn) * dynamic) {
  Relocations found;
  const auto at = [&](ElfW(Addr) address) {
    // Some loaders leave these relative to the object.
    return address < object.dlpi_addr ? address + object.dlpi_addr : address;
  };
  const ElfW(Rela)* calls = nullptr;
  const ElfW(Rela)* data = nullptr;
  std::size_t calls_bytes = 0;
  std::size_t data_bytes = 0;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const ElfW(Addr) address = at(dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_SYMTAB) found.symbols = pointer_to<const ElfW(Sym)>(address);
    if (dynamic->d_tag == DT_STRTAB) found.names = pointer_to<const char>(address);
    if (dynamic->d_tag == DT_JMPREL) calls = pointer_to<const ElfW(Rela)>(address);
    if (dynamic->d_tag == DT_RELA) data = pointer_to<const ElfW(Rela)>(address);
    if (dynamic->d_tag == DT_PLTRELSZ) calls_bytes = dynamic->d_un.d_val;
    if (dynamic->d_tag == DT_RELASZ) data_bytes = dynamic->d_un.d_val;
  }
  if (calls != nullptr) found.of_calls = {calls, calls_bytes / sizeof(ElfW(Rela))};
  if (data != nullptr) found.of_data = {data, data_bytes / sizeof(ElfW(Rela))};
  return found;
}

/// Writes into a slot that may lie in pages which the loader made read-only once it had filled them.
void write_slot(const dl_phdr_info& object, void** slot, void* function) {
  if (*slot == function) return;
  bool read_only = false;
  const auto address = reinterpret_cast<ElfW(Addr)>(slot);
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object.dlpi_phdr[i];
    const ElfW(Addr) begin = object.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_RELRO && address >= begin && address < begin + header.p_memsz)
      read_only = true;
  }
  const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* page = pointer_to<void>(address & ~(page_bytes - 1));
  if (read_only && ::mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return;
  *slot = function;
  if (read_only) ::mprotect(page, page_bytes, PROT_READ);
}

void bind_in(const dl_phdr_info& object, std::span<const ElfW(Rela)> relocations, const Relocations& all,
             std::span<const BoundCall> calls) {
  for (const ElfW(Rela) & relocation : relocations) {
    const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
    if (type != kSlotOfCall && type != kSlotOfAddress) continue;
    const char* name = all.names + all.symbols[ELF64_R_SYM(relocation.r_info)].st_name;
    for (const BoundCall& call : calls) {
      if (std::strcmp(name, call.name) != 0) continue;
      write_slot(object, pointer_to<void*>(object.dlpi_addr + relocation.r_offset), call.function);
    }
  }
}

struct Request {
  const void* base = nullptr;
  std::span<const BoundCall> calls;
};

int bind_if_meant(dl_phdr_info* object, std::size_t /*bytes*/, void* data) {
  const auto& request = *static_cast<const Request*>(data);
  const ElfW(Dyn)* dynamic = nullptr;
  bool meant = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    const ElfW(Addr) begin = object->dlpi_addr + header.p_vaddr;
    const auto address = reinterpret_cast<ElfW(Addr)>(request.base);
    if (header.p_type == PT_LOAD && address >= begin && address < begin + header.p_memsz) meant = true;
    if (header.p_type == PT_DYNAMIC) dynamic = pointer_to<const ElfW(Dyn)>(begin);
  }
  if (!meant || dynamic == nullptr) return 0;
  const Relocations all = relocations_of(*object, dynamic);
  if (all.symbols == nullptr || all.names == nullptr) return 1;
  bind_in(*object, all.of_calls, all, request.calls);
  bind_in(*object, all.of_data, all, request.calls);
  return 1;
}

}  // namespace

void bind_calls(const void* inside, std::span<const BoundCall> calls) {
  if (kSlotOfCall == 0) return;
  Request request{inside, calls};
  ::dl_iterate_phdr(bind_if_meant, &request);
}

}  // namespace penstock
