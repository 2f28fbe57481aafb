#include "workloads/single_sample/time_convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"
#include "workloads/single_sample/halo_exchange.h"

namespace weft {

namespace {

constexpr std::uint64_t kOperandAlignment = 128;  // Operand::base

struct Layer {
  TimeAxis axis;
  Taps taps;
  TensorId weight;
  HaloedRows in;
  Matrix out;

  [[nodiscard]] ConvolutionValues values(std::vector<TimeRows> rows) const {
    return {std::move(rows), in.own.columns, out.columns, axis.batch, axis.steps, taps};
  }
  [[nodiscard]] TimeRows own(TensorId tensor) const { return {tensor, axis.first_step(), axis.own_steps()}; }
};

// Rows of time, from this rank's first one on.
struct Rows {
  std::int64_t first = 0, count = 0;
};

// Output rows of one kernel: GEMM rows are places times samples.
class RowKernel {
 public:
  RowKernel(TrainingStep& step, const Layer& layer, const Rows& rows, std::int64_t columns, std::int64_t depth)
      : step_(&step), layer_(&layer), rows_(rows), shape_{rows.count * layer.axis.batch, columns, depth} {
    const Precision& precision = step.precision();
    plan_ = without_split(plan_gemm(shape_, GemmKind::forward, precision.gemm_pipe, precision.element_bytes,
                                    step.compute_units(), step.block_shared_memory()),
                          1);
  }

  // What `taps` reach of `in`, once a tile: its own rows and, as far as a filter reaches beyond a tile, further windows
  // of as many rows, rounded to whole ones, at most one a tap.
  void reads(const HaloedRows& in, const Taps& taps) {
    const std::int64_t tile = std::min<std::int64_t>(plan_.tile_m, shape_.m);
    const std::int64_t reach = taps.reach() * layer_->axis.batch;
    std::int64_t windows = std::clamp<std::int64_t>(1 + (reach + tile / 2) / tile, 1, taps.count);
    const bool gaps = windows > 1 && taps.reach() > rows_.count * (windows - 1);
    if (gaps) windows = taps.count;
    const std::int64_t start = layer_->axis.first_step() + rows_.first - taps.before;
    if (windows == 1) read(in, start, rows_.count + taps.reach());
    for (std::int64_t i = 0; windows > 1 && i < windows; ++i) {
      read(in, start + i * taps.reach() / (windows - 1), rows_.count);
    }
  }

  OpId emit(const std::string& name, const Matrix& out) {
    const TensorId copy = step_->weight(layer_->weight);
    reads_.push_back(column_panels(plan_, copy, step_->bytes(copy)));
    const Streamed to = places(out, {rows_.first, rows_.count});
    const TensorUse write = sliced(out.tensor, to.offset, to.bytes, plan_.shape.blocks());
    return step_->emit(fmt::format("{}_{}", name, plan_.tile_name()),
                       gemm_kernel(plan_, shape_, step_->precision().gemm_pipe, reads_, {write}));
  }

 private:
  [[nodiscard]] Streamed places(const Matrix& matrix, const Rows& rows) const {
    const auto a_step =
        static_cast<std::uint64_t>(layer_->axis.batch * matrix.columns * step_->precision().element_bytes);
    return {matrix.tensor, static_cast<std::uint64_t>(rows.count) * a_step,
            static_cast<std::uint64_t>(rows.first) * a_step / kOperandAlignment * kOperandAlignment};
  }

  void read(const HaloedRows& in, std::int64_t first, std::int64_t count) {
    for (const TimeRows& part : in.parts) {
      const std::int64_t begin = std::max(first, part.first);
      const std::int64_t end = std::min(first + count, part.first + part.count);
      if (begin >= end) continue;
      const Streamed rows = places({part.tensor, 0, in.own.columns}, {begin - part.first, end - begin});
      reads_.push_back(sliced(part.tensor, rows.offset, rows.bytes, plan_.rows, plan_.columns, plan_.rows));
    }
  }

