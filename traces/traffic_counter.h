// What a GPU's HBM and NVLink moved, over time.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace weft {

// NVLink's bytes are those on the wire, what its protocol adds among them; `received` and `sent` by the GPU.
enum class TrafficCounter { hbm_read_bytes, hbm_written_bytes, nvlink_received_bytes, nvlink_sent_bytes };
inline constexpr std::size_t kTrafficCounterCount = 4;

// By TrafficCounter, as trace files name them.
inline constexpr std::array<std::string_view, kTrafficCounterCount> kTrafficCounterWords{
    "hbm_read_bytes", "hbm_written_bytes", "nvlink_received_bytes", "nvlink_sent_bytes"};

}  // namespace weft
