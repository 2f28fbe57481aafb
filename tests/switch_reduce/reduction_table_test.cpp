// The reduction table by itself, and in a switch.
#include "switch_reduce/reduction_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/error.h"
#include "tests/network/switch_bench.h"

namespace weft {
namespace {

// Three entries a port; 32 additions (a line of FP32) take 1 ns, as do 64 of FP16.
ReduceSpec table(std::int64_t entries = 3) {
  ReduceSpec spec;
  spec.entry_bytes = 128;
  spec.table_bytes_per_port = entries * 128 + 127;
  spec.adders.bits = 1024;
  spec.adders.clock = megahertz(1000);
  spec.adders.lanes.fill(32);
  spec.adders.lanes[static_cast<std::size_t>(DataType::fp16)] = 64;
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
    const auto entry = reducer.open(0, kRequest, 2, DataType::fp32, Time(0));
    ASSERT_TRUE(entry);
    for (const std::uint32_t other : entries) EXPECT_NE(*entry, other);
    entries.push_back(*entry);
  }
  EXPECT_EQ(reducer.open(0, kRequest, 2, DataType::fp32, Time(0)), std::nullopt);
  EXPECT_TRUE(reducer.open(1, kRequest, 2, DataType::fp32, Time(0)));  // the other port's table is its own
  reducer.close(entries[1], Time(0));
  EXPECT_EQ(reducer.occupied(0), 2U);
  EXPECT_TRUE(reducer.open(0, kRequest, 2, DataType::fp32, Time(0)));
  EXPECT_EQ(reducer.open(0, kRequest, 2, DataType::fp32, Time(0)), std::nullopt);
}

TEST(ReductionTable, RemembersTheFullestPort) {
  ReductionTable reducer(table(), 2);
  const auto first = reducer.open(0, kRequest, 2, DataType::fp32, Time(0));
  static_cast<void>(reducer.open(0, kRequest, 2, DataType::fp32, Time(0)));
  static_cast<void>(reducer.open(1, kRequest, 2, DataType::fp32, Time(0)));
  reducer.close(*first, Time(0));
  EXPECT_EQ(reducer.statistics().table_high_water_bytes, 2 * 128);
}

TEST(ReductionTable, TheLastReplySaysWhenTheSumIsReady) {
  ReductionTable reducer(table(), 2);
  const auto entry = reducer.open(0, kRequest, 3, DataType::fp32, Time(0));
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(100)), std::nullopt);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(200)), std::nullopt);
  EXPECT_EQ(reducer.statistics().reduced_bytes, 0);
  EXPECT_EQ(reducer.add(*entry, kReply, nanoseconds(300)), nanoseconds(300 + 1 + 10));
  EXPECT_EQ(reducer.statistics().reduced_bytes, 128);
  EXPECT_THROW(static_cast<void>(reducer.add(*entry, kReply, nanoseconds(400))), InternalError);
}

TEST(ReductionTable, AddersServeOneReplyAfterAnother) {
  ReductionTable reducer(table(), 2);
  const auto a = reducer.open(0, kRequest, 2, DataType::fp32, Time(0));
  const auto b = reducer.open(0, kRequest, 2, DataType::fp32, Time(0));
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
  const Packet answered = reducer.close(*reducer.open(1, request, 2, DataType::fp32, Time(0)), Time(0));
  EXPECT_EQ(answered.line, 42U);
  EXPECT_EQ(answered.agent, 7U);
}

