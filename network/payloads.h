// What packets carry, where values travel (functional mode): beside the packets, so that these stay small and cost
// nothing without. Who sends leaves the values under what the packet says of itself, who receives takes them: at least
// a window of the engine later, so which thread comes first does not matter.
#pragma once

#include <compare>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "network/line_values.h"

namespace weft {

class Payloads {
 public:
  // `group_members`: how many GPUs get a multicast write, by group.
  explicit Payloads(std::vector<std::uint32_t> group_members) : group_members_(std::move(group_members)) {}

  // Of the packet's line `line`. Without values, they come later. A packet that could be taken for another one under
  // way is a broken invariant.
  void put(const Packet& packet, LineAddress line, const LineValues* values);
  void fill(const Packet& packet, LineAddress line, const LineValues& values);
  // Once by the receiver, of a multicast write by each of the group. `into` gets values that come later when they do:
  // nobody may read it before.
  void take(const Packet& packet, LineAddress line, LineValues& into);
  // Of a packet that had its values when it was sent.
  LineValues take(const Packet& packet, LineAddress line);
  [[nodiscard]] std::size_t under_way() const { return payloads_.size(); }

 private:
  struct Key {
    std::uint64_t ends = 0;  // kind, source, destination
    std::uint64_t what = 0;  // agent, line
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Payload {
    std::uint32_t readers = 1;  // that have not taken it
    bool filled = false;
    LineValues values{};
    std::vector<LineValues*> waiting;  // of readers that came before the values
  };
  static Key key_of(const Packet& packet, LineAddress line);

  std::vector<std::uint32_t> group_members_;
  std::mutex mutex_;
  std::unordered_map<Key, Payload, Hash> payloads_;  // never gone through
};

}  // namespace weft
