#include "workloads/single_sample/tensor_parallel.h"

namespace weft {

struct GatheredInput {
  TensorGroup group;
  Matrix own;
  Matrix all;                // of the pass that is under way
  TensorId gradient;         // of all rows, summed over layers; once they are summed over ranks, of own rows
  std::uint32_t layers = 0;  // whose input gradient is still to come
  bool summed = false;       // whether one of them has written it
};

namespace {

Matrix gather(TrainingStep& step, const TensorGroup& group, const Matrix& own, const char* name) {
  if (group.alone() || !group.own_rows) return own;
  const auto ranks = static_cast<std::int64_t>(group.gpus.size());
  const Matrix all{
      step.temporary("all_rows", own.elements() * ranks * step.precision().element_bytes, MemoryClass::communication),
      own.rows * ranks, own.columns};
  communicate(step, name, CollectiveKind::all_gather, group.gpus, whole(step, own.tensor), whole(step, all.tensor));
  return all;
}

// Over all ranks: the rows that this one has.
Matrix sum(TrainingStep& step, const TensorGroup& group, const Matrix& all, const std::string& name) {
  if (group.alone()) return all;
  const TensorRange source = whole(step, all.tensor);
  if (!group.own_rows) {
    communicate(step, "reduce_" + name, CollectiveKind::all_reduce, group.gpus, source, source, {}, group.fused);
    return all;
  }
  const auto ranks = static_cast<std::int64_t>(group.gpus.size());
  const Matrix own{step.activation("own_rows", all.elements() / ranks), all.rows / ranks, all.columns};
  communicate(step, "scatter_" + name, CollectiveKind::reduce_scatter, group.gpus, source, whole(step, own.tensor), {},
              group.fused);
  return own;
}

}  // namespace

TensorGroup tensor_group(const SampleSplit& split) {
  if (split.scheme != SampleScheme::megatron) return {.gpus = {split.gpus[split.rank]}};
  return {.gpus = split.gpus, .own_rows = split.sequence_parallel, .fused = split.fused};
}

std::shared_ptr<GatheredInput> gather_rows(TrainingStep& step, const TensorGroup& group, const Matrix& in) {
  const auto gathered = std::make_shared<GatheredInput>();
  gathered->group = group;
  gathered->own = in;
  gathered->all = gather(step, group, in, "gather_rows");
  // Behind those of all layers that use them, which are registered later.
  step.on_backward([&step, gathered] {
    Matrix gradient{gathered->gradient, gathered->all.rows, gathered->all.columns};
    if (!gathered->group.fused) gradient = sum(step, gathered->group, gradient, "input_gradient");
    step.add_gradient(gathered->own.tensor, gradient.tensor);
  });
  return gathered;
}

Matrix column_parallel(TrainingStep& step, const std::shared_ptr<GatheredInput>& in, std::int64_t features,
                       bool biased) {
  const bool distributed = !in->group.alone();
  const TensorId weight = step.parameter("weight", features * in->own.columns);
  if (distributed) step.graph().tensor(weight).distributed = true;
  std::optional<TensorId> bias;
  if (biased) bias = step.parameter("bias", features);
  if (bias && distributed) step.graph().tensor(*bias).distributed = true;
  const Matrix out{step.activation("output", in->all.rows * features), in->all.rows, features};
  linear_forward(step, in->all, weight, out, bias);
  ++in->layers;
  step.on_backward([&step, in, weight, bias, out] {
    const Matrix gradient{step.take_gradient(out.tensor), out.rows, out.columns};
    if (!in->summed) in->all = gather(step, in->group, in->own, "gather_rows_backward");
    if (bias) bias_gradient(step, *bias, gradient.tensor, out.rows, out.columns);
    const Matrix all_gradient{step.activation("all_input_gradient", in->all.elements()), in->all.rows, in->all.columns};
    const bool sums = --in->layers == 0 && in->group.fused;  // over ranks, as it stores
    std::optional<TensorId> addend;
    if (sums && in->summed) addend = in->gradient;
    linear_data_gradient(step, gradient, weight, all_gradient, addend);
    if (in->summed && !addend) {
      const std::int64_t elements = all_gradient.elements();
      const OpId op =
          step.elementwise("add_gradients", elements, {all_gradient.tensor, in->gradient}, {all_gradient.tensor});
      step.computes(op, [=, from = in->gradient, to = all_gradient.tensor](TensorValues& values) {
        copy(values, plain(from, 1, elements), plain(to, 1, elements), true);
      });
    }
    in->gradient = sums ? sum(step, in->group, all_gradient, "input_gradient").tensor : all_gradient.tensor;
    in->summed = true;
    linear_weight_gradient(step, gradient, in->all, weight);
  });
  return out;
}

Matrix row_parallel(TrainingStep& step, const TensorGroup& group, const Matrix& in, std::int64_t features,
                    bool biased) {
  const bool alone = group.alone();
  const TensorId weight = step.parameter("weight", features * in.columns);
  if (!alone) step.graph().tensor(weight).distributed = true;
  std::optional<TensorId> bias;
  if (biased) bias = step.parameter("bias", features);
  const Matrix all{step.activation("partial_output", in.rows * features), in.rows, features};
  linear_forward(step, in, weight, all, alone ? bias : std::nullopt);
  const Matrix out = sum(step, group, all, "output");
  if (bias && !alone) {  // once, on what is the sum
    const TensorId addend = step.weight(*bias);
    const OpId op = step.elementwise("add_bias", out.elements(), {out.tensor, addend}, {out.tensor});
    step.computes(op, [=](TensorValues& values) { add_row(values, addend, plain(out.tensor, out.rows, out.columns)); });
  }
  step.on_backward([&step, group, in, weight, bias, out] {
    const Matrix own{step.take_gradient(out.tensor), out.rows, out.columns};
    if (bias) bias_gradient(step, *bias, own.tensor, own.rows, own.columns);
    const Matrix gradient = gather(step, group, own, "gather_output_gradient");
    const Matrix input_gradient{step.activation("input_gradient", in.elements()), in.rows, in.columns};
    linear_data_gradient(step, gradient, weight, input_gradient);
    linear_weight_gradient(step, gradient, in, weight);
    step.add_gradient(in.tensor, input_gradient.tensor);
  });
  return out;
}

}  // namespace weft