TEST(ReductionTable, NarrowElementsTakeAsManyLanesAsTheyHave) {
  ReductionTable reducer(table(), 1);
  const auto wide = reducer.open(0, kRequest, 1, DataType::fp32, Time(0));
  EXPECT_EQ(reducer.add(*wide, kReply, nanoseconds(100)), nanoseconds(100 + 1 + 10));  // 32 of 4 B
  const auto narrow = reducer.open(0, kRequest, 1, DataType::fp16, Time(0));
  EXPECT_EQ(reducer.add(*narrow, kReply, nanoseconds(200)), nanoseconds(200 + 1 + 10));  // 64 of 2 B
  const auto scalar = reducer.open(0, kRequest, 1, DataType::bf16, Time(0));
  EXPECT_EQ(reducer.add(*scalar, kReply, nanoseconds(300)), nanoseconds(300 + 2 + 10));  // 64 of 2 B, 32 at a time
}

TEST(ReductionTable, EachPortHasAddersOfItsOwn) {
  ReduceSpec spec = table();
  for (const std::uint32_t adders : {1U, 2U}) {
    spec.adders.per_port = adders;
    ReductionTable reducer(spec, 2);
    const auto a = reducer.open(0, kRequest, 2, DataType::fp32, Time(0));
    const auto b = reducer.open(1, kRequest, 1, DataType::fp32, Time(0));
    EXPECT_EQ(reducer.add(*a, kReply, nanoseconds(100)), std::nullopt);
    EXPECT_EQ(reducer.add(*b, kReply, nanoseconds(100)), nanoseconds(100 + 1 + 10));
    EXPECT_EQ(reducer.add(*a, kReply, nanoseconds(100)), nanoseconds(100 + (adders == 1 ? 2 : 1) + 10));
  }
}

TEST(ReductionTable, AGroupHasItsShareOfAPort) {
  ReduceSpec spec = table();
  spec.group_entries = 2;
  ReductionTable reducer(spec, 1);
  const auto open = [&](std::uint16_t group) {
    return reducer.open(0, packet_of(PacketKind::multicast_read, 0, group), 2, DataType::fp32, Time(0));
  };
  const auto first = open(7);
  EXPECT_TRUE(open(7));
  EXPECT_FALSE(open(7));
  EXPECT_TRUE(open(8));
  reducer.close(*first, Time(0));
  EXPECT_TRUE(open(7));
}

Packet push_of(std::uint32_t line, std::uint16_t group = 0) {
  Packet packet = packet_of(PacketKind::push, 0, group, line);
  packet.payload = 128;
  return packet;
}

TEST(ReductionTable, APushedSumIsCompleteWhenAllHaveCome) {
  ReductionTable reducer(table(), 1);
  const auto push = [&](std::uint32_t line, std::uint16_t group, double ns) {
    return reducer.push(0, push_of(line, group), 3, DataType::fp32, nanoseconds(ns));
  };
  const auto first = push(5, 0, 100).entry;
  EXPECT_NE(push(6, 0, 101).entry, first);  // another line
  EXPECT_NE(push(5, 1, 102).entry, first);  // another group
  EXPECT_EQ(push(5, 0, 200).ready, std::nullopt);
  const Pushed last = push(5, 0, 300);
  EXPECT_EQ(last.entry, first);
  EXPECT_EQ(last.ready, nanoseconds(300 + 1 + 10));
  EXPECT_EQ(reducer.close(*last.entry, nanoseconds(311)).count, 3);
  EXPECT_EQ(reducer.occupied(), 2U);
}

TEST(ReductionTable, TheLeastRecentlyUsedPushedSumGivesWay) {
  ReductionTable reducer(table(), 1);
  const auto push = [&](std::uint32_t line, double ns) {
    return reducer.push(0, push_of(line), 3, DataType::fp32, nanoseconds(ns));
  };
  for (const std::uint32_t line : {1U, 2U, 3U}) EXPECT_FALSE(push(line, 100 * line).evicted);
  EXPECT_FALSE(push(1, 400).evicted);  // now line 2 is the oldest
  const Pushed fourth = push(4, 500);
  ASSERT_TRUE(fourth.evicted);
  EXPECT_EQ(fourth.evicted->line, 2U);
  EXPECT_EQ(fourth.evicted->count, 1);
  const Pushed again = push(2, 600);  // what comes later opens a sum of its own
  ASSERT_TRUE(again.evicted);
  EXPECT_EQ(again.evicted->line, 3U);
  EXPECT_EQ(reducer.statistics().evicted, 2);
  EXPECT_EQ(reducer.occupied(), 3U);
}

