#include "workloads/single_sample/temporal_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>

namespace weft {

namespace {

// Rows of all places and samples, and what came back of their gradient.
struct Rows {
  std::int64_t channels = 0;
  std::vector<double> x, gradient;
};
using Value = std::shared_ptr<Rows>;

class Reference {
 public:
  Reference(const TemporalShape& shape, std::int64_t steps, std::int64_t batch, std::uint64_t seed, Numbers& operands)
      : shape_(shape), steps_(steps), batch_(batch), random_(seed), operands_(&operands) {}

  Numbers run() {
    const Value input = value(shape_.channels);
    input->x = draw("input", steps_ * batch_ * shape_.channels, 1);
    Value x = input;
    Value skips;
    for (std::int64_t i = 0; i < shape_.layers; ++i) {
      name_ = fmt::format("{}.", i);
      dilation_ = shape_.dilations[static_cast<std::size_t>(i) % shape_.dilations.size()];
      if (shape_.block == TemporalBlock::plain) x = relu(filter("convolution", x, shape_.channels, shape_.kernel));
      if (shape_.block == TemporalBlock::tcn) {
        const Value first = relu(filter("convolution1", x, shape_.channels, shape_.kernel));
        x = relu(add(relu(filter("convolution2", first, shape_.channels, shape_.kernel)), x));
      }
      if (shape_.block == TemporalBlock::wavenet) {
        const Value acts = gate(filter("dilated", x, 2 * shape_.channels, shape_.kernel));
        const Value skip = filter("skip", acts, shape_.skip_channels, 1);
        skips = skips ? add(skip, skips) : skip;
        if (i + 1 < shape_.layers) x = add(filter("residual", acts, shape_.channels, 1), x);
      }
    }
    const Value output = skips ? skips : x;
    output->gradient = draw("output_gradient", steps_ * batch_ * output->channels, 1);
    for (auto back = backward_.rbegin(); back != backward_.rend(); ++back) (*back)();
    results_["output"] = output->x;
    results_["input_gradient"] = input->gradient;
    return results_;
  }

 private:
  Value value(std::int64_t channels) {
    const auto made = std::make_shared<Rows>();
    made->channels = channels;
    made->x.assign(static_cast<std::size_t>(steps_ * batch_ * channels), 0);
    made->gradient = made->x;
    return made;
  }

  std::vector<double> draw(const std::string& name, std::int64_t count, double scale) {
    std::normal_distribution<double> normal;
    std::vector<double>& drawn = (*operands_)[name];
    for (std::int64_t i = 0; i < count; ++i) {
      drawn.push_back(static_cast<double>(static_cast<float>(scale * normal(random_))));
    }
    return drawn;
  }

  // y[t] = bias + sum over n of W[n] * x[t - before + n * dilation]; a width of 1 is a linear layer.
  Value filter(const std::string& part, const Value& in, std::int64_t channels, std::int64_t width) {
    const std::string name = name_ + part;
    const double scale = 1 / std::sqrt(static_cast<double>(in->channels * width));
    const auto weight = draw(name + ".weight", width * channels * in->channels, scale);
    const auto bias = draw(name + ".bias", channels, scale);
    const std::int64_t reach = (width - 1) * dilation_;
    const std::int64_t before = shape_.causal ? reach : reach / 2;
    const Value out = value(channels);
    // Calls use(out element, weight element, in element).
    const auto each = [=, this, dilation = dilation_](const auto& use) {
      for (std::int64_t t = 0; t < steps_; ++t) {
        for (std::int64_t n = 0; n < width; ++n) {
          const std::int64_t at = t - before + n * dilation;
          if (at < 0 || at >= steps_) continue;
          for (std::int64_t b = 0; b < batch_; ++b) {
            for (std::int64_t o = 0; o < channels; ++o) {
              for (std::int64_t i = 0; i < in->channels; ++i) {
                use(static_cast<std::size_t>((t * batch_ + b) * channels + o),
                    static_cast<std::size_t>((n * channels + o) * in->channels + i),
                    static_cast<std::size_t>((at * batch_ + b) * in->channels + i));
              }
            }
          }
        }
      }
    };
    for (std::size_t i = 0; i < out->x.size(); ++i) out->x[i] = bias[i % bias.size()];
    each([&](std::size_t o, std::size_t w, std::size_t i) { out->x[o] += weight[w] * in->x[i]; });
    backward_.emplace_back([=, this] {
      auto& of_weight = results_[name + ".weight.grad"];
      auto& of_bias = results_[name + ".bias.grad"];
      of_weight.assign(weight.size(), 0);
      of_bias.assign(bias.size(), 0);
      for (std::size_t i = 0; i < out->gradient.size(); ++i) of_bias[i % bias.size()] += out->gradient[i];
      each([&](std::size_t o, std::size_t w, std::size_t i) {
        of_weight[w] += out->gradient[o] * in->x[i];
        in->gradient[i] += out->gradient[o] * weight[w];
      });
    });
    return out;
  }

