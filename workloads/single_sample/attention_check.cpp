// The programs of all ranks carried out on numbers, beside the reference.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/error.h"
#include "workloads/single_sample/attention_reference.h"
#include "workloads/tensor_values.h"

namespace weft {

namespace {

// A rank's part of a matrix that all have: some rows, or some columns of each row.
struct Part {
  std::int64_t rows = 0, columns = 0;  // of the whole
  std::vector<std::int64_t> taken;     // rows, by row of the part; beyond the whole: zeros
  std::int64_t first_column = 0, own_columns = 0;
};

class AttentionCheck {
 public:
  AttentionCheck(const AttentionGeometry& geometry, const SampleSplit& split, std::uint32_t ranks, std::uint64_t seed)
      : geometry_(geometry), split_(split), operands_(random_operands(geometry, seed)) {
    for (std::uint32_t r = 0; r < ranks; ++r) split_.gpus.push_back(r);
    const ModelSpec spec{.model = "attention", .batch = 1, .precision = "fp32", .compute_units = 8};
    for (std::uint32_t r = 0; r < ranks; ++r) {
      split_.rank = r;
      validate(split_, geometry, true);
      AttentionGraph made = make_attention(spec, {geometry, 1}, split_);
      values_.graphs.push_back(std::move(made.graph));
      tensors_.push_back({{}, made.input, made.output, made.output_gradient, made.input_gradient});
    }
  }

  ValueErrors run() {
    const Numbers expected = reference_attention(geometry_, operands_);
    for (const auto& [name, numbers] : expected) got_[name].assign(numbers.size(), 0);
    carry_out(
        values_,
        [&](std::uint32_t rank, const Tensor& tensor, float* to, std::int64_t count) { fill(rank, tensor, to, count); },
        [&](std::uint32_t rank, const Node& node, TensorValues& numbers) { see(rank, node, numbers); });
    for (std::uint32_t rank = 0; rank < split_.size(); ++rank) {
      for (const auto& [name, numbers] : seen_[rank]) put_together(rank, name, numbers);
    }
    // The gradient of the keys' bias is zero: biases are measured by the largest of all of them.
    const auto kind = [](const std::string& name) { return name.ends_with(".bias.grad") ? "bias" : name; };
    std::map<std::string, double> largest;
    for (const auto& [name, numbers] : expected) {
      double& most = largest[kind(name)];
      for (const double number : numbers) most = std::max(most, std::abs(number));
    }
    ValueErrors errors;
    for (const auto& [name, numbers] : expected) {
      double error = 0;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const double difference = std::abs(numbers[i] - got_[name][i]);
        error = std::isfinite(difference) ? std::max(error, difference) : INFINITY;
      }
      errors[name] = error / largest[kind(name)];
    }
    return errors;
  }

 private:
  [[nodiscard]] std::int64_t hidden() const { return geometry_.heads * geometry_.head_size; }

  // Where a rank's numbers of this name lie in those of all.
  [[nodiscard]] Part part_of(std::uint32_t rank, const std::string& name) const {
    Part part;
    const auto all_rows = [&part](std::int64_t rows, std::int64_t first, std::int64_t count) {
      part.rows = rows;
      for (std::int64_t i = 0; i < count; ++i) part.taken.push_back(first + i);
    };
    part.columns = part.own_columns = hidden();
    if (name.find('.') == std::string::npos) {
      part.rows = geometry_.tokens * geometry_.batch;
      for (const std::int64_t place : listed(positions_of(split_.split, geometry_.tokens, split_.size(), rank))) {
        for (std::int64_t b = 0; b < geometry_.batch; ++b) part.taken.push_back(place * geometry_.batch + b);
      }
      return part;
    }
    const bool keys = name.starts_with("key") || name.starts_with("value");
    const std::int64_t features = keys ? geometry_.key_heads * geometry_.head_size : hidden();
    const bool distributed = split_.scheme == SampleScheme::megatron;
    const std::int64_t share = distributed ? split_.size() : 1;
    const bool bias = name.find(".bias") != std::string::npos;
    if (bias) part.columns = part.own_columns = 1;
    if (!name.starts_with("output")) {
      all_rows(features, distributed ? rank * features / share : 0, features / share);
    } else {
      all_rows(features, 0, features);
      if (!bias) {
        part.own_columns = hidden() / share;
        part.first_column = distributed ? rank * part.own_columns : 0;
      }
    }
    return part;
  }

  // The layer's own name for a tensor: without the layers around it.
  [[nodiscard]] static std::string short_name(const std::string& name) {
    const std::string layer = "attention.0.";
    if (name.starts_with(layer)) return name.substr(layer.size());
    return name.substr(name.find('.') + 1);
  }

  void fill(std::uint32_t rank, const Tensor& tensor, float* to, std::int64_t count) const {
    const std::string name = short_name(tensor.name);
    const auto found = operands_.find(name);
    if (found == operands_.end()) throw InternalError(fmt::format("'{}' is read before it is written", tensor.name));
    const Part part = part_of(rank, name);
    WEFT_CHECK(count == static_cast<std::int64_t>(part.taken.size()) * part.own_columns, tensor.name);
    for (const std::int64_t row : part.taken) {
      for (std::int64_t c = 0; c < part.own_columns; ++c) {
        const auto at = static_cast<std::size_t>(row * part.columns + part.first_column + c);
        *to++ = row < part.rows ? static_cast<float>(found->second[at]) : 0.0F;
      }
    }
  }

  void see(std::uint32_t rank, const Node& node, TensorValues& numbers) {
    const AttentionGraph& tensors = tensors_[rank];
    const auto look = [&](TensorId id) {
      const Tensor& tensor = values_.graphs[rank].tensors[id.value];
      std::string name;
      if (id == tensors.output) name = "output";
      if (id == tensors.input_gradient) name = "input_gradient";
      if (tensor.gradient_of) name = short_name(tensor.name);
      if (name.empty()) return;
      const float* data = numbers.data(id);
      seen_[rank][name].assign(data, data + numbers.elements(id));
    };
    for (const TensorUse& use : node.kernel.writes) look(use.tensor);
    if (node.collective.target) look(node.collective.target->tensor);
  }

  // Rows of the sequence lie in their places; gradients of what all have are summed up, as data parallelism does.
  void put_together(std::uint32_t rank, const std::string& name, const std::vector<float>& numbers) {
    const Part part = part_of(rank, name);
    std::size_t next = 0;
    for (const std::int64_t row : part.taken) {
      for (std::int64_t c = 0; c < part.own_columns; ++c, ++next) {
        if (row >= part.rows) continue;
        got_[name][static_cast<std::size_t>(row * part.columns + part.first_column + c)] +=
            static_cast<double>(numbers.at(next));
      }
    }
  }

  AttentionGeometry geometry_;
  SampleSplit split_;
  Numbers operands_, got_;
  RankValues values_;
  std::vector<AttentionGraph> tensors_;  // without their graphs
  std::map<std::uint32_t, std::map<std::string, std::vector<float>>> seen_;
};

}  // namespace

ValueErrors check_attention(const AttentionGeometry& geometry, const SampleSplit& split, std::uint32_t ranks,
                            std::uint64_t seed) {
  return AttentionCheck(geometry, split, ranks, seed).run();
}

}  // namespace weft