TEST(ReductionTable, APushedSumThatWaitsTooLongIsTaken) {
  ReduceSpec spec = table();
  spec.timeout = nanoseconds(1000);
  ReductionTable reducer(spec, 1);
  static_cast<void>(reducer.push(0, push_of(1), 3, DataType::fp32, nanoseconds(100)));
  static_cast<void>(reducer.push(0, push_of(2), 3, DataType::fp32, nanoseconds(200)));
  static_cast<void>(reducer.push(0, push_of(1), 3, DataType::fp32, nanoseconds(300)));
  EXPECT_EQ(reducer.next_timeout(0), nanoseconds(1200));
  EXPECT_FALSE(reducer.take_timed_out(0, nanoseconds(1199)));
  EXPECT_EQ(reducer.take_timed_out(0, nanoseconds(1200))->line, 2U);
  EXPECT_EQ(reducer.next_timeout(0), nanoseconds(1300));
  EXPECT_EQ(reducer.take_timed_out(0, nanoseconds(1300))->count, 2);
  EXPECT_EQ(reducer.next_timeout(0), std::nullopt);
  EXPECT_EQ(reducer.statistics().timed_out, 2);
}

TEST(ReductionTable, HoldsAtLeastOneEntry) { EXPECT_THROW(ReductionTable(table(0), 2), InternalError); }

// GPUs that answer what the switch asks them at once, `kThere` later, and return its credits.
constexpr Time kThere{16LL << 19};
constexpr Time kWindow{16LL << 19};

struct Answered {
  std::vector<Time> sums;            // arrivals of the reduced lines at GPU 0
  std::vector<std::uint32_t> lines;  // in their order
  ReducerStatistics statistics;
};

// GPU 0 sends `requests`; GPU 3 answers `late` after the others.
struct Request {
  std::uint32_t line = 0;
  std::uint16_t group = 0;
  Time when;
};
Answered answers(const ReduceSpec& spec, const std::vector<Request>& requests, Time late = Time(0),
                 const std::vector<std::vector<std::uint32_t>>& groups = {}) {
  SwitchBench bench(4, bench_link(64), std::make_unique<ReductionTable>(spec, 4), groups);
  for (const Request& r : requests) {
    bench.send(0, packet_of(PacketKind::multicast_read, 0, r.group, r.line), r.when);
  }
  Answered answered;
  for (Time now; now < microseconds(200); now += kWindow) {
    bench.advance(now + kWindow);
    for (std::uint16_t gpu = 0; gpu < 4; ++gpu) {
      for (const Packet& packet : bench.packets[gpu]) {
        bench.give_credit(gpu, virtual_channel(packet.kind), packet.when + kLinkLatency);
        if (packet.kind == PacketKind::multicast_read) {
          Packet reply = packet;
          reply.kind = PacketKind::partial_reply;
          reply.payload = 128;
          bench.send(gpu, reply, packet.when + kThere + (gpu == 3 ? late : Time(0)));
        } else {
          EXPECT_EQ(packet.kind, PacketKind::read_reply);
          EXPECT_EQ(gpu, 0);
          EXPECT_EQ(packet.payload, 128);
          answered.sums.push_back(packet.when);
          answered.lines.push_back(packet.line);
        }
      }
      bench.packets[gpu].clear();
    }
  }
  EXPECT_FALSE(bench.hub().holds_packets());
  answered.statistics = bench.hub().reducer()->statistics();
  return answered;
}

