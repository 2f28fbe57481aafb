#include <unistd.h>

#include <cstdlib>
#include <systemc>

#include "cli/app.h"

int sc_main(int argc, char* argv[]) { return weft::run_app(argc, argv); }

namespace {
// The state of thousands of GPUs lies all over the heap: in huge pages it is found a quarter faster. glibc reads the
// setting when a program starts, hence a second start. Whoever sets GLIBC_TUNABLES, be it empty, has only the first.
void start_with_huge_pages(char* argv[]) {
  if (::setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 0) == 0) ::execv("/proc/self/exe", argv);
}
}  // namespace

// SystemC's own main() prints a banner to stderr, where scripts look for errors.
int main(int argc, char* argv[]) {
  if (::getenv("GLIBC_TUNABLES") == nullptr) start_with_huge_pages(argv);
  ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 0);
  return sc_core::sc_elab_and_sim(argc, argv);
}
