// What is known of operations beside each other, so that a stretch with a collective need not be simulated: how long
// each takes by itself, and how much longer in company. Learned from stretches that were (CompanyPace).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/sampled/regime_key.h"
#include "cli/sampled/regime_lab.h"
#include "cli/sampled/regime_memory.h"
#include "gpu_model/clock_domain.h"

namespace weft {

class StretchPacer {
 public:
  // All outlive it. `company`: names with communication.
  StretchPacer(const RunConfig& config, const Program& program, RegimeKeys& company, RegimeMemory& memory,
               RegimeLab& lab);

  // Whether nearly all is known of what runs from `first` on, until its collectives are through.
  [[nodiscard]] bool covers(OpId first);
  // By itself. It stays.
  [[nodiscard]] const Regime& alone(OpId op);
  // Of what is not known, as others that are. Until learn() or covers().
  [[nodiscard]] const CompanyPace* beside(OpId kernel, OpId collective);

  // What a stretch did in detail: from when to when each ran, of an operation that has not ended nothing.
  struct Ran {
    OpId op;
    double begin = 0, end = 0;  // seconds
    KernelLedger ledger;
  };
  void learn(std::span<const Ran> ran);

 private:
  // Of operations from..end - 1.
  [[nodiscard]] bool worth_it(std::uint32_t from, std::uint32_t end);
  void sum_up_work();
  [[nodiscard]] double seconds_alone(OpId op);
  [[nodiscard]] double rate(OpId collective);
  [[nodiscard]] std::string key(OpId kernel, OpId collective);
  const std::optional<CompanyPace>& known(OpId kernel, OpId collective);

  const Program* program_;
  ClockDomain clock_;
  RegimeKeys quiet_;
  RegimeKeys* company_;
  RegimeMemory* memory_;
  RegimeLab* lab_;
  // To simulate collectives by themselves, and with kernels.
  struct Work {
    double by_themselves = 0, together = 0;
  };
  bool possible_ = false;
  std::vector<Work> work_;                        // of all operations before each, and of all; empty: not asked for
  std::map<std::uint32_t, std::string> shapes_;   // by operation
  std::map<std::uint32_t, const Regime*> alone_;  // by operation
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::optional<CompanyPace>> known_;  // by operations
  CompanyPace others_;
};

}  // namespace weft
