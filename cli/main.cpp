#include <systemc>

int sc_main(int /*argc*/, char* /*argv*/[]) { return 0; }
