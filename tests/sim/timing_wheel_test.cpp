// The event queue of a chip, against what a sorted queue would do.
#include "sim/timing_wheel.h"

#include <gtest/gtest.h>

#include <queue>
#include <random>
#include <vector>

namespace weft {
namespace {

// An event that is kept in lists only.
struct Wide {
  int number = 0;
  std::array<std::uint32_t, 3> rest{};
  Wide(int n) : number(n) {}  // NOLINT(google-explicit-constructor)
  Wide() = default;
  operator int() const { return number; }  // NOLINT(google-explicit-constructor)
};

using Handled = std::vector<std::pair<std::int64_t, int>>;

template <class Event>
class TimingWheelOf : public testing::Test {
 protected:
  using Wheel = TimingWheel<Event>;
  static Handled run(Wheel& wheel, std::int64_t end) {
    Handled handled;
    wheel.run_until(end, [&](int event) { handled.emplace_back(wheel.now(), event); });
    return handled;
  }
};
using Events = testing::Types<int, Wide>;
TYPED_TEST_SUITE(TimingWheelOf, Events);

TYPED_TEST(TimingWheelOf, HandlesEventsByTickThenByInsertion) {
  typename TestFixture::Wheel wheel;
  wheel.push(7, 1);
  wheel.push(3, 2);
  wheel.push(7, 3);
  wheel.push(3, 4);
  EXPECT_EQ(wheel.next(), 3);
  EXPECT_EQ(this->run(wheel, 100), (Handled{{3, 2}, {3, 4}, {7, 1}, {7, 3}}));
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.next(), TestFixture::Wheel::kNever);
  EXPECT_EQ(wheel.now(), 100);
}

TYPED_TEST(TimingWheelOf, LeavesEventsAtTheEndForTheNextRun) {
  typename TestFixture::Wheel wheel;
  wheel.push(10, 1);
  EXPECT_EQ(this->run(wheel, 10), Handled{});
  EXPECT_EQ(wheel.now(), 10);
  EXPECT_EQ(this->run(wheel, 11), (Handled{{10, 1}}));
}

TYPED_TEST(TimingWheelOf, HandlesWhatHandlersPushIntoTheSameTick) {
  typename TestFixture::Wheel wheel;
  wheel.push(5, 50);  // each pushes the next until 0, and the pool moves
  wheel.push(5, 0);
  std::vector<int> order;
  wheel.run_until(6, [&](int event) {
    order.push_back(event);
    for (int i = 0; event > 0 && i < 2 && order.size() + 1 < 200; ++i) wheel.push(5, event - 1);
  });
  ASSERT_GT(order.size(), 100U);
  EXPECT_EQ((std::vector<int>(order.begin(), order.begin() + 6)), (std::vector<int>{50, 0, 49, 49, 48, 48}));
  EXPECT_TRUE(wheel.empty());
}

TYPED_TEST(TimingWheelOf, FarEventsComeBeforeThosePushedLaterForTheirTick) {
  typename TestFixture::Wheel wheel;
  wheel.push(1'000'000, 1);
  wheel.push(999'999, 2);
  wheel.push(1'000'000, 3);
  EXPECT_EQ(wheel.next(), 999'999);
  Handled handled;
  wheel.run_until(2'000'000, [&](int event) {
    handled.emplace_back(wheel.now(), event);
    if (event == 2) wheel.push(1'000'000, 4);
  });
  EXPECT_EQ(handled, (Handled{{999'999, 2}, {1'000'000, 1}, {1'000'000, 3}, {1'000'000, 4}}));
}

TYPED_TEST(TimingWheelOf, JumpsOverEmptyTimeAndAdmitsWhatComesNear) {
  typename TestFixture::Wheel wheel;
  wheel.push(std::int64_t{1} << 50, 1);
  EXPECT_EQ(this->run(wheel, (std::int64_t{1} << 50) - 1), Handled{});
  wheel.push((std::int64_t{1} << 50) - 1, 2);
  EXPECT_EQ(this->run(wheel, (std::int64_t{1} << 50) + 1),
            (Handled{{(std::int64_t{1} << 50) - 1, 2}, {std::int64_t{1} << 50, 1}}));
}

TYPED_TEST(TimingWheelOf, FindsTheNextEventAllAroundTheWheel) {
  for (const std::int64_t start : {0, 1, 63, 64, 4000, 4095, 4096}) {
    for (const std::int64_t ahead : {0, 1, 62, 63, 64, 65, 4032, 4095, 4096, 5000}) {
      typename TestFixture::Wheel wheel;
      static_cast<void>(this->run(wheel, start));
      wheel.push(start + ahead, 1);
      EXPECT_EQ(wheel.next(), start + ahead) << start << " " << ahead;
    }
  }
}

// Thousands of chips have one each.
TEST(TimingWheel, TakesFewKilobytesOfTheHost) {
  EXPECT_LE(sizeof(TimingWheel<Wide>), 9U << 10);
  EXPECT_LE(sizeof(TimingWheel<int, 1024>), 5U << 10);
}

TYPED_TEST(TimingWheelOf, AnnouncesEventsBeforeItHandlesThem) {
  typename TestFixture::Wheel wheel;
  for (int event = 0; event < 100; ++event) wheel.push(event < 50 ? 7 : 2 * event, event);
  std::vector<bool> announced(100);
  std::vector<int> handled;
  const auto announce = [&](int event) { announced[static_cast<std::size_t>(event)] = true; };
  const auto handle = [&](int event) {
    handled.push_back(event);
    EXPECT_TRUE(announced[static_cast<std::size_t>(event)]) << event;
  };
  for (const std::int64_t end : {7, 8, 110, 300}) {  // 0, 50, 5, 45 events
    wheel.announce_until(end, announce);
    wheel.run_until(end, handle);
  }
  EXPECT_EQ(handled.size(), 100U);
}

TYPED_TEST(TimingWheelOf, RefusesThePast) {
  typename TestFixture::Wheel wheel;
  static_cast<void>(this->run(wheel, 10));
  EXPECT_THROW(wheel.push(9, 1), InternalError);
}

// A model: (tick, number of insertion) in a priority queue. Handlers push at random distances, 0 and far ones included.
TYPED_TEST(TimingWheelOf, HandlesRandomEventsAsASortedQueue) {
  typename TestFixture::Wheel wheel;
  using Entry = std::pair<std::int64_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> model;
  std::mt19937 random(7);
  int pushed = 0;
  const auto push = [&] {
    static constexpr std::array<std::int64_t, 7> kReach{1, 3, 100, 4096, 5000, 40000, 300000};
    const std::int64_t tick = wheel.now() + random() % kReach.at(random() % kReach.size());
    model.emplace(tick, pushed);
    wheel.push(tick, pushed++);
  };
  for (int i = 0; i < 1000; ++i) push();
  std::int64_t end = 0;
  while (!wheel.empty()) {
    end = std::max(end, wheel.next()) + static_cast<std::int64_t>(random() % 3000);
    wheel.run_until(end, [&](int event) {
      ASSERT_EQ((Entry{wheel.now(), event}), model.top());
      model.pop();
      if (pushed < 200'000) {
        for (auto n = random() % 3; n > 0; --n) push();
      }
    });
    ASSERT_EQ(wheel.now(), end);
    ASSERT_EQ(wheel.next(), model.empty() ? TestFixture::Wheel::kNever : model.top().first);
    if (pushed < 200'000) push();
  }
  EXPECT_TRUE(model.empty());
  EXPECT_GE(pushed, 200'000);
}

}  // namespace
}  // namespace weft
