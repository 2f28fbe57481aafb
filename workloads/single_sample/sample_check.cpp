#include "workloads/single_sample/sample_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/error.h"

namespace weft {

namespace {

class CarriedOut {
 public:
  explicit CarriedOut(SampleCheck check) : check_(std::move(check)), seen_(check_.graphs.size()) {
    for (SampleGraph& graph : check_.graphs) values_.graphs.push_back(std::move(graph.graph));
  }

  ValueErrors run() {
    for (const auto& [name, numbers] : check_.expected) got_[name].assign(numbers.size(), 0);
    carry_out(
        values_,
        [&](std::uint32_t rank, const Tensor& tensor, float* to, std::int64_t count) { fill(rank, tensor, to, count); },
        [&](std::uint32_t rank, const Node& node, TensorValues& numbers) {
          if (check_.finished) check_.finished(rank, node, numbers);
          see(rank, node, numbers);
        });
    for (std::uint32_t rank = 0; rank < seen_.size(); ++rank) {
      for (const auto& [name, numbers] : seen_[rank]) put_together(rank, name, numbers);
    }
    // The gradient of the keys' bias is zero: biases are measured by the largest of all of them.
    const auto kind = [](const std::string& name) { return name.ends_with(".bias.grad") ? "bias" : name; };
    std::map<std::string, double> largest;
    for (const auto& [name, numbers] : check_.expected) {
      double& most = largest[kind(name)];
      for (const double number : numbers) most = std::max(most, std::abs(number));
    }
    ValueErrors errors;
    for (const auto& [name, numbers] : check_.expected) {
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
  void fill(std::uint32_t rank, const Tensor& tensor, float* to, std::int64_t count) const {
    const std::string name = check_.short_name(tensor.name);
    const auto found = check_.operands.find(name);
    if (found == check_.operands.end()) {
      throw InternalError(fmt::format("'{}' is read before it is written", tensor.name));
    }
    const SamplePart part = check_.part_of(rank, name);
    WEFT_CHECK(count == static_cast<std::int64_t>(part.taken.size()) * part.own_columns, tensor.name);
    for (const std::int64_t row : part.taken) {
      for (std::int64_t c = 0; c < part.own_columns; ++c) {
        const auto at = static_cast<std::size_t>(row * part.columns + part.first_column + c);
        *to++ = row < part.rows ? static_cast<float>(found->second[at]) : 0.0F;
      }
    }
  }

  void see(std::uint32_t rank, const Node& node, TensorValues& numbers) {
    const SampleGraph& tensors = check_.graphs[rank];
    const auto look = [&](TensorId id) {
      const Tensor& tensor = values_.graphs[rank].tensors[id.value];
      std::string name;
      if (id == tensors.output) name = "output";
      if (id == tensors.input_gradient) name = "input_gradient";
      if (tensor.gradient_of) name = check_.short_name(tensor.name);
      if (name.empty()) return;
      const float* data = numbers.data(id);
      seen_[rank][name].assign(data, data + numbers.elements(id));
    };
    for (const TensorUse& use : node.kernel.writes) look(use.tensor);
    if (node.collective.target) look(node.collective.target->tensor);
  }

  void put_together(std::uint32_t rank, const std::string& name, const std::vector<float>& numbers) {
    const SamplePart part = check_.part_of(rank, name);
    if (part.repeated) return;
    std::size_t next = 0;
    for (const std::int64_t row : part.taken) {
      for (std::int64_t c = 0; c < part.own_columns; ++c, ++next) {
        if (row >= part.rows) continue;
        got_[name][static_cast<std::size_t>(row * part.columns + part.first_column + c)] +=
            static_cast<double>(numbers.at(next));
      }
    }
  }

  SampleCheck check_;  // its graphs without their graphs, which are in values_
  Numbers got_;
  RankValues values_;
  std::vector<std::map<std::string, std::vector<float>>> seen_;  // by rank
};

}  // namespace

void SamplePart::take(std::int64_t first, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) taken.push_back(first + i);
}

ValueErrors check_values(SampleCheck check) { return CarriedOut(std::move(check)).run(); }

}  // namespace weft
