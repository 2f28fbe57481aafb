// The reduction table by itself, and in a switch.
#include "switch_reduce/reduction_table.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/network/switch_bench.h"

namespace weft {
namespace {

// Three entries a port; 32 additions (a line of FP32) take 1 ns.
ReduceSpec table(std::int64_t entries = 3) {
  ReduceSpec spec;
  spec.entry_bytes = 128;
  spec.table_bytes_per_port = entries * 128 + 127;
  spec.adds_per_second = 32e9;
  spec.latency = nanoseconds(10);
  return spec;
}

const Packet kRequest = packet_of(PacketKind::multicast_read, 0, 0);
const Packet kReply = packet_of(PacketKind::partial_reply, 0, 1);

TEST(ReductionTable, FillsByPortAndFreesOnClose) {
  ReductionTable reducer(table(), 2);
  EXPECT_EQ(reducer.entries_per_port(), 3U);
  std::vector<std::uint32_t> entries;
  for (int i = 0; i < 3; ++i) {
    const auto entry = reducer.open(0, kRequest, 2);
    ASSERT_TRUE(entry);
    for (const std::uint32_t other : entries) EXPECT_NE(*entry, other);
    entries.push_back(*entry);
  }
  EXPECT_EQ(reducer.open(0, kRequest, 2), std::nullopt);
  EXPECT_TRUE(reducer.open(1, kRequest, 2));  // the other port's table is its own
  reducer.close(entries[1]);
  EXPECT_EQ(reducer.occupied(0), 2U);
  EXPECT_TRUE(reducer.open(0, kRequest, 2));
  EXPECT_EQ(reducer.open(0, kRequest, 2), std::nullopt);
}

TEST(ReductionTable, FixedOrderKeepsAllAndAddsThemAtTheEnd) {
  ReduceSpec spec = table(8);
  spec.accumulation.order = AccumulationOrder::fixed;
  ReductionTable reducer(spec, 4);  // an entry keeps three lines beside the sum
  EXPECT_EQ(ReductionTable::entry_bytes(spec, 4), 512U);
  EXPECT_EQ(reducer.entries_per_port(), 2U);
  const auto entry = reducer.open(0, kRequest, 3);
  EXPECT_EQ(reducer.statistics().table_high_water_bytes, 512);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(100)), std::nullopt);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(200)), std::nullopt);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(300)), nanoseconds(300 + 3 + 10));
}

TEST(ReductionTable, RemembersTheFullestPort) {
  ReductionTable reducer(table(), 2);
  const auto first = reducer.open(0, kRequest, 2);
  static_cast<void>(reducer.open(0, kRequest, 2));
  static_cast<void>(reducer.open(1, kRequest, 2));
  reducer.close(*first);
  EXPECT_EQ(reducer.statistics().table_high_water_bytes, 2 * 128);
}

TEST(ReductionTable, TheLastReplySaysWhenTheSumIsReady) {
  ReductionTable reducer(table(), 2);
  const auto entry = reducer.open(0, kRequest, 3);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(100)), std::nullopt);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(200)), std::nullopt);
  EXPECT_EQ(reducer.statistics().reduced_bytes, 0);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(300)), nanoseconds(300 + 1 + 10));
  EXPECT_EQ(reducer.statistics().reduced_bytes, 128);
  EXPECT_THROW(static_cast<void>(reducer.add(*entry, kReply, nanoseconds(400))), InternalError);
}

TEST(ReductionTable, AddersServeOneReplyAfterAnother) {
  ReductionTable reducer(table(), 2);
  const auto a = reducer.open(0, kRequest, 2);
  const auto b = reducer.open(1, kRequest, 2);
  EXPECT_EQ(reducer.add(*a, kReply, nanoseconds(100)), std::nullopt);
  EXPECT_EQ(reducer.add(*b, kReply, nanoseconds(100)), std::nullopt);
  EXPECT_EQ(reducer.add(*b, kReply, nanoseconds(100)), nanoseconds(100 + 3 + 10));
  EXPECT_EQ(reducer.add(*a, kReply, nanoseconds(100)), nanoseconds(100 + 4 + 10));
}

TEST(ReductionTable, CloseGivesBackTheRequest) {
  ReductionTable reducer(table(), 2);
  Packet request = kRequest;
  request.line = 42;
  request.agent = 7;
  const Packet answered = reducer.close(*reducer.open(1, request, 2));
  EXPECT_EQ(answered.line, 42U);
  EXPECT_EQ(answered.agent, 7U);
}

