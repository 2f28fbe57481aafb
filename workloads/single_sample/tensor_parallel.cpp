#include "workloads/single_sample/tensor_parallel.h"

namespace weft {

struct GatheredInput {
  std::vector<std::uint32_t> gpus;
  Matrix own;
  Matrix all;           // of the pass that is under way
  TensorId gradient;    // of all rows, summed over layers
  bool summed = false;  // whether one of them has written it
};

namespace {

Matrix gather(TrainingStep& step, const std::vector<std::uint32_t>& gpus, const Matrix& own, const char* name) {
  const auto ranks = static_cast<std::int64_t>(gpus.size());
  const Matrix all{
      step.temporary("all_rows", own.elements() * ranks * step.precision().element_bytes, MemoryClass::communication),
      own.rows * ranks, own.columns};
  communicate(step, name, CollectiveKind::all_gather, gpus, whole(step, own.tensor), whole(step, all.tensor));
  return all;
}

Matrix scatter(TrainingStep& step, const std::vector<std::uint32_t>& gpus, const Matrix& all, const char* name) {
  const auto ranks = static_cast<std::int64_t>(gpus.size());
  const Matrix own{step.activation("own_rows", all.elements() / ranks), all.rows / ranks, all.columns};
  communicate(step, name, CollectiveKind::reduce_scatter, gpus, whole(step, all.tensor), whole(step, own.tensor));
  return own;
}

}  // namespace

std::shared_ptr<GatheredInput> gather_rows(TrainingStep& step, const std::vector<std::uint32_t>& gpus,
                                           const Matrix& in) {
  const auto gathered = std::make_shared<GatheredInput>();
  gathered->gpus = gpus;
  gathered->own = in;
  const bool alone = gpus.size() == 1;
  gathered->all = alone ? in : gather(step, gpus, in, "gather_rows");
  // Behind those of all layers that use them, which are registered later.
  step.on_backward([&step, gathered, alone] {
    const Matrix all{gathered->gradient, gathered->all.rows, gathered->all.columns};
    step.add_gradient(gathered->own.tensor,
                      alone ? all.tensor : scatter(step, gathered->gpus, all, "scatter_input_gradient").tensor);
  });
  return gathered;
}

Matrix column_parallel(TrainingStep& step, const std::shared_ptr<GatheredInput>& in, std::int64_t features,
                       bool biased) {
  const TensorId weight = step.parameter("weight", features * in->own.columns);
  step.graph().tensor(weight).distributed = in->gpus.size() > 1;
  std::optional<TensorId> bias;
  if (biased) bias = step.parameter("bias", features);
  if (bias) step.graph().tensor(*bias).distributed = in->gpus.size() > 1;
  const Matrix out{step.activation("output", in->all.rows * features), in->all.rows, features};
  linear_forward(step, in->all, weight, out, bias);
  step.on_backward([&step, in, weight, bias, out] {
    const Matrix gradient{step.take_gradient(out.tensor), out.rows, out.columns};
    if (!in->summed && in->gpus.size() > 1) in->all = gather(step, in->gpus, in->own, "gather_rows_backward");
    if (bias) bias_gradient(step, *bias, gradient.tensor, out.rows, out.columns);
    const Matrix all_gradient{step.activation("all_input_gradient", in->all.elements()), in->all.rows, in->all.columns};
    linear_data_gradient(step, gradient, weight, all_gradient);
    if (in->summed) {
      const std::int64_t elements = all_gradient.elements();
      const OpId op =
          step.elementwise("add_gradients", elements, {all_gradient.tensor, in->gradient}, {all_gradient.tensor});
      step.computes(op, [=, from = in->gradient, to = all_gradient.tensor](TensorValues& values) {
        copy(values, plain(from, 1, elements), plain(to, 1, elements), true);
      });
    }
    in->gradient = all_gradient.tensor;
    in->summed = true;
    linear_weight_gradient(step, gradient, in->all, weight);
  });
  return out;
}

Matrix row_parallel(TrainingStep& step, const std::vector<std::uint32_t>& gpus, const Matrix& in, std::int64_t features,
                    bool biased) {
  const bool alone = gpus.size() == 1;
  const TensorId weight = step.parameter("weight", features * in.columns);
  step.graph().tensor(weight).distributed = !alone;
  std::optional<TensorId> bias;
  if (biased) bias = step.parameter("bias", features);
  const Matrix all{step.activation("partial_output", in.rows * features), in.rows, features};
  linear_forward(step, in, weight, all, alone ? bias : std::nullopt);
  const Matrix out = alone ? all : scatter(step, gpus, all, "scatter_output");
  if (bias && !alone) {  // once, on what is the sum
    const TensorId addend = step.weight(*bias);
    const OpId op = step.elementwise("add_bias", out.elements(), {out.tensor, addend}, {out.tensor});
    step.computes(op, [=](TensorValues& values) { add_row(values, addend, plain(out.tensor, out.rows, out.columns)); });
  }
  step.on_backward([&step, gpus, in, weight, bias, out, all, alone] {
    const Matrix own{step.take_gradient(out.tensor), out.rows, out.columns};
    if (bias) bias_gradient(step, *bias, own.tensor, own.rows, own.columns);
    const Matrix gradient = alone ? own : gather(step, gpus, own, "gather_output_gradient");
    const Matrix input_gradient{step.activation("input_gradient", in.elements()), in.rows, in.columns};
    linear_data_gradient(step, gradient, weight, input_gradient);
    linear_weight_gradient(step, gradient, in, weight);
    step.add_gradient(in.tensor, input_gradient.tensor);
  });
  return out;
}

}  // namespace weft
