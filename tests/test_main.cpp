// Every executable that links SystemC defines sc_main; its own main() calls that.
#include <gtest/gtest.h>

#include <systemc>

int sc_main(int argc, char* argv[]) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