  Value relu(const Value& in) {
    const Value out = value(in->channels);
    for (std::size_t i = 0; i < in->x.size(); ++i) out->x[i] = std::max(0.0, in->x[i]);
    backward_.emplace_back([=] {
      for (std::size_t i = 0; i < in->x.size(); ++i) in->gradient[i] += in->x[i] > 0 ? out->gradient[i] : 0;
    });
    return out;
  }

  Value add(const Value& a, const Value& b) {
    const Value out = value(a->channels);
    for (std::size_t i = 0; i < out->x.size(); ++i) out->x[i] = a->x[i] + b->x[i];
    backward_.emplace_back([=] {
      for (std::size_t i = 0; i < out->x.size(); ++i) {
        a->gradient[i] += out->gradient[i];
        b->gradient[i] += out->gradient[i];
      }
    });
    return out;
  }

  Value gate(const Value& halves) {
    const std::int64_t channels = halves->channels / 2;
    const Value out = value(channels);
    // Calls use(out element, element of the tanh, element of the sigmoid).
    const auto each = [=](const auto& use) {
      for (std::size_t i = 0; i < out->x.size(); ++i) {
        const std::size_t first = i + i / static_cast<std::size_t>(channels) * static_cast<std::size_t>(channels);
        use(i, first, first + static_cast<std::size_t>(channels));
      }
    };
    const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
    each([&](std::size_t o, std::size_t t, std::size_t s) {
      out->x[o] = std::tanh(halves->x[t]) * sigmoid(halves->x[s]);
    });
    backward_.emplace_back([=] {
      each([&](std::size_t o, std::size_t t, std::size_t s) {
        const double a = std::tanh(halves->x[t]);
        const double b = sigmoid(halves->x[s]);
        halves->gradient[t] += out->gradient[o] * b * (1 - a * a);
        halves->gradient[s] += out->gradient[o] * a * b * (1 - b);
      });
    });
    return out;
  }

  TemporalShape shape_;
  std::int64_t steps_, batch_;
  std::mt19937_64 random_;
  Numbers* operands_;
  Numbers results_;
  std::string name_;  // of the block that is being made
  std::int64_t dilation_ = 1;
  std::vector<std::function<void()>> backward_;
};

}  // namespace

Numbers reference_temporal(const TemporalShape& shape, std::int64_t steps, std::int64_t batch, std::uint64_t seed,
                           Numbers& operands) {
  return Reference(shape, steps, batch, seed, operands).run();
}

ValueErrors check_temporal(const TemporalShape& shape, const TimeAxis& axis, std::uint32_t ranks, std::uint64_t seed,
                           const SeeNode& finished) {
  const ModelSpec spec{.model = "temporal_convolution", .batch = 1, .precision = "fp32", .compute_units = 8};
  TimeAxis shared = axis;
  for (std::uint32_t r = 0; r < ranks; ++r) shared.split.gpus.push_back(r);
  SampleCheck check;
  for (shared.split.rank = 0; shared.split.rank < ranks; ++shared.split.rank) {
    validate(shared, true);
    check.graphs.push_back(make_temporal_convolution(spec, shared, shape, false));
  }
  check.expected = reference_temporal(shape, axis.steps, axis.batch, seed, check.operands);
  check.short_name = [](const std::string& name) { return name.substr(name.find('.') + 1); };
  std::map<std::string, std::size_t> sizes;
  for (const Numbers* numbers : {&check.operands, &check.expected}) {
    for (const auto& [name, values] : *numbers) sizes[name] = values.size();
  }
  check.part_of = [&shared, sizes](std::uint32_t rank, const std::string& name) {
    const bool parameter = name.find('.') != std::string::npos;
    SamplePart part;
    part.rows = parameter ? 1 : shared.steps * shared.batch;
    part.columns = part.own_columns = static_cast<std::int64_t>(sizes.at(name)) / part.rows;
    part.take(parameter ? 0 : rank * shared.rows(), parameter ? 1 : shared.rows());
    return part;
  };
  check.finished = finished;
  return check_values(std::move(check));
}

}  // namespace weft
