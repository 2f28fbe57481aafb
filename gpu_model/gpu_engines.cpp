// The units that are not compute units: engines, and the network's interface.
#include "gpu_model/gpu.h"

namespace weft {

namespace {

// An engine goes by physical addresses, has no L1, and one set of adders that its agents take in turn.
ComputeUnitSpec engine_parts(ComputeUnitSpec unit) {
  unit.tlb_entries = 0;
  unit.l1_bytes = 0;
  return unit;
}

// Requests of all queue pairs of a NIC that may be under way: no bound, its links limit what it moves.
constexpr std::uint32_t kNicLines = 1U << 20U;

}  // namespace

void Gpu::add_engines() {
  const auto line_time = [&](Bandwidth rate) {
    return cycles(kLineBytes * static_cast<double>(spec_.clock.count()) / static_cast<double>(rate.count()));
  };
  const auto add = [&](SubCycle request_time, SubCycle line) -> Unit& {
    Unit& unit = units_.emplace_back(engine_parts(spec_.compute_unit), spec_.l2.tlb,
                                     WarpSchedulers{1, WarpPolicy::round_robin}, request_time, line, line);
    unit.partition = L2Cache::kNoPartition;
    unit.to_links = request_latency_;
    unit.from_links = response_latency_;
    unit.store_credits = StoreCredits(response_latency_);
    return unit;
  };
  add(line_time(spec_.host_link), line_time(spec_.host_link));
  Unit& nic = add(0, 0);
  nic.load_limit = nic.store_limit = kNicLines;
  if (!spec_.engines) return;
  const auto limit = [](Unit& unit, std::uint32_t outstanding, std::uint32_t packet_lines) {
    unit.load_limit = unit.store_limit = outstanding;
    unit.packet_lines = packet_lines;
  };
  const CopyEngineSpec& copy = spec_.engines->copy_engine;
  for (std::uint32_t e = 0; e < copy.engines; ++e) {
    limit(add(0, line_time(copy.rate)), copy.max_outstanding_lines, copy.packet_lines);
  }
  const EndpointEngineSpec& endpoint = spec_.engines->endpoint_engine;
  Unit& at_port = add(0, line_time(endpoint.memory_rate));
  limit(at_port, endpoint.max_outstanding_lines, endpoint.packet_lines);
  at_port.at_link_port = true;
  at_port.to_links = at_port.from_links = kCycle;
  sram_first_line_ = static_cast<LineAddress>(spec_.hbm.bytes / kLineBytes);
  sram_line_time_ = line_time(endpoint.sram_rate);
  sram_latency_ = clock_.to_subcycles(endpoint.sram_latency);
  l2_.set_update_cost(spec_.engines->near_memory.update_cost);
}

}  // namespace weft
