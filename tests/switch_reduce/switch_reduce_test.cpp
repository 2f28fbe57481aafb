// The reduction table in a switch: what formulas say of its occupancy and throughput, and what stragglers do to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "switch_reduce/reduction_table.h"
#include "tests/network/switch_bench.h"
#include "tests/switch_reduce/small_table.h"

namespace weft {
namespace {

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
