#include "workloads/address_plan.h"

#include <gtest/gtest.h>

#include <map>

#include "sim/error.h"
#include "workloads/model_zoo.h"

namespace weft {
namespace {

TEST(DeviceAllocator, RoundsToItsGranularity) {
  DeviceAllocator allocator(kFirstAddress);
  EXPECT_EQ(allocator.allocate(1), kFirstAddress);
  EXPECT_EQ(allocator.allocate(513), kFirstAddress + 512);
  EXPECT_EQ(allocator.allocate(512), kFirstAddress + 512 + 1024);
  EXPECT_EQ(allocator.end(), kFirstAddress + 2048);
}

TEST(DeviceAllocator, TakesTheSmallestHoleThatFits) {
  DeviceAllocator allocator(4096);
  const auto large = allocator.allocate(4096);
  (void)allocator.allocate(512);
  const auto small = allocator.allocate(1024);
  (void)allocator.allocate(512);
  allocator.release(large);
  allocator.release(small);
  EXPECT_EQ(allocator.allocate(1024), small);
  EXPECT_EQ(allocator.allocate(512), large);
  EXPECT_EQ(allocator.allocate(3584), large + 512);
}

TEST(DeviceAllocator, MergesFreedNeighbours) {
  DeviceAllocator allocator(4096);
  const auto first = allocator.allocate(512);
  const auto second = allocator.allocate(512);
  const auto third = allocator.allocate(512);
  allocator.release(first);
  allocator.release(third);
  allocator.release(second);
  EXPECT_EQ(allocator.allocate(1536), first);
}

TEST(DeviceAllocator, RefusesToReleaseTwice) {
  DeviceAllocator allocator(4096);
  const auto address = allocator.allocate(512);
  allocator.release(address);
  EXPECT_THROW(allocator.release(address), InternalError);
}

class PlannedModel : public testing::TestWithParam<const char*> {};

// Walks through the events and keeps what is live: no two may share a byte.
TEST_P(PlannedModel, NeverOverlapsLiveTensors) {
  const Graph graph = make_model({GetParam(), 4, "amp", 0, 108});
  const AddressPlan plan = plan_addresses(graph);
  std::map<std::uint64_t, std::uint64_t> live;  // address to end
  std::size_t node = 0;
  for (const AddressPlan::Event& event : plan.events) {
    ASSERT_GE(event.node, node);
    node = event.node;
    const std::uint64_t address = plan.addresses[event.tensor.value];
    ASSERT_GE(address, kFirstAddress);
    ASSERT_EQ(address % DeviceAllocator::kGranularity, 0U);
    if (event.bytes.count() < 0) {
      ASSERT_EQ(live.erase(address), 1U);
      continue;
    }
    const std::uint64_t end = address + static_cast<std::uint64_t>(event.bytes.count());
    ASSERT_LE(end, plan.end);
    ASSERT_GE(event.bytes, graph.tensors[event.tensor.value].bytes);
    const auto next = live.lower_bound(address);
    if (next != live.end()) {
      ASSERT_LE(end, next->first) << graph.tensors[event.tensor.value].name;
    }
    if (next != live.begin()) {
      ASSERT_LE(std::prev(next)->second, address) << graph.tensors[event.tensor.value].name;
    }
    live[address] = end;
  }
}

TEST_P(PlannedModel, HoldsEveryTensorFromFirstToLastUse) {
  const Graph graph = make_model({GetParam(), 4, "amp", 0, 108});
  const AddressPlan plan = plan_addresses(graph);
  std::vector<bool> live(graph.tensors.size());
  auto event = plan.events.begin();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (; event != plan.events.end() && event->node == i; ++event)
      live[event->tensor.value] = event->bytes.count() > 0;
    for (const auto& uses : {graph.nodes[i].kernel.reads, graph.nodes[i].kernel.writes}) {
      for (const TensorUse& use : uses) {
        const Tensor& tensor = graph.tensors[use.tensor.value];
        EXPECT_TRUE(live[tensor.view_of.value_or(use.tensor).value]) << tensor.name << " at " << graph.nodes[i].name;
      }
    }
  }
}

TEST_P(PlannedModel, ReusesMemory) {
  const Graph graph = make_model({GetParam(), 4, "amp", 0, 108});
  const AddressPlan plan = plan_addresses(graph);
  std::uint64_t kept = 0, temporary = 0;
  for (const AddressPlan::Event& event : plan.events) {
    if (event.bytes.count() > 0)
      (event.persistent ? kept : temporary) += static_cast<std::uint64_t>(event.bytes.count());
  }
  EXPECT_LT(plan.end - kFirstAddress, kept + temporary * 3 / 4);
}

INSTANTIATE_TEST_SUITE_P(AddressPlan, PlannedModel, testing::Values("resnet50", "vgg16", "bert-large"),
                         [](const auto& test) { return std::string(test.param).substr(0, 4); });

TEST(AddressPlan, PutsViewsIntoTheirStorage) {
  const Graph graph = make_model({"resnet50", 1, "tf32", 0, 108});
  const AddressPlan plan = plan_addresses(graph);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (!tensor.view_of) continue;
    EXPECT_EQ(plan.addresses[i], plan.addresses[tensor.view_of->value] + tensor.view_offset);
  }
}

}  // namespace
}  // namespace weft
