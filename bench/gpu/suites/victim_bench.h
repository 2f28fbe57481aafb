// Libraries and memory of all victims.
#pragma once

#include <memory>
#include <optional>

#include "bench/gpu/plan/victims.h"
#include "bench/gpu/suites/session.h"
#include "bench/gpu/suites/victim_run.h"
#include "bench/gpu/victims/arena.h"

namespace weft::gpu_probe {

class VictimBench {
 public:
  explicit VictimBench(Session& session);
  ~VictimBench();

  // The one before is gone. Absent where it cannot run: the file of results tells why ("left_out"). Launched so often;
  // by default until its code is loaded and each of its buffers was used.
  [[nodiscard]] std::unique_ptr<VictimRun> prepare(const Victim& victim, std::optional<unsigned> launches = {});

  // After an error: goes on if the device still works. Else throws, and the file tells that this victim ended a run, so
  // that the next leaves it out.
  void check_device(const Victim& victim, const char* why);

 private:
  Session& session_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<CublasLibrary> cublas_;
  std::unique_ptr<CudnnLibrary> cudnn_;
};

}  // namespace weft::gpu_probe
