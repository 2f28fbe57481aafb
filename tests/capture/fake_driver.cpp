// Stands for the driver, libcuda.so.1: says which CUDA it is for.
#include <cstdlib>

extern "C" int cuDriverGetVersion(int* version) {
  const char* asked = std::getenv("FAKE_DRIVER_VERSION");
  *version = asked == nullptr ? 13000 : std::atoi(asked);
  return 0;
}
