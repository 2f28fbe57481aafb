// Names for regimes: equal where everything is equal that decides what happens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/config/system_config.h"
#include "gpu_model/frontend.h"

namespace weft {

class RegimeKeys {
 public:
  // `communicates`: collectives move their data; else they end at once. `program` and `config` outlive it.
  RegimeKeys(const RunConfig& config, const Program& program, bool communicates);

  // Of one kernel by itself.
  [[nodiscard]] std::string of_kernel(OpId op);
  // Of a collective by itself whose message is so long that it does not matter what the L2 holds.
  // `apart`: how far GPUs are apart before (Regime).
  [[nodiscard]] std::string of_long_collective(OpId op, const std::vector<SubCycle>& apart = {});

  // Of a kernel beside collectives that move their data in such a way, wherever both are.
  [[nodiscard]] std::string of_pace(OpId kernel, const std::string& collective) const;

  // Of the operations from state.first on, one after the other: each call takes in one more. `arrival`: when it
  // arrives if that is known, or -1. It ends with what follows, which may begin on one GPU before another one is quiet.
  // `open_from`: which of the operations from state.first on, from 1 on, is the first that has not ended; 0: all have.
  class Stretch {
   public:
    Stretch(RegimeKeys& keys, const HostState& state, const std::vector<SubCycle>& apart = {});
    void add(OpId op, SubCycle arrival);
    [[nodiscard]] const std::string& name() const { return hash_; }  // of what was added
    [[nodiscard]] std::string before(OpId next, SubCycle arrival, std::uint32_t open_from = 0) const;

   private:
    RegimeKeys* keys_;
    OpId first_;
    std::string hash_;
  };

 private:
  // The operation and those before it as far as the L2 remembers, with addresses only as they relate to each other.
  const std::string& context_of(OpId op);

  const Program* program_;
  bool communicates_;
  std::int64_t memory_of_cache_;       // bytes
  std::string alone_, company_;        // hashes of the hardware
  std::vector<std::string> contexts_;  // by op, empty: not asked for
};

}  // namespace weft
