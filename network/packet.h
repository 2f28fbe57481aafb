// What travels on links. A packet of compute units carries at most a line behind its header flits, one of engines two.
#pragma once

#include <cstdint>

#include "sim/units.h"

namespace weft {

// The address of a 128 B line of a GPU's memory: byte address / 128. 32 bits reach 512 GiB.
using LineAddress = std::uint32_t;
inline constexpr std::uint32_t kLineBytes = 128;
inline constexpr std::uint32_t kSectorBytes = 32;
inline constexpr std::uint32_t kMaxPacketLines = 2;  // 256 B from copy engines (NVIDIA in nccl-tests issue 149)

enum class PacketKind : std::uint8_t {
  read,             // request: no payload
  write,            // request: payload
  update,           // request: a write that the memory adds to what stands there
  flag,             // request: a small write that adds one to the flag `line` names
  multicast_read,   // request to a reducing switch: replies of all members, summed
  multicast_write,  // request to a switch: a copy to every member
  multicast_flag,   // request to a switch: a flag write to every member
  push,             // request to a reducing switch: `count` contributions to a sum that goes to all members
  multicast_sum,    // request to a switch, or from it: a pushed sum for every member; not acknowledged
  partial_sum,      // request from a switch to a sum's home GPU: `count` contributions of `agent` in all
  read_reply,       // response: payload
  partial_reply,    // response of a member to the switch that asked it for multicast_read
  acknowledge,      // response: `count` writes have been done
};

// Requests may wait for responses, never the other way round: two virtual channels keep them from blocking each other.
// Routes over several hops may split each of them into classes (routing.h).
enum class VirtualChannel : std::uint8_t { request, response };
inline constexpr std::size_t kVirtualChannels = 2;

constexpr VirtualChannel virtual_channel(PacketKind kind) {
  return kind >= PacketKind::read_reply ? VirtualChannel::response : VirtualChannel::request;
}

struct Packet {
  Time when;                      // arrival of the last flit at the next chip
  LineAddress line = 0;           // or the flag
  std::uint32_t agent = 0;        // who asked, on the source GPU: comes back with the answer
  std::uint32_t entry = 0;        // of a reduction table, in copies of a multicast read. Plus one: of a write to one
                                  // GPU and of pushed sums the flag that it counts there, if any; of a multicast
                                  // write's copies the group
  std::uint16_t source = 0;       // the GPU that asked, also in responses to it; of a partial sum the group
  std::uint16_t destination = 0;  // the GPU that is asked; of a multicast or push to a switch the group
  PacketKind kind = PacketKind::read;
  std::uint8_t lane = 0;      // of the link it last travelled on
  std::uint8_t count = 1;     // of an acknowledgement: lines; of partial replies and pushes: contributions summed
  std::uint8_t vc_class = 0;  // of its virtual channel, on the link it last travelled on
  std::uint16_t payload = 0;  // bytes; up to 128 of compute units, 256 of copy engines: consecutive lines
};

// A receiver's buffer place that is free again for a lane and virtual channel of the opposite direction.
struct Credit {
  Time when;  // at the sender of the packets
  std::uint8_t lane = 0;
  VirtualChannel channel = VirtualChannel::request;
  std::uint8_t vc_class = 0;
};

}  // namespace weft
