#include "gpu_model/resident_blocks.h"

#include <fmt/format.h>

#include "gpu_model/occupancy.h"
#include "gpu_model/phase_lines.h"
#include "sim/error.h"

namespace weft {

namespace {

constexpr std::uint32_t kWarpThreads = 32;

// The same chunk of each stream of the block's share, then the next one, round and round.
class ResidentCursor final : public PhaseCursor {
 public:
  ResidentCursor(const Phase& chunk, std::uint32_t chunk_lines, std::int64_t chunks)
      : phase_(chunk), chunk_lines_(chunk_lines), chunks_(chunks) {}

  bool next(Phase& phase) override {
    phase = phase_;
    const auto offset = static_cast<LineAddress>(chunk_ * chunk_lines_);
    for (std::uint32_t s = 0; s < phase.load_count; ++s) phase.loads[s].first += offset;
    for (std::uint32_t s = 0; s < phase.store_count; ++s) phase.stores[s].first += offset;
    chunk_ = chunk_ + 1 == chunks_ ? 0 : chunk_ + 1;
    return true;
  }
  [[nodiscard]] std::unique_ptr<PhaseCursor> clone() const override { return std::make_unique<ResidentCursor>(*this); }

 private:
  Phase phase_;  // of the first chunk
  std::uint32_t chunk_lines_;
  std::int64_t chunks_;
  std::int64_t chunk_ = 0;
};

class ResidentPrograms final : public BlockPrograms {
 public:
  ResidentPrograms(const ResidentSpec& spec, const GpuSpec& gpu, std::int64_t address, std::uint32_t stop_flag)
      : spec_(spec), chunks_(resident_chunks(spec)), chunk_lines_(chunk_lines(spec)), address_(address) {
    if (spec.work == ResidentWork::spin) {
      chunk_.wait({stop_flag, 1});
      return;
    }
    const std::uint32_t warps = (spec.threads + kWarpThreads - 1) / kWarpThreads;
    LineStream stream;
    stream.lines = chunk_lines_;
    for (std::uint32_t s = 1; s < resident_streams(spec.work); ++s) chunk_.load(stream);
    chunk_.store(stream);
    // A warp loads its part of a chunk, then stores it; no warp waits for others.
    const std::uint32_t lines_of_warp = std::max(1U, chunk_lines_ / warps);
    set_rounds(chunk_, lines_of_warp, warps);
    chunk_.compute = adding_time(fp32_adds_per_cycle(gpu), lines_of_warp, chunk_.load_count);
    chunk_.busiest = Slot::fp32;
    if (spec.rate) {
      const ClockDomain clock(gpu.clock);
      const double seconds =
          static_cast<double>(spec.chunk_bytes) * spec.blocks / static_cast<double>(spec.rate->count());
      chunk_.delay = clock.to_subcycles(nanoseconds(seconds * 1e9));
      chunk_.delay_from_start = true;
    }
  }

  [[nodiscard]] std::uint32_t blocks() const override { return spec_.blocks; }
  [[nodiscard]] std::uint32_t groups(std::uint32_t /*block*/) const override { return 1; }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t /*block*/, std::uint32_t /*group*/) const override {
    return std::max(1U, chunk_lines_ * chunk_.load_count);
  }
  [[nodiscard]] std::unique_ptr<PhaseCursor> start(std::uint32_t block, std::uint32_t /*group*/) const override {
    Phase first = chunk_;
    const std::int64_t share = chunks_ * chunk_lines_;  // of one stream, in lines
    const std::int64_t begin = address_ / kLineBytes + block * share * resident_streams(spec_.work);
    const auto place = [&](std::uint32_t stream) { return static_cast<LineAddress>(begin + stream * share); };
    for (std::uint32_t s = 0; s < first.load_count; ++s) first.loads[s].first = place(s);
    for (std::uint32_t s = 0; s < first.store_count; ++s) first.stores[s].first = place(first.load_count + s);
    return std::make_unique<ResidentCursor>(first, chunk_lines_, std::max<std::int64_t>(1, chunks_));
  }

 private:
  static std::uint32_t chunk_lines(const ResidentSpec& spec) {
    return static_cast<std::uint32_t>((spec.chunk_bytes + kLineBytes - 1) / kLineBytes);
  }

  ResidentSpec spec_;
  std::int64_t chunks_;
  std::uint32_t chunk_lines_;
  std::int64_t address_;
  Phase chunk_;  // without addresses
};

}  // namespace

std::uint32_t resident_streams(ResidentWork work) {
  return work == ResidentWork::spin ? 0 : work == ResidentWork::copy ? 2 : 3;
}

std::int64_t resident_chunks(const ResidentSpec& spec) {
  if (spec.work == ResidentWork::spin) return 0;
  const std::int64_t chunk = (spec.chunk_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  return spec.buffer_bytes / (chunk * spec.blocks * resident_streams(spec.work));
}

ScriptedKernel resident_kernel(const ResidentSpec& spec, const GpuSpec& gpu, std::int64_t address,
                               std::uint32_t stop_flag) {
  if (spec.work != ResidentWork::spin && resident_chunks(spec) == 0) {
    throw InputError(fmt::format("blocks beside the workload: expected a buffer of {} B or more, got {}",
                                 spec.chunk_bytes * spec.blocks * resident_streams(spec.work), spec.buffer_bytes));
  }
  needs_that_fit(gpu, "blocks beside the workload", spec.threads, spec.registers, spec.shared_memory_bytes);
  ScriptedKernel kernel;
  kernel.threads_per_block = spec.threads;
  kernel.registers_per_thread = spec.registers;
  kernel.shared_memory_bytes = spec.shared_memory_bytes;
  kernel.programs = std::make_shared<ResidentPrograms>(spec, gpu, address, stop_flag);
  return kernel;
}

}  // namespace weft
