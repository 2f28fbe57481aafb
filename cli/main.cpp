#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <systemc>

#include "cli/commands/app.h"

int sc_main(int argc, char* argv[]) { return weft::run_app(argc, argv); }

// Sanitizers have a heap of their own, and nothing runs before they have set it up.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {
// The state of thousands of GPUs lies all over the heap: in huge pages it is found a quarter faster. glibc reads the
// setting when a program starts, hence a second start. Whoever sets GLIBC_TUNABLES, be it empty, has only the first.
// The C library has no environment yet, and no heap that it may keep.
void start_with_huge_pages(int /*argc*/, char* argv[], char* environment[]) {
  constexpr std::size_t kMostVariables = 4096;
  static char huge_pages[] = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";
  static char* variables[kMostVariables + 2];
  std::size_t count = 0;
  for (; environment[count] != nullptr; ++count) {
    if (count == kMostVariables || std::strncmp(environment[count], huge_pages, sizeof("GLIBC_TUNABLES")) == 0) return;
    variables[count] = environment[count];
  }
  variables[count] = huge_pages;
  ::execve("/proc/self/exe", argv, variables);
}

// Before libraries initialise themselves, which takes most of a start.
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)(int, char*[],
                                                                             char*[]) = start_with_huge_pages;
}  // namespace
#endif

// SystemC's own main() prints a banner to stderr, where scripts look for errors.
int main(int argc, char* argv[]) {
  ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 0);
  return sc_core::sc_elab_and_sim(argc, argv);
}