// GPU 0 asks for `lines` sums at once.
Answered closed_loop(std::int64_t entries, std::uint32_t lines) {
  std::vector<Request> requests;
  for (std::uint32_t line = 0; line < lines; ++line) requests.push_back({line, 0, Time(0)});
  Answered answered = answers(table(entries), requests);
  EXPECT_TRUE(std::is_sorted(answered.lines.begin(), answered.lines.end()));
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

// What the table holds on average is what comes a second times how long it stays.
TEST(SwitchReduceFormula, OccupancyFollowsLittlesLaw) {
  for (const double mean_ns : {15.0, 40.0, 200.0}) {
    std::mt19937 random(1);
    std::exponential_distribution<double> gap(1 / mean_ns);
    std::vector<Request> requests;
    Time when;
    for (std::uint32_t line = 0; line < 500; ++line) {
      requests.push_back({line, 0, when});
      when += nanoseconds(1 + gap(random));
    }
    const Answered answered = answers(table(256), requests, microseconds(1));
    ASSERT_EQ(answered.sums.size(), requests.size());
    EXPECT_EQ(answered.statistics.stalled, Time(0));
    // From the opening of the entry to its close, seen from outside: without the passage in and the line's way out.
    double stay = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      stay += to_seconds(answered.sums[i] - nanoseconds(9) - kLinkLatency - requests[i].when - kSwitchLatency);
    }
    const double rate = static_cast<double>(requests.size()) / to_seconds(answered.sums.back());
    const double residence = stay / static_cast<double>(requests.size());
    const double occupancy = answered.statistics.entry_seconds / to_seconds(answered.sums.back());
    EXPECT_NEAR(occupancy, rate * residence, 0.05 * rate * residence) << mean_ns;
  }
}

// GPU 3 is late, and group 0 with it: its entries fill the table of GPU 0's port. Group 1 is without GPU 3.
Answered beside_a_straggler(const ReduceSpec& spec, Time late) {
  std::vector<Request> requests;
  for (std::uint32_t line = 0; line < 16; ++line) requests.push_back({line, 0, Time(line * (1LL << 19))});
  for (std::uint32_t line = 100; line < 108; ++line) requests.push_back({line, 1, Time(line * (1LL << 19))});
  return answers(spec, requests, late, {{0, 1, 2, 3}, {0, 1}});
}
Time last_of_group_1(const Answered& answered) {
  Time last;
  for (std::size_t i = 0; i < answered.sums.size(); ++i) {
    if (answered.lines[i] >= 100) last = answered.sums[i];
  }
  return last;
}

TEST(SwitchReduce, AStragglerHoldsTheTableAndWithItOtherGroups) {
  const Time late = microseconds(20);
  const Answered answered = beside_a_straggler(table(8), late);
  ASSERT_EQ(answered.sums.size(), 24U);
  EXPECT_GT(last_of_group_1(answered), late * 2);  // behind 16 sums of group 0, 8 at a time
  EXPECT_EQ(answered.statistics.table_high_water_bytes, 8 * 128);
  EXPECT_GT(answered.statistics.stalled, late);
  const Answered none = beside_a_straggler(table(8), Time(0));
  EXPECT_LT(last_of_group_1(none), microseconds(2));
}

TEST(SwitchReduce, AShareOfTheTableKeepsAGroupFromAnothersStraggler) {
  ReduceSpec spec = table(8);
  spec.arbitration = TableArbitration::round_robin;
  const Time late = microseconds(20);
  EXPECT_GT(last_of_group_1(beside_a_straggler(spec, late)), late);  // turns do not help: group 0 came first
  spec.group_entries = 4;
  const Answered answered = beside_a_straggler(spec, late);
  ASSERT_EQ(answered.sums.size(), 24U);
  EXPECT_LT(last_of_group_1(answered), microseconds(2));
  spec.arbitration = TableArbitration::fifo;  // its own requests stand behind those of group 0
  EXPECT_GT(last_of_group_1(beside_a_straggler(spec, late)), late);
}

}  // namespace
}  // namespace weft
