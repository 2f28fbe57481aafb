// The interconnect between GPUs: links of lanes, switches, packets. Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "sim/units.h"

namespace weft {

enum class Topology { switched, fully_connected };

struct LinkSpec {
  Bandwidth bandwidth;            // of one lane bundle ("a link" in data sheets), each way
  double framing_efficiency = 1;  // what FEC and CRC leave of the line rate
  Time latency;                   // of one hop, without serialisation
  std::uint32_t flit_bytes = 16;
  std::uint32_t header_flits = 1;
  std::uint32_t max_payload_bytes = 128;
  std::uint32_t credits = 64;  // packets the receiver can hold for each virtual channel
};

struct SwitchSpec {
  Time latency;  // input to output, unloaded
};

struct NetworkSpec {
  Topology topology = Topology::switched;
  std::uint32_t links_per_gpu = 0;  // in all; spread evenly over switches or peers
  std::uint32_t switches = 0;       // switched: each GPU reaches every switch
  LinkSpec link;
  SwitchSpec switch_;
};

}  // namespace weft
