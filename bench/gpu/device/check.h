// Every return code of CUDA is looked at: a failed call throws what was called and why it failed.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace weft::gpu_probe {

class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const char* what)
      : std::runtime_error(std::string(what) + ": " + cudaGetErrorName(code) + ", " + cudaGetErrorString(code)),
        code_(code) {}
  [[nodiscard]] cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

inline void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw CudaError(code, what);
}

// After a launch with <<<>>>.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

}  // namespace weft::gpu_probe
