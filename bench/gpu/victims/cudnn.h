// cuDNN 9, opened when the program runs: its older interface, whose calls choose and run one algorithm each.
#pragma once

#include <cudnn.h>

#include <filesystem>
#include <string>
#include <vector>

#include "bench/gpu/device/shared_library.h"

namespace weft::gpu_probe {

#define WEFT_CUDNN_FUNCTIONS(X)                     \
  X(cudnnCreate)                                    \
  X(cudnnSetStream)                                 \
  X(cudnnGetVersion)                                \
  X(cudnnGetErrorString)                            \
  X(cudnnGetLastErrorString)                        \
  X(cudnnCreateTensorDescriptor)                    \
  X(cudnnDestroyTensorDescriptor)                   \
  X(cudnnSetTensor4dDescriptor)                     \
  X(cudnnCreateFilterDescriptor)                    \
  X(cudnnDestroyFilterDescriptor)                   \
  X(cudnnSetFilter4dDescriptor)                     \
  X(cudnnCreateConvolutionDescriptor)               \
  X(cudnnDestroyConvolutionDescriptor)              \
  X(cudnnSetConvolution2dDescriptor)                \
  X(cudnnSetConvolutionMathType)                    \
  X(cudnnGetConvolutionForwardAlgorithm_v7)         \
  X(cudnnGetConvolutionForwardWorkspaceSize)        \
  X(cudnnConvolutionForward)                        \
  X(cudnnGetConvolutionBackwardDataAlgorithm_v7)    \
  X(cudnnGetConvolutionBackwardDataWorkspaceSize)   \
  X(cudnnConvolutionBackwardData)                   \
  X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)  \
  X(cudnnGetConvolutionBackwardFilterWorkspaceSize) \
  X(cudnnConvolutionBackwardFilter)

class CudnnLibrary {
 public:
  // Throws MissingLibrary, or std::runtime_error where it does not start.
  explicit CudnnLibrary(const std::vector<std::filesystem::path>& folders);

#define WEFT_MEMBER(name) decltype(&::name) name = nullptr;
  WEFT_CUDNN_FUNCTIONS(WEFT_MEMBER)
#undef WEFT_MEMBER

  [[nodiscard]] cudnnHandle_t handle() const { return handle_; }
  void set_stream(cudaStream_t stream);
  void check(cudnnStatus_t status, const char* what) const;

  // Scratch memory that all convolutions share.
  void set_workspace(void* data, std::size_t bytes);
  [[nodiscard]] void* workspace() const { return workspace_; }
  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_bytes_; }
  [[nodiscard]] std::string version() const { return std::to_string(cudnnGetVersion()); }

 private:
  std::vector<SharedLibrary> before_;
  SharedLibrary library_;
  cudnnHandle_t handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
  void* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace weft::gpu_probe
