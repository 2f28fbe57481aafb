// SystemC's library asks for it. libFuzzer's main() runs.
extern "C" int sc_main(int /*argc*/, char* /*argv*/[]) { return 0; }
