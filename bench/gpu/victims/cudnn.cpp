#include "bench/gpu/victims/cudnn.h"

#include <cstdio>
#include <stdexcept>

namespace weft::gpu_probe {
namespace {

// cuDNN finds these by name among what is open already; without the second it has fewer kernels to choose from.
std::vector<SharedLibrary> open_before(const std::vector<std::filesystem::path>& folders) {
  std::vector<SharedLibrary> open;
  for (const char* soname : {"libcublasLt.so.13", "libnvrtc.so.13"}) {
    try {
      open.emplace_back(folders, soname);
    } catch (const MissingLibrary& missing) {
      std::fprintf(stderr, "cuDNN may miss a library: %s\n", missing.what());
    }
  }
  return open;
}

}  // namespace

CudnnLibrary::CudnnLibrary(const std::vector<std::filesystem::path>& folders)
    : before_(open_before(folders)), library_(folders, "libcudnn.so.9") {
#define WEFT_FIND(name) library_.find(name, #name);
  WEFT_CUDNN_FUNCTIONS(WEFT_FIND)
#undef WEFT_FIND
  check(this->cudnnCreate(&handle_), "cudnnCreate");
}

void CudnnLibrary::set_stream(cudaStream_t stream) {
  if (stream == stream_) return;
  check(this->cudnnSetStream(handle_, stream), "cudnnSetStream");
  stream_ = stream;
}

void CudnnLibrary::check(cudnnStatus_t status, const char* what) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char more[512] = {};
  this->cudnnGetLastErrorString(more, sizeof(more));
  throw std::runtime_error(std::string(what) + ": " + this->cudnnGetErrorString(status) + " " + more);
}

void CudnnLibrary::set_workspace(void* data, std::size_t bytes) {
  workspace_ = data;
  workspace_bytes_ = bytes;
}

}  // namespace weft::gpu_probe
