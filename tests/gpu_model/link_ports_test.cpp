// Which lane a packet takes.
#include "gpu_model/link_ports.h"

#include <gtest/gtest.h>

#include <set>

namespace weft {
namespace {

// Of GPU 1 of 4, with a bundle of `lanes` to a router.
std::set<std::uint32_t> lanes_to(std::uint16_t destination, std::uint32_t lanes) {
  LinkSpec spec;
  spec.bandwidth = gigabytes_per_second(25);
  const auto timing = std::make_shared<const LinkTiming>(spec);
  LinkWires in;
  LinkWires out;
  const std::vector<std::shared_ptr<const LinkTiming>> all(lanes, timing);
  const LinkPorts ports({.kind = LinkPlan::Kind::router, .gpus = 4}, GpuId{1}, {{&in, &out, all}});
  std::set<std::uint32_t> taken;
  for (LineAddress line = 0; line < 1000; ++line) taken.insert(ports.lane_of(line, destination).lane);
  return taken;
}

TEST(LinkPorts, EachGpuBehindARouterHasLanesOfItsOwnWhereThereAreEnough) {
  EXPECT_EQ(lanes_to(0, 8), (std::set<std::uint32_t>{0, 1}));
  EXPECT_EQ(lanes_to(3, 8), (std::set<std::uint32_t>{6, 7}));
  EXPECT_EQ(lanes_to(3, 4), (std::set<std::uint32_t>{3}));
}

TEST(LinkPorts, FewerLanesAreSharedByAddress) {
  EXPECT_EQ(lanes_to(0, 3), (std::set<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(lanes_to(3, 3), (std::set<std::uint32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace weft
