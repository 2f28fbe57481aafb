// How a table sums numbers, and how large its entries are for it. PTX's multimem.ld_reduce accumulates in the operands'
// type, in FP32 (.acc::f32) for FP16 and BF16, in FP16 (.acc::f16) for FP8 (PTX ISA, multimem); NCCL asks for the wider
// one of all three (NCCL src/device/reduce_kernel.h). The order in which NVSwitch sums is not published.
#pragma once

#include <cstdint>
#include <vector>

#include "network/payloads.h"

namespace weft {

// The type of an entry's accumulators: FP32 for all narrower ones; FP16 for FP8, else the operands'; the operands'.
// Nothing is accumulated in less than its own type, and integers in theirs.
enum class AccumulationType : std::uint8_t { fp32, fp16, operand };
// Contributions are added as they come; or kept until all are there, and then added by the number of the GPU: the same
// sum whenever they come, for a place for each of them in the entry.
enum class AccumulationOrder : std::uint8_t { arrival, fixed };

struct AccumulationSpec {
  AccumulationType type = AccumulationType::fp32;
  AccumulationOrder order = AccumulationOrder::arrival;
  Overflow overflow = Overflow::ieee;  // of the sum that leaves
};

// What keeping contributions takes of an entry, beyond the place of the sum: one each but the last, which needs none.
[[nodiscard]] std::uint32_t kept_bytes(const AccumulationSpec& spec, std::uint32_t contributions);
[[nodiscard]] NumberFormat accumulators(AccumulationType type, NumberFormat operand);

// The sums of a table's entries, where values travel.
class LineSums {
 public:
  LineSums(const AccumulationSpec& spec, NumberFormat operand, Payloads& payloads);

  // A contribution to the sum of an entry has come.
  void add(std::uint32_t entry, const Packet& contribution);
  // The sum leaves, rounded to the operands' type; the entry is empty again.
  void send(std::uint32_t entry, const Packet& packet);

 private:
  struct Kept {
    std::uint32_t gpu = 0;
    LineValues values{};
  };
  struct Sum {
    bool begun = false;
    std::vector<double> accumulators;
    std::vector<Kept> kept;  // fixed order
  };
  void accumulate(Sum& sum, const LineValues& values) const;

  AccumulationSpec spec_;
  NumberFormat operand_;
  NumberFormat accumulator_;
  Payloads* payloads_;
  std::vector<Sum> sums_;  // by entry
};

}  // namespace weft
