#include "bench/gpu/victims/arena.h"
#include "bench/gpu/victims/cublas.h"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {
namespace {

class ProductWork : public Work {
 public:
  ProductWork(const Step& step, const Workshop& workshop)
      : product_(std::get<Product>(step.shape)),
        element_(step.element),
        cublas_(*workshop.cublas),
        a_(workshop.arena.take(product_.batch * product_.m * product_.k, element_, workshop.copies)),
        b_(workshop.arena.take(product_.batch * product_.k * product_.n, element_, workshop.copies)),
        c_(workshop.arena.take(product_.batch * product_.m * product_.n, element_, workshop.copies)) {}

  void launch(cudaStream_t stream, unsigned turn) override {
    cublas_.multiply(product_, element_, {a_.at<void>(turn), b_.at<void>(turn), c_.at<void>(turn)}, stream);
  }

 private:
  Product product_;
  Element element_;
  CublasLibrary& cublas_;
  Buffers a_, b_, c_;
};

}  // namespace

std::unique_ptr<Work> make_product(const Step& step, const Workshop& workshop) {
  if (workshop.cublas == nullptr) throw MissingLibrary("needs cuBLAS");
  return std::make_unique<ProductWork>(step, workshop);
}

}  // namespace weft::gpu_probe
