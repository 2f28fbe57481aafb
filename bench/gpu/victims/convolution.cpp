#include <stdexcept>

#include "bench/gpu/victims/arena.h"
#include "bench/gpu/victims/cudnn.h"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {
namespace {

constexpr int kMostAlgorithms = 8;

// Shapes as cuDNN knows them: FP16 in NHWC order, sums in FP32.
class Descriptors {
 public:
  Descriptors(CudnnLibrary& cudnn, const Convolution& c) : cudnn_(cudnn) {
    const auto i = [](std::int64_t value) { return static_cast<int>(value); };
    cudnn.check(cudnn.cudnnCreateTensorDescriptor(&data), "cudnnCreateTensorDescriptor");
    cudnn.check(cudnn.cudnnCreateTensorDescriptor(&output), "cudnnCreateTensorDescriptor");
    cudnn.check(cudnn.cudnnCreateFilterDescriptor(&filter), "cudnnCreateFilterDescriptor");
    cudnn.check(cudnn.cudnnCreateConvolutionDescriptor(&convolution), "cudnnCreateConvolutionDescriptor");
    cudnn.check(cudnn.cudnnSetTensor4dDescriptor(data, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, i(c.samples), i(c.channels),
                                                 i(c.height), i(c.width)),
                "cudnnSetTensor4dDescriptor");
    cudnn.check(cudnn.cudnnSetTensor4dDescriptor(output, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, i(c.samples), i(c.filters),
                                                 i(c.out_height()), i(c.out_width())),
                "cudnnSetTensor4dDescriptor");
    cudnn.check(cudnn.cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, i(c.filters),
                                                 i(c.channels), i(c.filter_side), i(c.filter_side)),
                "cudnnSetFilter4dDescriptor");
    const int padding = i(c.padding), stride = i(c.stride);
    cudnn.check(cudnn.cudnnSetConvolution2dDescriptor(convolution, padding, padding, stride, stride, 1, 1,
                                                      CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                "cudnnSetConvolution2dDescriptor");
    cudnn.check(cudnn.cudnnSetConvolutionMathType(convolution, CUDNN_TENSOR_OP_MATH), "cudnnSetConvolutionMathType");
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  ~Descriptors() {
    static_cast<void>(cudnn_.cudnnDestroyTensorDescriptor(data));
    static_cast<void>(cudnn_.cudnnDestroyTensorDescriptor(output));
    static_cast<void>(cudnn_.cudnnDestroyFilterDescriptor(filter));
    static_cast<void>(cudnn_.cudnnDestroyConvolutionDescriptor(convolution));
  }

  cudnnTensorDescriptor_t data = nullptr, output = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;

 private:
  CudnnLibrary& cudnn_;
};

class ConvolutionWork : public Work {
 public:
  ConvolutionWork(const Step& step, const Workshop& workshop)
      : kind_(step.kind),
        shape_(std::get<Convolution>(step.shape)),
        cudnn_(*workshop.cudnn),
        descriptors_(cudnn_, shape_),
        data_(workshop.arena.take(shape_.samples * shape_.channels * shape_.height * shape_.width, Element::fp16,
                                  workshop.copies)),
        weights_(workshop.arena.take(shape_.filters * shape_.channels * shape_.filter_side * shape_.filter_side,
                                     Element::fp16, workshop.copies)),
        output_(workshop.arena.take(shape_.samples * shape_.filters * shape_.out_height() * shape_.out_width(),
                                    Element::fp16, workshop.copies)) {
    cudnn_.set_stream(workshop.arena.stream());
    choose_algorithm();
  }

  void launch(cudaStream_t stream, unsigned turn) override {
    cudnn_.set_stream(stream);
    cudnn_.check(run(algorithm_, turn), "a convolution of cuDNN");
  }

 private:
  struct Choice {
    int algorithm;
    cudnnMathType_t math;
  };