  TrainingStep* step_;
  const Layer* layer_;
  Rows rows_;
  GemmShape shape_;
  GemmPlan plan_;
  std::vector<TensorUse> reads_;
};

void forward_rows(TrainingStep& step, const Layer& layer, const char* name, const Rows& rows) {
  if (rows.count == 0) return;
  RowKernel kernel(step, layer, rows, layer.out.columns, layer.in.own.columns * layer.taps.count);
  kernel.reads(layer.in, layer.taps);
  const OpId op = kernel.emit(name, layer.out);
  step.computes(op, [form = layer.values(layer.in.parts), weight = layer.weight, out = layer.own(layer.out.tensor),
                     rows](TensorValues& values) { convolve(values, form, weight, out, rows.first, rows.count); });
}

void forward(TrainingStep& step, const Layer& layer) {
  const SampleSplit& split = layer.axis.split;
  const std::int64_t all = layer.axis.own_steps();
  const std::int64_t first = std::min(layer.taps.before, all);
  const std::int64_t last = std::max(first, all - layer.taps.after());
  if (split.size() == 1 || !split.overlap || !split.interior_first || first == last) {
    forward_rows(step, layer, "convolution_forward", {0, all});
    return;
  }
  forward_rows(step, layer, "convolution_interior", {first, last - first});
  forward_rows(step, layer, "convolution_border", {0, first});
  forward_rows(step, layer, "convolution_border", {last, all - last});
}

void data_gradient(TrainingStep& step, const Layer& layer, const HaloedRows& out_gradient) {
  const Matrix gradient{step.activation("input_gradient", layer.in.own.elements()), layer.in.own.rows,
                        layer.in.own.columns};
  Taps back = layer.taps;
  back.before = layer.taps.after();
  RowKernel kernel(step, layer, {0, layer.axis.own_steps()}, gradient.columns, layer.out.columns * back.count);
  kernel.reads(out_gradient, back);
  const OpId op = kernel.emit("convolution_data_gradient", gradient);
  step.computes(op, [form = layer.values(out_gradient.parts), weight = layer.weight, to = layer.own(gradient.tensor)](
                        TensorValues& values) { convolve_backward(values, form, weight, to); });
  step.add_gradient(layer.in.own.tensor, gradient.tensor);
}

void weight_gradient(TrainingStep& step, const Layer& layer, TensorId out_gradient) {
  const std::int64_t in_channels = layer.in.own.columns;
  const GemmShape shape{layer.out.columns, in_channels * layer.taps.count, layer.axis.rows()};
  const Precision& precision = step.precision();
  const GemmPlan plan = plan_gemm(shape, GemmKind::weight_gradient, precision.gemm_pipe, precision.element_bytes,
                                  step.compute_units(), step.block_shared_memory());
  // Columns run over the taps and, within a tap, over the channels: tiles of different taps read nearly the same rows.
  const auto channel_tiles = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>((in_channels + plan.tile_n - 1) / plan.tile_n, 1, plan.columns));
  std::vector<TensorUse> reads{row_panels(plan, out_gradient, step.bytes(out_gradient))};
  for (const TimeRows& part : layer.in.parts) {
    reads.push_back(column_panels(plan, part.tensor, step.bytes(part.tensor), channel_tiles));
  }
  const TensorId target = step.gradient_target(layer.weight);
  GemmValues values;
  values.into = [form = layer.values(layer.in.parts), rows = layer.own(out_gradient)](
                    TensorValues& numbers, TensorId to) { convolution_weight_gradient(numbers, form, rows, to); };
  const OpId writer = step.gemm("convolution_weight_gradient", plan, shape, std::move(reads), target, values);
  step.gradient_written(layer.weight, target, writer);
}

void add_bias(TrainingStep& step, const Layer& layer) {
  const TensorId bias = step.parameter("bias", layer.out.columns);
  const TensorId addend = step.weight(bias);
  const Matrix& out = layer.out;
  const OpId op = step.elementwise("add_bias", out.elements(), {out.tensor, addend}, {out.tensor});
  step.computes(op, [=](TensorValues& values) { add_row(values, addend, plain(out.tensor, out.rows, out.columns)); });
  step.on_backward([&step, bias, out] {
    const TensorId gradient = step.take_gradient(out.tensor);
    bias_gradient(step, bias, gradient, out.rows, out.columns);
    step.add_gradient(out.tensor, gradient);
  });
}

}  // namespace

void validate(const TimeAxis& axis, bool allow_idle) {
  const SampleSplit& split = axis.split;
  if (split.scheme != SampleScheme::whole && split.scheme != SampleScheme::spatial) {
    throw InputError("", "/scheme/name",
                     R"(expected "data_parallel" or "spatial" for convolutions along time, got one of attention)");
  }
  const std::int64_t gpus = split.size();
  if (!allow_idle && gpus > 1 && (gpus - 1) * axis.own_steps() >= axis.steps) {
    throw InputError("", "/workload/sequence",
                     fmt::format("expected enough steps that each of {} GPUs has some, got {} ({} rows each)", gpus,
                                 axis.steps, axis.own_steps()));
  }
}

Matrix time_convolution(TrainingStep& step, const TimeAxis& axis, const Matrix& in, const TimeConvolutionSpec& spec) {
  WEFT_CHECK(spec.kernel > 1 && spec.dilation > 0 && in.rows == axis.rows(), step.layer());
  Taps taps{spec.kernel, spec.dilation, 0};
  taps.before = spec.causal ? taps.reach() : taps.reach() / 2;
  const TensorId weight = step.parameter("weight", spec.kernel * spec.channels * in.columns);
  const Matrix out{step.activation("output", in.rows * spec.channels), in.rows, spec.channels};
  const Layer layer{axis, taps, weight, exchange_halos(step, axis, in, taps.before, taps.after()), out};
  forward(step, layer);
  step.on_backward([&step, layer] {
    const Matrix gradient{step.take_gradient(layer.out.tensor), layer.out.rows, layer.out.columns};
    const bool passed_on = step.needs_gradient(layer.in.own.tensor);
    const HaloedRows haloed =
        passed_on ? exchange_halos(step, layer.axis, gradient, layer.taps.after(), layer.taps.before) : HaloedRows{};
    weight_gradient(step, layer, gradient.tensor);
    if (passed_on) data_gradient(step, layer, haloed);
  });
  if (spec.bias) add_bias(step, layer);
  return out;
}

}  // namespace weft
