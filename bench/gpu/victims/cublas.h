// cuBLAS, opened when the program runs.
#pragma once

#include <cublas_v2.h>

#include <filesystem>
#include <string>
#include <vector>

#include "bench/gpu/device/shared_library.h"
#include "bench/gpu/plan/step.h"

namespace weft::gpu_probe {

class CublasLibrary {
 public:
  // Throws MissingLibrary.
  explicit CublasLibrary(const std::vector<std::filesystem::path>& folders);

  struct Operands {
    const void* a = nullptr;
    const void* b = nullptr;
    void* c = nullptr;
  };
  // With FP32 accumulation, as PyTorch asks for. Throws std::runtime_error.
  void multiply(const Product& product, Element element, const Operands& operands, cudaStream_t stream);

  // Scratch memory of split-K kernels; without it cuBLAS allocates.
  void set_workspace(void* data, std::size_t bytes);
  [[nodiscard]] std::string version() const;

 private:
  // cublasGemmEx has an overload, so its type is written out.
  using Gemm = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                              const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                              cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
  using BatchedGemm = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                                     const void*, cudaDataType, int, long long, const void*, cudaDataType, int,
                                     long long, const void*, void*, cudaDataType, int, long long, int,
                                     cublasComputeType_t, cublasGemmAlgo_t);

  void check(cublasStatus_t status, const char* what) const;

  SharedLibrary lt_, library_;
  decltype(&::cublasCreate_v2) create_ = nullptr;
  decltype(&::cublasSetStream_v2) set_stream_ = nullptr;
  decltype(&::cublasSetWorkspace_v2) set_workspace_ = nullptr;
  decltype(&::cublasGetVersion_v2) get_version_ = nullptr;
  decltype(&::cublasGetStatusString) status_string_ = nullptr;
  Gemm* gemm_ = nullptr;
  BatchedGemm* batched_gemm_ = nullptr;
  cublasHandle_t handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
  void* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace weft::gpu_probe