  cudnnStatus_t run(int algorithm, unsigned turn) const {
    const float one = 1, zero = 0;
    const Descriptors& d = descriptors_;
    const cudnnHandle_t handle = cudnn_.handle();
    void* const x = data_.at<void>(turn);
    void* const w = weights_.at<void>(turn);
    void* const y = output_.at<void>(turn);
    void* const scratch = cudnn_.workspace();
    const std::size_t bytes = cudnn_.workspace_bytes();
    switch (kind_) {
      case StepKind::conv_forward:
        return cudnn_.cudnnConvolutionForward(handle, &one, d.data, x, d.filter, w, d.convolution,
                                              static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), scratch, bytes, &zero,
                                              d.output, y);
      case StepKind::conv_backward_data:
        return cudnn_.cudnnConvolutionBackwardData(handle, &one, d.filter, w, d.output, y, d.convolution,
                                                   static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm), scratch,
                                                   bytes, &zero, d.data, x);
      default:
        return cudnn_.cudnnConvolutionBackwardFilter(handle, &one, d.data, x, d.output, y, d.convolution,
                                                     static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm), scratch,
                                                     bytes, &zero, d.filter, w);
    }
  }

  template <class Found, class Ask>
  std::vector<Choice> ask(Ask&& ask_cudnn) const {
    Found found[kMostAlgorithms] = {};
    int count = 0;
    cudnn_.check(ask_cudnn(&count, found), "the choice of cuDNN's algorithm");
    std::vector<Choice> out;
    for (int i = 0; i < count; ++i) {
      if (found[i].status == CUDNN_STATUS_SUCCESS && found[i].memory <= cudnn_.workspace_bytes())
        out.push_back({static_cast<int>(found[i].algo), found[i].mathType});
    }
    return out;
  }

  // cuDNN's order of preference; the first that runs.
  void choose_algorithm() {
    const Descriptors& d = descriptors_;
    const cudnnHandle_t handle = cudnn_.handle();
    std::vector<Choice> algorithms;
    if (kind_ == StepKind::conv_forward) {
      algorithms = ask<cudnnConvolutionFwdAlgoPerf_t>([&](int* count, cudnnConvolutionFwdAlgoPerf_t* found) {
        return cudnn_.cudnnGetConvolutionForwardAlgorithm_v7(handle, d.data, d.filter, d.convolution, d.output,
                                                             kMostAlgorithms, count, found);
      });
    } else if (kind_ == StepKind::conv_backward_data) {
      algorithms = ask<cudnnConvolutionBwdDataAlgoPerf_t>([&](int* count, cudnnConvolutionBwdDataAlgoPerf_t* found) {
        return cudnn_.cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, d.filter, d.output, d.convolution, d.data,
                                                                  kMostAlgorithms, count, found);
      });
    } else {
      algorithms =
          ask<cudnnConvolutionBwdFilterAlgoPerf_t>([&](int* count, cudnnConvolutionBwdFilterAlgoPerf_t* found) {
            return cudnn_.cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, d.data, d.output, d.convolution,
                                                                        d.filter, kMostAlgorithms, count, found);
          });
    }
    for (const Choice& choice : algorithms) {
      if (cudnn_.cudnnSetConvolutionMathType(d.convolution, choice.math) != CUDNN_STATUS_SUCCESS) continue;
      if (run(choice.algorithm, 0) != CUDNN_STATUS_SUCCESS) continue;
      algorithm_ = choice.algorithm;
      return;
    }
    throw std::runtime_error("cuDNN has no algorithm that runs");
  }

  StepKind kind_;
  Convolution shape_;
  CudnnLibrary& cudnn_;
  Descriptors descriptors_;
  Buffers data_, weights_, output_;
  int algorithm_ = 0;
};

}  // namespace

std::unique_ptr<Work> make_convolution(const Step& step, const Workshop& workshop) {
  if (workshop.cudnn == nullptr) throw MissingLibrary("needs cuDNN");
  return std::make_unique<ConvolutionWork>(step, workshop);
}

}  // namespace weft::gpu_probe
