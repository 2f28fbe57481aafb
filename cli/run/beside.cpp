#include "cli/run/beside.h"

#include <fmt/format.h>

#include "cli/run/memory_check.h"
#include "gpu_model/occupancy.h"
#include "sim/error.h"

namespace weft {

namespace {

// Bounds only keep out what is a slip of the unit or cannot be simulated; they are no claim about hardware.
constexpr double kMaxMiB = 1 << 24;

const EnumNames<ResidentWork>& work_table() {
  static const EnumNames<ResidentWork> names{
      {ResidentWork::spin, "spin"}, {ResidentWork::copy, "copy"}, {ResidentWork::reduce, "reduce"}};
  return names;
}

const std::string& name_of(ResidentWork work) {
  return std::find_if(work_table().begin(), work_table().end(), [&](const auto& entry) { return entry.first == work; })
      ->second;
}

template <class Fields>
void list_fields(Fields& fields, std::vector<ResidentSpec>& beside) {
  fields.objects(
      "beside", beside,
      [](auto& f, ResidentSpec& spec) {
        f.choice("work", spec.work, work_table());
        f.count("blocks", spec.blocks, 1, 65536, Presence::optional);
        f.count("threads", spec.threads, 1, 1024, Presence::optional);
        f.count("registers", spec.registers, 1, 255, Presence::optional);
        f.count("shared_memory_bytes", spec.shared_memory_bytes, 0, 1 << 20, Presence::optional);
        double mebibytes = static_cast<double>(spec.buffer_bytes) / (1 << 20);
        f.number("buffer_MiB", mebibytes, 1e-3, kMaxMiB, Presence::optional);
        spec.buffer_bytes = static_cast<std::int64_t>(mebibytes * (1 << 20));
        f.count("chunk_bytes", spec.chunk_bytes, kLineBytes, 1 << 24, Presence::optional);
        f.maybe("rate_GBps", spec.rate,
                [](auto& at, const char* key, Bandwidth& rate) { at.rate_GBps(key, rate, 1e-3, 1e6); });
      },
      Presence::optional);
}

BlockNeeds needs_of(const ResidentSpec& spec, const ComputeUnitSpec& unit) {
  return block_needs(unit, spec.threads, spec.registers, spec.shared_memory_bytes);
}

}  // namespace

void beside_fields(FieldReader& fields, std::vector<ResidentSpec>& beside) { list_fields(fields, beside); }
void beside_fields(FieldWriter& fields, std::vector<ResidentSpec>& beside) { list_fields(fields, beside); }

void check_beside(const RunConfig& config, const std::string& file) {
  const GpuSpec& gpu = config.system.gpu;
  // Placed as the distributor does: breadth first, the first of the list first.
  std::vector<UnitSlots> units(gpu.compute_units, UnitSlots(gpu.compute_unit));
  for (std::size_t i = 0; i < config.beside.size(); ++i) {
    const ResidentSpec& spec = config.beside[i];
    const auto fail = [&](const char* key, const std::string& message) {
      throw InputError(file, fmt::format("/beside/{}/{}", i, key), message);
    };
    const BlockNeeds needs = needs_of(spec, gpu.compute_unit);
    if (blocks_per_unit(gpu.compute_unit, needs) == 0) {
      fail("threads",
           fmt::format("expected blocks that fit on a compute unit of {}, got {} threads of {} registers and "
                       "{} B of shared memory",
                       gpu.name, spec.threads, spec.registers, spec.shared_memory_bytes));
    }
    std::uint32_t placed = 0;
    for (bool went = true; went && placed < spec.blocks;) {
      went = false;
      for (UnitSlots& unit : units) {
        if (placed == spec.blocks || !unit.fits(needs)) continue;
        unit.take(needs);
        ++placed;
        went = true;
      }
    }
    if (placed < spec.blocks) {
      fail("blocks", fmt::format("expected as many as have room at once on {} beside those before, {}, got {}",
                                 gpu.name, placed, spec.blocks));
    }
    if (spec.work != ResidentWork::spin && resident_chunks(spec) == 0) {
      fail("buffer_MiB", fmt::format("expected a chunk a block of each of {} streams, {} B in all, or more, got {} B",
                                     resident_streams(spec.work),
                                     spec.chunk_bytes * spec.blocks * resident_streams(spec.work), spec.buffer_bytes));
    }
  }
  if (const std::int64_t bytes = beside_bytes(config); bytes > gpu.hbm.bytes / 2) {
    throw InputError(
        file, "/beside",
        fmt::format("expected buffers of at most half of the memory, {} B, got {} B", gpu.hbm.bytes / 2, bytes));
  }
}

std::int64_t beside_bytes(const RunConfig& config) {
  std::int64_t bytes = 0;
  for (const ResidentSpec& spec : config.beside) {
    if (spec.work != ResidentWork::spin) bytes += (spec.buffer_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  return bytes;
}

std::vector<ScriptedKernel> beside_kernels(const RunConfig& config, std::uint32_t stop_flag) {
  std::vector<ScriptedKernel> kernels;
  std::int64_t address = config.system.gpu.hbm.bytes - library_buffer_bytes(config) - beside_bytes(config);
  address = address / kLineBytes * kLineBytes;
  for (const ResidentSpec& spec : config.beside) {
    kernels.push_back(resident_kernel(spec, config.system.gpu, address, stop_flag));
    if (spec.work != ResidentWork::spin) address += (spec.buffer_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  return kernels;
}

std::vector<BesideResult> beside_results(const RunConfig& config, const std::vector<ResidentTraffic>& traffic) {
  std::vector<BesideResult> rows;
  for (std::size_t i = 0; i < traffic.size(); ++i) {
    const double seconds = to_seconds(traffic[i].stopped);
    const auto rate = [&](std::int64_t bytes) { return seconds > 0 ? static_cast<double>(bytes) / seconds * 1e-9 : 0; };
    rows.push_back({.work = name_of(config.beside[i].work),
                    .blocks = config.beside[i].blocks,
                    .loaded_bytes = traffic[i].loaded_bytes,
                    .stored_bytes = traffic[i].stored_bytes,
                    .loaded_GBps = rate(traffic[i].loaded_bytes),
                    .stored_GBps = rate(traffic[i].stored_bytes)});
  }
  return rows;
}

void note_beside(const RunConfig& config, RunResult& result) {
  for (const BesideResult& row : result.gpus.empty() ? std::vector<BesideResult>() : result.gpus.front().beside) {
    result.notes.push_back(
        row.work == "spin" ? fmt::format("Beside the workload, on each GPU: {} blocks that spin.", row.blocks)
                           : fmt::format("Beside the workload, on each GPU: {} blocks that {} load {:.1f} and store "
                                         "{:.1f} GB/s on the first.",
                                         row.blocks, row.work, row.loaded_GBps, row.stored_GBps));
  }
  if (!config.beside.empty()) {
    result.notes.emplace_back("What the blocks beside take is booked as communication; times alone are without them.");
  }
}

}  // namespace weft
