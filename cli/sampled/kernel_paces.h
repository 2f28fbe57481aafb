// Kernels of a machine that only take their time: what each takes by itself, longer while collectives have blocks on
// units beside it. So only collectives are simulated, which say when that is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "cli/run/machine.h"
#include "cli/sampled/pace_beside.h"
#include "gpu_model/kernel_signature.h"

namespace weft {

class KernelPaces {
 public:
  struct Known {
    std::function<SubCycle(OpId)> alone;
    std::function<const PaceBeside&(OpId kernel, OpId collective)> beside;
  };
  // Both outlive it.
  KernelPaces(Machine& machine, const Program& program, Known known)
      : machine_(&machine), program_(&program), known_(std::move(known)), going_(machine.gpus()) {}

  // Between two windows: who has begun or lost company ends at another time.
  void look(Time now);
  // What held it up, as others that ask for the same.
  [[nodiscard]] KernelLedger ledger(OpId kernel) const;

 private:
  struct Going {
    OpId op;
    SubCycle since = 0;
    double left = 0;  // of its time by itself, at `since`
    double pace = 0;  // from then on; 0: not known yet
  };
  void look(std::uint32_t gpu, Time now);
  [[nodiscard]] double pace(OpId kernel, const std::vector<OpId>& company);

  Machine* machine_;
  const Program* program_;
  Known known_;
  std::vector<std::vector<Going>> going_;  // by GPU
  std::map<KernelSignature, KernelLedger> ledgers_;
};

}  // namespace weft
