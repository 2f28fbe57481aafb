// Stands for the driver, libcuda.so.1: says which CUDA it is for, and what captures.
#include "tests/capture/fake_driver.h"

#include <cstdint>
#include <cstdlib>

extern "C" {

int cuDriverGetVersion(int* version) {
  const char* asked = std::getenv("FAKE_DRIVER_VERSION");
  *version = asked == nullptr ? 13000 : std::atoi(asked);
  return 0;
}

int cuStreamIsCapturing(void* stream, int* status) {
  *status = reinterpret_cast<std::uintptr_t>(stream) == kCapturingStream ? 1 : 0;
  return 0;
}
}
