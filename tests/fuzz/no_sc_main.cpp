// SystemC's library asks for it. libFuzzer's main() runs.
int sc_main(int /*argc*/, char* /*argv*/[]) { return 0; }
