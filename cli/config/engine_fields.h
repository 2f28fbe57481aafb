// The keys of `gpu.engines`, and the bounds that system files share.
#pragma once

#include <cstdint>

#include "cli/config/spec_fields.h"
#include "gpu_model/gpu_spec.h"
#include "network/packet.h"

namespace weft {

// Bounds only keep out what is a slip of the unit or cannot be simulated; they are no claim about hardware.
inline constexpr double kMaxTimeNs = 1e9;
inline constexpr double kMinTimeNs = 1e-3;
inline constexpr double kMaxGBps = 1e6;
inline constexpr double kMinGBps = 1e-3;

template <class Fields>
void engine_fields(Fields& f, GpuEngines& engines) {
  f.object("copy_engine", [&](auto& copy) {
    CopyEngineSpec& spec = engines.copy_engine;
    copy.count("engines", spec.engines, 1, 1024);
    copy.rate_GBps("rate_GBps", spec.rate, kMinGBps, kMaxGBps);
    copy.time_ns("start_ns", spec.start, 0, kMaxTimeNs);
    copy.count("max_outstanding_lines", spec.max_outstanding_lines, 1, 1 << 20);
    copy.count("packet_lines", spec.packet_lines, 1, kMaxPacketLines);
    copy.count("piece_bytes", spec.piece_bytes, kLineBytes, std::int64_t{1} << 40);
    copy.count("reduce_blocks", spec.reduce_blocks, 1, 65536);
  });
  f.object("endpoint_engine", [&](auto& endpoint) {
    EndpointEngineSpec& spec = engines.endpoint_engine;
    endpoint.count("sram_bytes", spec.sram_bytes, kLineBytes, std::int64_t{1} << 32);
    endpoint.rate_GBps("sram_GBps", spec.sram_rate, kMinGBps, kMaxGBps);
    endpoint.rate_GBps("memory_GBps", spec.memory_rate, kMinGBps, kMaxGBps);
    endpoint.time_ns("sram_latency_ns", spec.sram_latency, 0, kMaxTimeNs);
    endpoint.time_ns("start_ns", spec.start, 0, kMaxTimeNs);
    endpoint.count("state_machines", spec.state_machines, 1, 1024);
    endpoint.number("adds_per_cycle", spec.adds_per_cycle, 0.001, 1e9);
    endpoint.count("max_outstanding_lines", spec.max_outstanding_lines, 1, 1 << 20);
    endpoint.count("packet_lines", spec.packet_lines, 1, kMaxPacketLines);
  });
  f.object("near_memory", [&](auto& near_memory) {
    near_memory.count("update_cost", engines.near_memory.update_cost, 1, 64);
    near_memory.count("channels", engines.near_memory.channels, 1, 1024);
  });
}

}  // namespace weft
