// Functional mode: the buffers of a collective alone hold numbers, packets carry them, switches and warps add them.
// What the numbers are before, and how good they are afterwards.
#pragma once

#include <memory>
#include <vector>

#include "cli/run/machine.h"
#include "cli/run/result.h"
#include "cli/run/scripts.h"
#include "gpu_model/gpu_values.h"
#include "network/sum_check.h"

namespace weft {

// What a configuration must be for it. Throws InputError; `file` names the configuration.
void check_functional(const RunConfig& config, const std::string& file);

class Functional {
 public:
  // Fills the inputs of all ranks. Throws InputError where the library chose a protocol that values do not travel by.
  Functional(const RunConfig& config, const std::vector<Program>& programs, const Scripts& scripts);

  [[nodiscard]] GpuValues& gpu(std::size_t index) { return *gpus_[index]; }
  [[nodiscard]] CarriedValues carried() { return {format_, &payloads_}; }

  // After the run.
  [[nodiscard]] FunctionalResult result();

 private:
  struct Group {
    const CollectiveDemand* demand = nullptr;
    SumRules rules;
    ScheduleRequest request;
  };
  [[nodiscard]] double input(const Group& group, std::uint32_t rank, std::int64_t element) const;
  void fill(const Group& group);
  [[nodiscard]] std::string output(const Group& group, std::uint32_t rank);
  void check(const Group& group, std::uint32_t rank, SumCheck& check);
  LineValues& line_at(const Group& group, std::uint32_t rank, std::uint64_t buffer, std::int64_t byte);

  FunctionalConfig config_;
  NumberFormat format_;
  std::string order_;  // of additions in a switch
  Payloads payloads_;
  std::vector<std::unique_ptr<GpuValues>> gpus_;
  std::vector<Group> groups_;
};

}  // namespace weft
