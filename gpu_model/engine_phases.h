// Helpers of those who write phases of DMA engines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "gpu_model/engine_programs.h"
#include "gpu_model/phase_lines.h"

namespace weft {

struct LineRange {
  std::int64_t first = 0;
  std::int64_t count = 0;

  // One of `parts` parts of about equal size.
  [[nodiscard]] LineRange part(std::int64_t index, std::int64_t parts) const {
    const std::int64_t begin = count * index / parts;
    return {first + begin, count * (index + 1) / parts - begin};
  }
};

inline LineRange lines_of(const EnginePlace& place) {
  const LineStream whole = lines(place.address, place.bytes);
  return {whole.first, whole.lines};
}

inline LineStream stream_of(const LineRange& range, Target target = Target::local, GpuId gpu = GpuId{0}) {
  LineStream stream;
  stream.first = static_cast<LineAddress>(range.first);
  stream.lines = static_cast<std::uint32_t>(range.count);
  stream.target = target;
  stream.gpu = static_cast<std::uint16_t>(gpu.value);
  return stream;
}

inline FlagPost remote_post(std::uint32_t flag, GpuId gpu) {
  return {flag, Target::remote, static_cast<std::uint16_t>(gpu.value)};
}

// Lines that a DMA engine moves as one round; only the grain at which it looks for what has arrived.
inline constexpr std::uint32_t kEngineRound = 16;

// Blocks of one group whose phases come from a function of the block and the phase's number: false after the last.
class PhaseFunction final : public BlockPrograms {
 public:
  using Function = std::function<bool(std::uint32_t block, std::uint32_t index, Phase& phase)>;
  PhaseFunction(std::uint32_t blocks, std::uint32_t lines_in_flight, Function function)
      : blocks_(blocks), lines_in_flight_(lines_in_flight), function_(std::move(function)) {}

  [[nodiscard]] std::uint32_t blocks() const override { return blocks_; }
  [[nodiscard]] std::uint32_t groups(std::uint32_t /*block*/) const override { return 1; }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t /*block*/, std::uint32_t /*group*/) const override {
    return lines_in_flight_;
  }
  [[nodiscard]] std::unique_ptr<PhaseCursor> start(std::uint32_t block, std::uint32_t /*group*/) const override {
    return std::make_unique<Cursor>(*this, block);
  }

 private:
  class Cursor final : public PhaseCursor {
   public:
    Cursor(const PhaseFunction& programs, std::uint32_t block) : programs_(&programs), block_(block) {}
    bool next(Phase& phase) override {
      Phase next;
      if (!programs_->function_(block_, index_, next)) return false;
      ++index_;
      phase = next;
      return true;
    }
    [[nodiscard]] std::unique_ptr<PhaseCursor> clone() const override { return std::make_unique<Cursor>(*this); }

   private:
    const PhaseFunction* programs_;
    std::uint32_t block_;
    std::uint32_t index_ = 0;
  };

  std::uint32_t blocks_;
  std::uint32_t lines_in_flight_;
  Function function_;
};

}  // namespace weft
