// The end of a message's streams at a GPU: chunks in order, a window of them under way, and those sent again whose sum
// does not come (SwitchML: Sapio et al., NSDI 2021, algorithm 4). A sum is the acknowledgement. Chunk k goes when all
// up to k less the window have come back; SwitchML's slots clock themselves one by one, so there a lost packet holds up
// its own slot only. What has been posted is kept here until its sum comes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "network/aggregator.h"
#include "network/packet.h"

namespace weft {

struct MessageEndpointSpec {
  struct Group {
    std::uint32_t streams = 0;  // 0: this GPU is no member
    std::uint32_t window = 1;   // of a stream, in chunks
    AggregationTree::Member place;
  };
  std::vector<Group> groups;
  Time timeout;  // 0: nothing is sent again
  PacketLoss loss;
  std::uint64_t link = 0;  // of the packets that come, for losses
};

struct MessageStatistics {
  std::int64_t chunks = 0;  // whose sums have come
  std::int64_t retransmissions = 0;
  std::int64_t duplicates = 0;  // sums that had come before
  std::int64_t lost = 0;        // packets, on the link to here
};

class MessageEndpoint {
 public:
  struct Sending {
    Packet packet;  // but for its lane
    std::uint16_t port = 0;
  };

  MessageEndpoint() = default;  // of a GPU without trees
  explicit MessageEndpoint(MessageEndpointSpec spec);

  // The next chunk of a stream, of `payload` bytes at `line`, for `agent`. What may go now is appended to `out`, here
  // and below.
  void post(std::uint16_t group, std::uint16_t stream, LineAddress line, std::uint32_t agent, std::uint16_t payload,
            Time now, std::vector<Sending>& out);
  // Returns whose chunk is done, when the sum has not come before and is not lost here.
  std::optional<std::uint32_t> sum_came(const Packet& sum, Time now, std::vector<Sending>& out);
  // When a chunk may have to be sent again, at the earliest; and sends those that are due.
  [[nodiscard]] std::optional<Time> next_timeout() const;
  void send_again(Time now, std::vector<Sending>& out);

  [[nodiscard]] const MessageStatistics& statistics() const { return statistics_; }

 private:
  struct Chunk {
    LineAddress line = 0;
    std::uint32_t agent = 0;
    std::uint16_t payload = 0;
    bool done = false;
    Time sent;
  };
  // Chunks done_ ... posted_, of which those below sent_ are under way, in a ring.
  struct Stream {
    std::vector<Chunk> chunks;  // a power of two of them
    std::uint32_t done = 0, sent = 0, posted = 0;
    std::uint16_t group = 0, number = 0;
    [[nodiscard]] Chunk& at(std::uint32_t chunk) { return chunks[chunk & (chunks.size() - 1)]; }
  };
  struct Timer {
    Time when;
    std::uint32_t stream = 0;
    std::uint32_t chunk = 0;
  };

  void send_window(Stream& stream, Time now, std::vector<Sending>& out);
  void send(Stream& stream, std::uint32_t chunk, Time now, std::vector<Sending>& out);
  static void grow(Stream& stream);

  MessageEndpointSpec spec_;
  std::vector<std::uint32_t> first_stream_;  // by group
  std::vector<Stream> streams_;
  std::vector<Timer> timers_;  // ascending, as all wait equally long; from first_timer_ on
  std::size_t first_timer_ = 0;
  std::uint64_t packets_ = 0;  // that came
  MessageStatistics statistics_;
};

}  // namespace weft
