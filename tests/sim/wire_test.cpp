#include "sim/wire.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft {
namespace {

struct Message {
  Time when;
  int number = 0;
};

// The time with which it is sent counts, not the message's own: else who receives it would be woken too early.
TEST(Wire, HandsOverTheEarliestArrival) {
  Wire<Message> wire;
  EXPECT_EQ(wire.flip(), Time::max());
  wire.send({Time(5), 1}, Time(40));
  wire.send({Time(30), 2});
  wire.send({Time(1), 3}, Time(50));
  EXPECT_EQ(wire.flip(), Time(30));
  wire.send({Time(1), 4}, Time(60));
  EXPECT_EQ(wire.flip(), Time(30));  // what was not received yet is still to come
  std::vector<int> order;
  std::vector<Time> times;
  wire.receive([&](const Message& message) {
    order.push_back(message.number);
    times.push_back(message.when);
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(times, (std::vector<Time>{Time(40), Time(30), Time(50), Time(60)}));
  EXPECT_EQ(wire.flip(), Time::max());
}

}  // namespace
}  // namespace weft
