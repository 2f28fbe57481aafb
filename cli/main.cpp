#include <cstdlib>
#include <systemc>

#include "cli/app.h"

int sc_main(int argc, char* argv[]) { return weft::run_app(argc, argv); }

// SystemC's own main() prints a banner to stderr, where scripts look for errors.
int main(int argc, char* argv[]) {
  ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 0);
  return sc_core::sc_elab_and_sim(argc, argv);
}
