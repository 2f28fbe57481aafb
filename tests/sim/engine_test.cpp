// Wires and the windowed engine, with toy chips. SystemC elaborates once a process: one engine a test, and where two
// runs are compared, each in a child.
#include "sim/engine.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <queue>

#include "sim/error.h"
#include "sim/wire.h"

namespace weft {
namespace {

struct Message {
  Time when;
  int hops = 0;
  bool operator>(const Message& other) const { return when > other.when; }
};

// Notes what arrives and passes it on with one hop less, `delay` after it came, over a wire of `latency`.
class Toy final : public Chip {
 public:
  Toy(Time latency, Time delay, Wire<Message>& in, Wire<Message>& out) : step_(latency + delay), in_(&in), out_(&out) {}

  void begin(const Message& message) { pending_.push(message); }
  void advance(Time until) override {
    ++advanced;
    in_->receive([&](const Message& m) {
      late += m.when < advanced_to_ ? 1 : 0;
      pending_.push(m);
    });
    advanced_to_ = until;
    while (!pending_.empty() && pending_.top().when < until) {
      const Message m = pending_.top();
      pending_.pop();
      seen.push_back(m);
      if (m.hops == -1) throw InputError("toy.json", "/hops", "expected hops, got none");
      if (m.hops > 0) out_->send({m.when + step_, m.hops - 1});
    }
  }
  [[nodiscard]] Time next_activity() const override { return pending_.empty() ? Time::max() : pending_.top().when; }

  [[nodiscard]] Time silent_until(Time now) const override { return announces ? std::max(now, next_activity()) : now; }

  std::vector<Message> seen;
  int advanced = 0;
  int late = 0;            // messages that came after their time
  bool announces = false;  // when it will send next, so that windows may be long

