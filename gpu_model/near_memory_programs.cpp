#include "gpu_model/engine_phases.h"

namespace weft {

namespace {

// Each channel moves its share of every chunk round the ring: N - 1 times as an update that the next rank's memory adds
// to its own chunk, then N - 1 times as a write of the sum.
class NearMemoryRing {
 public:
  explicit NearMemoryRing(const EnginePlace& place)
      : place_(place),
        ranks_(static_cast<std::uint32_t>(place.group.size())),
        channels_(place.gpu->engines->near_memory.channels),
        start_(ClockDomain(place.gpu->clock).to_subcycles(place.gpu->engines->copy_engine.start)),
        stages_(std::max(1U, lines_in_flight() / kEngineRound)) {}

  [[nodiscard]] std::uint32_t channels() const { return channels_; }
  [[nodiscard]] std::uint32_t lines_in_flight() const {
    const CopyEngineSpec& engine = place_.gpu->engines->copy_engine;
    return std::max(kEngineRound, engine.max_outstanding_lines * engine.engines / channels_);
  }

  bool phase(std::uint32_t channel, std::uint32_t index, Phase& phase) const {
    const std::uint32_t ready = place_.first_flag + 2 * channel;
    const std::uint32_t come = ready + 1;
    if (index == 0) {  // what the rank has may be added to
      phase.post(remote_post(ready, place_.group[(place_.rank + ranks_ - 1) % ranks_]));
      return true;
    }
    const std::uint32_t visit = index - 1;
    if (visit > visits()) return false;
    if (visit == visits()) {
      phase.wait({come, received_before(visit + 1, channel)});
      return true;
    }
    const GpuId next = place_.group[(place_.rank + 1) % ranks_];
    if (visit == 0) phase.wait({ready, 1});
    phase.delay = start_;
    const LineRange chunk = chunk_at(visit, channel);
    if (chunk.count == 0) return true;
    LineStream load = stream_of(chunk);
    if (visit > 0) {
      load.arrival_flag = come;
      load.arrived_before = received_before(visit, channel);
    }
    LineStream store = stream_of(chunk, Target::remote, next);
    store.adds = visit + 1 < ranks_;
    store.arrival_flag = come;
    phase.load(load);
    phase.store(store);
    set_rounds(phase, kEngineRound, stages_);
    return true;
  }

 private:
  [[nodiscard]] std::uint32_t visits() const { return 2 * ranks_ - 2; }
  [[nodiscard]] LineRange chunk_at(std::uint32_t visit, std::uint32_t channel) const {
    const std::uint32_t chunk = (place_.rank + 2 * ranks_ - visit) % ranks_;
    return lines_of(place_).part(chunk, ranks_).part(channel, channels_);
  }
  // Lines of the chunks that came for the visits 1 ... visit - 1.
  [[nodiscard]] std::uint32_t received_before(std::uint32_t visit, std::uint32_t channel) const {
    std::int64_t count = 0;
    for (std::uint32_t v = 1; v < visit; ++v) count += chunk_at(v, channel).count;
    return static_cast<std::uint32_t>(count);
  }

  EnginePlace place_;
  std::uint32_t ranks_;
  std::uint32_t channels_;
  SubCycle start_;
  std::uint32_t stages_;
};

}  // namespace

std::uint32_t near_memory_flags(const EnginePlace& place) { return 2 * place.gpu->engines->near_memory.channels; }

ScriptedKernel near_memory_all_reduce(const EnginePlace& place) {
  const NearMemoryRing ring(place);
  ScriptedKernel kernel;
  kernel.executor = Executor::copy_engine;
  kernel.programs = std::make_shared<PhaseFunction>(
      ring.channels(), ring.lines_in_flight(),
      [ring](std::uint32_t channel, std::uint32_t index, Phase& phase) { return ring.phase(channel, index, phase); });
  return kernel;
}

}  // namespace weft
