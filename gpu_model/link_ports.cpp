#include "gpu_model/link_ports.h"

#include "sim/error.h"

namespace weft {

LinkPorts::LinkPorts(const NetworkSpec& spec, GpuId self, const std::vector<LinkBundle>& bundles)
    : bundles_(bundles),
      self_(static_cast<std::uint16_t>(self.value)),
      switched_(spec.topology == Topology::switched),
      latency_(spec.link.latency) {
  for (std::uint32_t b = 0; b < bundles_.size(); ++b) {
    WEFT_CHECK(bundles_[b].lanes > 0 && bundles_[b].lanes < 256, "a link bundle of 1 to 255 lanes");
    transmitters_.emplace_back(spec.link, bundles_[b].lanes, *bundles_[b].out);
    for (std::uint32_t lane = 0; lane < bundles_[b].lanes; ++lane) {
      spread_.push_back({b, static_cast<std::uint8_t>(lane)});
    }
  }
}

LinkPorts::Lane LinkPorts::lane_of(LineAddress line, std::uint16_t destination) const {
  const std::uint32_t spread = line + (line >> 8);  // consecutive lines take turns; powers of two do not camp
  if (switched_) return spread_[spread % spread_.size()];
  const std::uint32_t bundle = destination < self_ ? destination : destination - 1U;
  return {bundle, static_cast<std::uint8_t>(spread % bundles_[bundle].lanes)};
}

}  // namespace weft