 private:
  Time step_;
  Time advanced_to_;
  Wire<Message>* in_;
  Wire<Message>* out_;
  std::priority_queue<Message, std::vector<Message>, std::greater<>> pending_;
};

// Toys in a ring, each with a wire to the next.
struct Ring {
  Ring(std::size_t size, Time latency, Time delay) : wires(size) {
    for (std::size_t i = 0; i < size; ++i) toys.emplace_back(latency, delay, wires[i], wires[(i + 1) % size]);
  }
  EngineStatistics run(const EngineSpec& spec, const std::function<void(Time)>& between = {}) {
    Engine engine(spec);
    for (std::size_t i = 0; i < toys.size(); ++i) engine.add_chip("toy" + std::to_string(i), toys[i]);
    for (std::size_t i = 0; i < toys.size(); ++i) {
      engine.add_wire(wires[i], toys[(i + toys.size() - 1) % toys.size()], toys[i]);
    }
    return engine.run(between);
  }
  std::vector<Wire<Message>> wires;
  std::deque<Toy> toys;
};

TEST(Wire, HandsOverOnlyBetweenWindowsAndInTheOrderOfSending) {
  Wire<Message> wire;
  std::vector<int> got;
  const auto receive = [&] { wire.receive([&](const Message& m) { got.push_back(m.hops); }); };
  wire.send({Time(9), 1});
  wire.send({Time(5), 2});
  receive();
  EXPECT_TRUE(got.empty());
  EXPECT_EQ(wire.flip(), Time(5));
  wire.send({Time(7), 3});
  EXPECT_EQ(wire.flip(), Time(5));  // nothing read yet
  receive();
  EXPECT_EQ(got, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(wire.flip(), Time::max());
}

TEST(Inbox, NamesTheWiresThatHaveSomethingOnceAndInTheOrderOfTheirSlots) {
  std::array<Wire<Message>, 3> wires;
  Inbox inbox;
  for (std::uint32_t slot = 0; slot < 3; ++slot) wires[slot].announce_to(inbox, slot);
  std::vector<std::uint32_t> named;
  const auto drain = [&] {
    named.clear();
    inbox.drain([&](std::uint32_t slot) {
      named.push_back(slot);
      wires[slot].receive([](const Message&) {});
    });
  };
  wires[2].send({Time(1), 1});
  wires[0].send({Time(2), 1});
  drain();
  EXPECT_TRUE(named.empty());  // nothing has been handed over yet
  wires[2].flip();
  wires[0].flip();
  wires[2].send({Time(3), 1});
  wires[2].flip();
  wires[1].flip();
  drain();
  EXPECT_EQ(named, (std::vector<std::uint32_t>{0, 2}));
  drain();
  EXPECT_TRUE(named.empty());
}

TEST(Wire, IsNotedByItsSenderOnceAWindow) {
  Wire<Message> wire;
  std::vector<WireBase*> used;
  wire.note_in(used, 7);
  EXPECT_EQ(wire.receiver(), 7U);
  wire.send({Time(1), 1});
  wire.send({Time(2), 1});
  EXPECT_EQ(used, (std::vector<WireBase*>{&wire}));
}

TEST(Engine, DeliversMessagesAtExactlyTheirTime) {
  Ring ring(2, nanoseconds(100), Time(333));
  ring.toys[0].begin({Time(12'345), 10});
  const EngineStatistics statistics = ring.run({.window = nanoseconds(100), .threads = 1});
  const Time step = nanoseconds(100) + Time(333);
  for (int hop = 0; hop <= 10; ++hop) {
    const Toy& toy = ring.toys[static_cast<std::size_t>(hop % 2)];
    const auto index = static_cast<std::size_t>(hop / 2);
    ASSERT_LT(index, toy.seen.size());
    EXPECT_EQ(toy.seen[index].when, Time(12'345) + step * hop);
    EXPECT_EQ(toy.seen[index].hops, 10 - hop);
  }
  EXPECT_GE(statistics.end, Time(12'345) + step * 10);
  EXPECT_LT(statistics.end, Time(12'345) + step * 10 + nanoseconds(100) + Time(1));
}

TEST(Engine, JumpsOverTimeInWhichAllSleepAndDoesNotWakeIdleChips) {
  Ring ring(3, nanoseconds(1), Time(0));
  ring.toys[0].begin({seconds(1), 0});
  ring.toys[0].begin({seconds(2), 1});
  std::vector<Time> ends;
  const EngineStatistics statistics =
      ring.run({.window = nanoseconds(1), .threads = 1}, [&](Time end) { ends.push_back(end); });
  EXPECT_EQ(statistics.windows, 3);  // one for each message, of some 2 * 10^9
  EXPECT_EQ(ends,
            (std::vector<Time>{seconds(1) + nanoseconds(1), seconds(2) + nanoseconds(1), seconds(2) + nanoseconds(2)}));
  EXPECT_EQ(ring.toys[0].advanced, 2);
  EXPECT_EQ(ring.toys[1].advanced, 1);
  EXPECT_EQ(ring.toys[2].advanced, 0);
}

TEST(Engine, LongWindowsWhileAllAreSilentDelayNoMessage) {
  Ring ring(4, nanoseconds(100), Time(7));
  for (Toy& toy : ring.toys) toy.announces = true;
  ring.toys[0].begin({Time(5), 3});
  ring.toys[2].begin({microseconds(500), 5});  // silent for long, while the others pass messages on
  const EngineStatistics statistics = ring.run({.window = nanoseconds(100), .threads = 1});
  for (const Toy& toy : ring.toys) EXPECT_EQ(toy.late, 0);
  EXPECT_EQ(ring.toys[3].seen.at(0).when, Time(5) + (nanoseconds(100) + Time(7)) * 3);
  EXPECT_LE(statistics.windows, 12);
}

TEST(Engine, KeepsTheTypeOfAnException) {
  Ring ring(2, nanoseconds(100), Time(0));
  ring.toys[0].begin({Time(1), 3});
  ring.toys[1].begin({microseconds(1), -1});
  EXPECT_THROW(ring.run({.window = nanoseconds(100), .threads = 1}), InputError);
  EXPECT_EQ(ring.toys[0].seen.size(), 2U);
}

TEST(Engine, KeepsTheTypeOfAnExceptionOfAnotherThread) {
  Ring ring(2, nanoseconds(100), Time(0));
  ring.toys[0].begin({Time(1), 0});
  ring.toys[1].begin({Time(1), -1});
  EXPECT_THROW(ring.run({.window = nanoseconds(100), .threads = 2}), InputError);
}

TEST(Engine, RefusesAWireOfAChipItDoesNotKnow) {
  Ring ring(2, nanoseconds(1), Time(0));
  Engine engine({.window = nanoseconds(1), .threads = 1});
  engine.add_chip("toy0", ring.toys[0]);
  EXPECT_THROW(engine.add_wire(ring.wires[0], ring.toys[0], ring.toys[1]), InternalError);
}

// What a run saw and how many windows it took, as one number, from a child process.
std::uint64_t fingerprint(std::uint32_t threads) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    Ring ring(8, nanoseconds(10), Time(77));
    for (int i = 0; i < 200; ++i) {
      ring.toys[static_cast<std::size_t>(i % 8)].begin({Time(i) * 1'234'567, 20 + i % 13});
    }
    std::uint64_t sum = static_cast<std::uint64_t>(ring.run({.window = nanoseconds(10), .threads = threads}).windows);
    for (const Toy& toy : ring.toys) {
      for (const Message& m : toy.seen) {
        sum = sum * 1'000'003 + static_cast<std::uint64_t>(m.when.count()) * 31 + static_cast<std::uint64_t>(m.hops);
      }
    }
    const bool written = write(ends[1], &sum, sizeof sum) == static_cast<ssize_t>(sizeof sum);
    _exit(written ? 0 : 1);
  }
  std::uint64_t sum = 0;
  const bool got = read(ends[0], &sum, sizeof sum) == static_cast<ssize_t>(sizeof sum);
  int status = -1;
  waitpid(child, &status, 0);
  close(ends[0]);
  close(ends[1]);
  EXPECT_TRUE(got && status == 0);
  return sum;
}

TEST(Engine, FindsTheSameWithAnyNumberOfThreads) {
  const std::uint64_t one = fingerprint(1);
  EXPECT_NE(one, 0U);
  EXPECT_EQ(fingerprint(2), one);
  EXPECT_EQ(fingerprint(5), one);
}

// Who sleeps does not say by itself that something was given to it between two windows.
TEST(Conductor, LearnsOfAChipThatIsGivenSomethingToDoEarlier) {
  Ring ring(2, nanoseconds(10), nanoseconds(1));
  Conductor conductor({nanoseconds(10), 1});
  for (std::size_t i = 0; i < 2; ++i) conductor.add_chip("toy" + std::to_string(i), ring.toys[i]);
  for (std::size_t i = 0; i < 2; ++i) conductor.add_wire(ring.wires[i], ring.toys[1 - i], ring.toys[i]);
  for (const int at : {5, 100}) ring.toys[0].begin({nanoseconds(at)});
  bool given = false;
  conductor.run_until([&](Time now) {
    if (!given) {
      ring.toys[1].begin({now + nanoseconds(2)});
      conductor.changed(ring.toys[1]);
    }
    given = true;
    return false;
  });
  EXPECT_EQ(ring.toys[0].seen.size(), 2U);
  ASSERT_EQ(ring.toys[1].seen.size(), 1U);
  EXPECT_EQ(ring.toys[1].late, 0);
}

}  // namespace
}  // namespace weft
