// The links of one GPU: bundles of lanes to switches or to peers, and which lane an address takes.
#pragma once

#include <cstdint>
#include <vector>

#include "network/network_spec.h"
#include "network/transmitter.h"
#include "sim/ids.h"

namespace weft {

// One bundle: to a switch, or to a peer when the GPUs are fully connected.
struct LinkBundle {
  LinkWires* in = nullptr;
  LinkWires* out = nullptr;
  std::uint32_t lanes = 0;
};

class LinkPorts {
 public:
  LinkPorts() = default;  // of a GPU without links
  // switched: bundle s goes to switch s, and an address takes the same lane number on all GPUs, so that its traffic
  // meets in one switch. Else bundle p goes to the p-th of the other GPUs, ascending.
  LinkPorts(const NetworkSpec& spec, GpuId self, const std::vector<LinkBundle>& bundles);

  struct Lane {
    std::uint32_t bundle = 0;
    std::uint8_t lane = 0;
  };
  [[nodiscard]] Lane lane_of(LineAddress line, std::uint16_t destination) const;
  // The bundle that the answer to a packet which came in by `bundle` leaves by is the same one.
  [[nodiscard]] std::size_t size() const { return bundles_.size(); }
  [[nodiscard]] bool empty() const { return bundles_.empty(); }
  [[nodiscard]] const LinkBundle& bundle(std::size_t index) const { return bundles_[index]; }
  [[nodiscard]] Transmitter& transmitter(std::size_t index) { return transmitters_[index]; }
  [[nodiscard]] const Transmitter& transmitter(std::size_t index) const { return transmitters_[index]; }
  [[nodiscard]] Time latency() const { return latency_; }

 private:
  std::vector<LinkBundle> bundles_;
  std::vector<Transmitter> transmitters_;
  std::vector<Lane> spread_;  // switched: by hash of the address
  std::uint16_t self_ = 0;
  bool switched_ = true;
  Time latency_;
};

}  // namespace weft
