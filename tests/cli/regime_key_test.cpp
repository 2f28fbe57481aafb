#include "cli/sampled/regime_key.h"

#include <gtest/gtest.h>

#include "cli/config/run_config.h"

namespace weft {
namespace {

RunConfig config_with(const std::string& more) {
  return read_run_config(
      Json::parse(R"({"system": "dgx-a100", "gpus": 4, "workload": {"collective": "all_reduce", "bytes": 4096})" +
                  more + "}"),
      "k.json");
}

// One kernel reads what the one before wrote; both lie from `base` on.
Program two_kernels(std::uint64_t base) {
  Program program;
  program.priorities = {0, 0};
  for (std::uint64_t i = 0; i < 2; ++i) {
    ProgramOp& op = program.ops.edit().emplace_back();
    op.name = "kernel";
    op.kernel.shape.grid = {64, 1, 1};
    op.kernel.shape.block = {128, 1, 1};
    op.kernel.reads = {{.base = base + i * 65536, .bytes_per_block = 1024}};
    op.kernel.writes = {{.base = base + (i + 1) * 65536, .bytes_per_block = 1024}};
  }
  return program;
}

std::string key_of(const RunConfig& config, const Program& program, std::uint32_t op = 1) {
  return RegimeKeys(config, program, true).of_kernel(OpId{op});
}

TEST(RegimeKeys, AddressesCountAsTheyRelate) {
  const RunConfig config = config_with("");
  EXPECT_EQ(key_of(config, two_kernels(0)), key_of(config, two_kernels(1 << 30)));
  Program apart = two_kernels(0);
  apart.ops.edit()[1].kernel.reads[0].base = 1 << 30;  // not what the first kernel wrote
  EXPECT_NE(key_of(config, apart), key_of(config, two_kernels(0)));
}

TEST(RegimeKeys, WhatAKernelDoesIsInItsName) {
  const RunConfig config = config_with("");
  const std::string key = key_of(config, two_kernels(0));
  Program longer = two_kernels(0);
  longer.ops.edit()[1].kernel.flops[0] = 1e6;
  EXPECT_NE(key_of(config, longer), key);
  Program before = two_kernels(0);
  before.ops.edit()[0].kernel.shape.grid = {32, 1, 1};  // of which the L2 still holds something
  EXPECT_NE(key_of(config, before), key);
}

TEST(RegimeKeys, HowLongAKernelBeforeComputedDoesNotCount) {
  const RunConfig config = config_with("");
  const std::string key = key_of(config, two_kernels(0));
  Program refitted = two_kernels(0);
  refitted.ops.edit()[0].kernel.extra_cycles_per_block = 1234.5;
  EXPECT_EQ(key_of(config, refitted), key);
  EXPECT_NE(key_of(config, refitted, 0), key_of(config, two_kernels(0), 0));
  refitted.ops.edit()[1].kernel.extra_cycles_per_block = 1234.5;
  EXPECT_NE(key_of(config, refitted), key);
  Program less = two_kernels(0);
  less.ops.edit()[0].kernel.memory_scale = 0.5;
  EXPECT_NE(key_of(config, less), key);
}

// The name of both operations, which are there at once.
std::string stretch_of(const RunConfig& config, const Program& program, SubCycle second = 0,
                       SubCycle next_arrives = -1) {
  RegimeKeys keys(config, program, true);
  const HostState state{OpId{0}, 2, {0, second}, {}};
  RegimeKeys::Stretch stretch(keys, state);
  stretch.add(OpId{0}, 0);
  stretch.add(OpId{1}, second);
  return stretch.before(OpId{2}, next_arrives);
}

TEST(RegimeKeys, TheNetworkIsInNamesOfStretchesOnly) {
  const RunConfig one = config_with("");
  const RunConfig other = config_with(R"(, "network": {"link": {"bandwidth_GBps": 10}})");
  const Program program = two_kernels(0);
  EXPECT_EQ(key_of(one, program), key_of(other, program));
  EXPECT_NE(stretch_of(one, program), stretch_of(other, program));
  const RunConfig gpu = config_with(R"(, "gpu": {"clock_MHz": 1000})");
  EXPECT_NE(key_of(one, program), key_of(gpu, program));
}

TEST(RegimeKeys, WhenOperationsArriveAndWhatFollowsIsInNamesOfStretches) {
  const RunConfig config = config_with("");
  Program program = two_kernels(0);
  const std::string key = stretch_of(config, program);
  EXPECT_EQ(stretch_of(config, program), key);
  EXPECT_NE(stretch_of(config, program, 1000), key);
  program.ops.push_back(program.ops.front());
  const std::string followed = stretch_of(config, program);
  EXPECT_NE(followed, key);
  EXPECT_NE(stretch_of(config, program, 0, 500), followed);
  program.ops.edit().back().waits = {OpId{1}};
  EXPECT_NE(stretch_of(config, program), followed);
}

TEST(RegimeKeys, HowFarGpusAreApartIsInNamesOfStretchesAndLongCollectives) {
  const RunConfig config = config_with("");
  const Program program = two_kernels(0);
  RegimeKeys keys(config, program, true);
  const HostState state{OpId{0}, 2, {0, 0}, {}};
  const auto name = [&](const std::vector<SubCycle>& apart) {
    RegimeKeys::Stretch stretch(keys, state, apart);
    stretch.add(OpId{0}, 0);
    return stretch.name() + keys.of_long_collective(OpId{1}, apart);
  };
  EXPECT_EQ(name({-5, 5}), name({-5, 5}));
  EXPECT_NE(name({-5, 5}), name({5, -5}));
  EXPECT_NE(name({-5, 5}), name({}));
}

}  // namespace
}  // namespace weft
