// One execution of a schedule with values, for schedule_check: memories, connections, and agents (groups of warps) that
// go through their steps.
#pragma once

#include <boost/dynamic_bitset.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "network/schedule_check.h"

namespace weft {

class ScheduleRun {
 public:
  ScheduleRun(const CollectiveSchedule& schedule, const ScheduleRequest& request, std::uint32_t slots);

  // To the end or to an error (see check_schedule). `backwards`: the last rank, block and group goes first.
  void run(bool backwards);
  // Throws where the result is not the collective's.
  void check_result() const;
  [[nodiscard]] ScheduleTotals take_totals() { return std::move(totals_); }

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX;
  static constexpr std::uint32_t kInitial = kNobody - 1;  // the writer of what stands there from the beginning

  struct Cell {
    std::uint64_t value = 0;
    std::uint32_t writer = kNobody;  // agent
    std::uint64_t step = 0;
  };
  using Cells = std::vector<Cell>;

  // What is known at a point of a rank's work.
  struct Knowledge {
    std::uint64_t chain = 0;          // messages one after the other that led here
    boost::dynamic_bitset<> started;  // barrier: ranks that are known to have begun
    void merge(const Knowledge& other);
  };
  struct Parcel {
    std::vector<std::uint64_t> values;
    Knowledge known;
  };
  struct Connection {
    std::deque<Parcel> parcels;
    std::uint32_t sender = kNobody;  // agents
    std::uint32_t receiver = kNobody;
  };
  struct Agent {
    std::uint32_t rank = 0;
    std::uint32_t block = 0;
    std::uint32_t group = 0;
    std::uint32_t channel = 0;
    std::uint64_t steps = 0;
    std::uint64_t done = 0;
    Knowledge known;
    std::vector<Knowledge> known_after;  // each step
    ScheduleStep step;                   // the next one
  };
  // Why an agent stands: whom it waits for.
  struct Wait {
    std::uint32_t rank = kNobody;  // nobody: it can go on
    std::string what;
  };

  void add_agents();
  void fetch(Agent& agent);
  void check_step(const Agent& agent) const;
  void check_range(const Agent& agent, ScheduleBuffer buffer, std::int64_t offset) const;
  [[nodiscard]] Wait waits_for(const Agent& agent);
  void execute(Agent& agent);
  void take_in(Agent& agent, std::vector<std::uint64_t>& values);
  void add_cells(const Agent& agent, ScheduleBuffer buffer, std::int64_t offset, std::vector<std::uint64_t>& values);
  void put_out(Agent& agent, const std::vector<std::uint64_t>& values);
  void check_connections() const;
  void check_barrier() const;
  [[noreturn]] void report_deadlock();
  [[nodiscard]] std::string describe(const Agent& agent, std::uint64_t step) const;
  [[noreturn]] void fail(const Agent& agent, const std::string& message) const;
  [[nodiscard]] Connection& connection(std::uint32_t from, std::uint32_t to, std::uint32_t channel);
  void claim(std::uint32_t& end, const Agent& agent, const char* what) const;
  [[nodiscard]] std::uint32_t index_of(const Agent& agent) const;
  [[nodiscard]] std::uint32_t agent_of(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const;
  [[nodiscard]] std::int64_t buffer_bytes(std::uint32_t rank, ScheduleBuffer buffer) const;
  [[nodiscard]] Cells& cells(std::uint32_t rank, ScheduleBuffer buffer);
  [[nodiscard]] Cells result(std::uint32_t rank) const;

  const CollectiveSchedule& schedule_;
  const ScheduleRequest& request_;
  std::uint32_t slots_;
  std::vector<Agent> agents_;
  std::vector<std::vector<std::uint32_t>> first_agent_;  // by rank and block
  std::vector<std::array<Cells, 3>> memory_;             // by rank: input, output, scratch
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Connection> connections_;
  ScheduleTotals totals_;
};

}  // namespace weft
