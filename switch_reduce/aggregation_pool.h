// The slots of a router that sums chunks, as in SwitchML (Sapio et al., NSDI 2021, algorithms 2 and 3): chunk k of a
// stream uses slot k mod S of the stream. A slot knows who has contributed, so what is sent twice counts once, and
// keeps its result until the next chunk comes. Endpoints send a chunk only when the one a window before has come back:
// with two windows of slots, a slot is used again only when its result has reached all, whatever was lost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "network/aggregator.h"
#include "switch_reduce/aggregation_spec.h"

namespace weft {

class AggregationPool final : public Aggregator {
 public:
  // Throws InputError when there is not a slot a stream, or with losses not two windows of them.
  AggregationPool(const AggregationSpec& spec, const std::vector<AggregationGroup>& groups,
                  const std::vector<TreePlace>& places, std::uint32_t lanes);

  [[nodiscard]] std::uint32_t slots() const override { return static_cast<std::uint32_t>(slots_.size()); }
  Contributed contribute(const Packet& packet, std::uint32_t lane, Time now) override;
  std::optional<std::uint32_t> finish(const Packet& sum) override;
  void count_stall(Time duration) override;
  [[nodiscard]] AggregatorStatistics statistics() const override { return statistics_; }

 private:
  enum class State : std::uint8_t { unused, gathering, summed, finished };
  struct Slot {
    State state = State::unused;
    std::uint32_t chunk = 0;
    std::uint32_t missing = 0;
    LineAddress line = 0;
    Time ready;
  };
  struct Group {
    std::uint32_t first_slot = 0;
    std::uint32_t contributors = 0;
    std::uint32_t lanes = 0;  // elements that an adder takes a clock
    std::int64_t element_bytes = 0;
    bool root = false;
  };

  [[nodiscard]] std::uint32_t slot_of(const Packet& packet) const;
  Contributed duplicate(const Slot& slot, const Packet& packet, std::uint32_t index);
  void add(Slot& slot, const Group& group, const Packet& packet, std::uint32_t lane, Time now);

  AggregationSpec spec_;
  Clock clock_;
  std::uint32_t per_stream_ = 0;
  std::uint32_t words_ = 0;  // of a slot's set of contributors
  std::vector<Group> groups_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> seen_;  // by slot: who has contributed, as a bit each
  std::vector<Time> adders_free_;    // by lane and adder
  std::uint32_t in_use_ = 0;
  AggregatorStatistics statistics_;
};

}  // namespace weft
