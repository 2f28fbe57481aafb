#include "switch_reduce/accumulation.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

NumberFormat accumulators(AccumulationType type, NumberFormat operand) {
  const std::uint32_t bytes = bytes_of(operand);
  if (type == AccumulationType::fp32 && bytes < 4) return NumberFormat::fp32;
  if (type == AccumulationType::fp16 && bytes < 2) return NumberFormat::fp16;
  return operand;
}

std::uint32_t kept_bytes(const AccumulationSpec& spec, std::uint32_t contributions) {
  return spec.order == AccumulationOrder::fixed ? (contributions - 1) * kLineBytes : 0;
}

LineSums::LineSums(const AccumulationSpec& spec, NumberFormat operand, Payloads& payloads)
    : spec_(spec), operand_(operand), accumulator_(accumulators(spec.type, operand)), payloads_(&payloads) {}

void LineSums::add(std::uint32_t entry, const Packet& contribution) {
  if (entry >= sums_.size()) sums_.resize(entry + std::size_t{1});
  Sum& sum = sums_[entry];
  const LineValues values = payloads_->take(contribution, contribution.line);
  if (spec_.order == AccumulationOrder::arrival) {
    accumulate(sum, values);
  } else {
    sum.kept.push_back({contribution.destination, values});
  }
}

// The first contribution is taken over, not added to zero: the sum of negative zeros is one.
void LineSums::accumulate(Sum& sum, const LineValues& values) const {
  const std::uint32_t count = elements_per_line(operand_);
  sum.accumulators.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const double value = element_of(values, operand_, i);
    double& at = sum.accumulators[i];
    at = sum.begun ? rounded(accumulator_, at + value) : value;
  }
  sum.begun = true;
}

void LineSums::send(std::uint32_t entry, const Packet& packet) {
  WEFT_CHECK(entry < sums_.size(), "the sum of an entry without contributions");
  Sum& sum = sums_[entry];
  std::sort(sum.kept.begin(), sum.kept.end(), [](const Kept& a, const Kept& b) { return a.gpu < b.gpu; });
  for (const Kept& kept : sum.kept) accumulate(sum, kept.values);
  WEFT_CHECK(sum.begun, "the sum of an entry without contributions");
  LineValues line{};
  for (std::uint32_t i = 0; i < elements_per_line(operand_); ++i) {
    set_element(line, operand_, i, encode(operand_, sum.accumulators[i], spec_.overflow));
  }
  sum.begun = false;
  sum.kept.clear();
  payloads_->put(packet, packet.line, &line);
}

}  // namespace weft
