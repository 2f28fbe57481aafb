#include "bench/gpu/victims/cublas.h"

#include <stdexcept>

namespace weft::gpu_probe {
namespace {

cudaDataType data_type(Element element) {
  if (element == Element::bf16) return CUDA_R_16BF;
  return element == Element::fp16 ? CUDA_R_16F : CUDA_R_32F;
}

}  // namespace

// cuBLAS finds its other half by name among what is open already.
CublasLibrary::CublasLibrary(const std::vector<std::filesystem::path>& folders)
    : lt_(folders, "libcublasLt.so.13"), library_(folders, "libcublas.so.13") {
  library_.find(status_string_, "cublasGetStatusString");
  library_.find(create_, "cublasCreate_v2");
  library_.find(set_stream_, "cublasSetStream_v2");
  library_.find(set_workspace_, "cublasSetWorkspace_v2");
  library_.find(get_version_, "cublasGetVersion_v2");
  library_.find(gemm_, "cublasGemmEx");
  library_.find(batched_gemm_, "cublasGemmStridedBatchedEx");
  check(create_(&handle_), "cublasCreate");
}

void CublasLibrary::check(cublasStatus_t status, const char* what) const {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(what) + ": " + status_string_(status));
}

void CublasLibrary::set_workspace(void* data, std::size_t bytes) {
  workspace_ = data;
  workspace_bytes_ = bytes;
  stream_ = nullptr;
}

std::string CublasLibrary::version() const {
  int version = 0;
  check(get_version_(handle_, &version), "cublasGetVersion");
  return std::to_string(version);
}

void CublasLibrary::multiply(const Product& p, Element element, const Operands& operands, cudaStream_t stream) {
  if (stream != stream_) {
    // Setting the stream takes the workspace away.
    check(set_stream_(handle_, stream), "cublasSetStream");
    check(set_workspace_(handle_, workspace_, workspace_bytes_), "cublasSetWorkspace");
    stream_ = stream;
  }
  // Row-major C = A B is column-major C^T = B^T A^T: the operands change places.
  const auto m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  const cublasOperation_t op_b = p.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_a = p.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int ld_b = p.b_transposed ? k : n;
  const int ld_a = p.a_transposed ? m : k;
  const cudaDataType type = data_type(element);
  const cublasComputeType_t compute = element == Element::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const float one = 1, zero = 0;
  if (p.batch == 1) {
    check(gemm_(handle_, op_b, op_a, n, m, k, &one, operands.b, type, ld_b, operands.a, type, ld_a, &zero, operands.c,
                type, n, compute, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
    return;
  }
  check(batched_gemm_(handle_, op_b, op_a, n, m, k, &one, operands.b, type, ld_b, p.k * p.n, operands.a, type, ld_a,
                      p.m * p.k, &zero, operands.c, type, n, p.m * p.n, static_cast<int>(p.batch), compute,
                      CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
}

}  // namespace weft::gpu_probe