TEST(ReductionTable, HoldsAtLeastOneEntry) { EXPECT_THROW(ReductionTable(table(0), 2), InternalError); }

// GPUs that answer what the switch asks them at once, `kThere` later, and return its credits.
constexpr Time kThere{16LL << 19};
constexpr Time kWindow{16LL << 19};

struct Answered {
  std::vector<Time> sums;  // arrivals of the reduced lines at GPU 0
  ReducerStatistics statistics;
};

// GPU 0 asks for `lines` sums at once.
Answered closed_loop(std::int64_t entries, int lines) {
  SwitchBench bench(4, bench_link(64), std::make_unique<ReductionTable>(table(entries), 4));
  for (int i = 0; i < lines; ++i) {
    bench.send(0, packet_of(PacketKind::multicast_read, 0, 0, static_cast<std::uint32_t>(i)), Time(0));
  }
  Answered answered;
  std::uint32_t expected_line = 0;
  for (Time now; now < microseconds(200); now += kWindow) {
    bench.advance(now + kWindow);
    for (std::uint16_t gpu = 0; gpu < 4; ++gpu) {
      for (const Packet& packet : bench.packets[gpu]) {
        bench.give_credit(gpu, virtual_channel(packet.kind), packet.when + kLinkLatency);
        if (packet.kind == PacketKind::multicast_read) {
          Packet reply = packet;
          reply.kind = PacketKind::partial_reply;
          reply.payload = 128;
          bench.send(gpu, reply, packet.when + kThere);
        } else {
          EXPECT_EQ(packet.kind, PacketKind::read_reply);
          EXPECT_EQ(gpu, 0);
          EXPECT_EQ(packet.line, expected_line++);
          EXPECT_EQ(packet.payload, 128);
          answered.sums.push_back(packet.when);
        }
      }
      bench.packets[gpu].clear();
    }
  }
  EXPECT_FALSE(bench.hub().holds_packets());
  answered.statistics = bench.hub().reducer()->statistics();
  return answered;
}

Time ticks(Time t) { return Time((t.count() + (1LL << 19) - 1) / (1LL << 19) * (1LL << 19)); }
// From an entry's opening to its close: request out, reply in, the switch once more, adders and their latency. Each
// event in the switch is at a whole tick of 2^19 fs. `behind`: what leaves by the asking port first; the other replies
// are summed meanwhile.
Time round_trip(Time behind, std::int64_t additions) {
  const Time asked = behind + nanoseconds(1) + kLinkLatency + kThere;  // a request is one flit
  return ticks(ticks(asked + kSwitchLatency) + nanoseconds(static_cast<double>(additions)) + nanoseconds(10));
}
const Time kFirst = round_trip(Time(0), 4);
const Time kNext = round_trip(nanoseconds(9), 1);  // behind the sum before

TEST(SwitchReduceFormula, OneEntryServesOneSumARoundTrip) {
  const Answered answered = closed_loop(1, 50);
  ASSERT_EQ(answered.sums.size(), 50U);
  for (std::size_t i = 1; i < answered.sums.size(); ++i) {
    EXPECT_EQ((answered.sums[i] - answered.sums[i - 1]).count(), kNext.count()) << i;
  }
  EXPECT_EQ(answered.statistics.table_high_water_bytes, 128);
  EXPECT_EQ(answered.statistics.stalled.count(), (kFirst + kNext * 48).count());
}

TEST(SwitchReduceFormula, ThroughputGrowsWithTheTableUntilItHoldsARoundTrip) {
  const auto mean = [](const Answered& a) {
    return to_seconds(a.sums.back() - a.sums.front()) / static_cast<double>(a.sums.size() - 1);
  };
  const double one = to_seconds(kNext);
  const Answered four = closed_loop(4, 64);
  ASSERT_EQ(four.sums.size(), 64U);
  EXPECT_NEAR(mean(four), one / 4, one / 4 * 0.15);  // four share the adders
  EXPECT_GT(four.statistics.stalled, Time(0));
  const Answered all = closed_loop(64, 64);
  ASSERT_EQ(all.sums.size(), 64U);
  EXPECT_NEAR(mean(all), 9e-9, 0.3e-9);  // what is left is the link: 9 flits a sum
  EXPECT_EQ(all.statistics.stalled, Time(0));
  EXPECT_EQ(all.statistics.reduced_bytes, 64 * 128);
}

}  // namespace
}  // namespace weft
