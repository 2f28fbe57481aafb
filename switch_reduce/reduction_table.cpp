#include "switch_reduce/reduction_table.h"

#include <algorithm>
#include <bit>

#include "sim/error.h"

namespace weft {

ReductionTable::ReductionTable(const ReduceSpec& spec, std::uint32_t tables, std::uint32_t members,
                               std::unique_ptr<LineSums> sums)
    : spec_(spec),
      clock_(spec.adders.clock),
      entry_bytes_(entry_bytes(spec, members)),
      entries_per_port_(static_cast<std::uint32_t>(spec.table_bytes_per_port / entry_bytes_)),
      tables_(tables),
      adders_free_(std::size_t{tables} * spec.adders.per_port),
      stalled_(tables),
      sums_(std::move(sums)) {
  WEFT_CHECK(entries_per_port_ > 0, "a reduction table holds at least one entry");
  WEFT_CHECK(spec.adders.per_port > 0, "a table without adders");
  entries_.resize(std::size_t{entries_per_port_} * tables);
  for (std::size_t i = entries_.size(); i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
  buckets_.assign(std::bit_ceil(entries_.size()), kNone);
}

std::uint32_t& ReductionTable::of_group(std::uint32_t table, std::uint32_t group) {
  const std::size_t at = std::size_t{group} * tables_.size() + table;
  if (at >= by_group_.size()) by_group_.resize((std::size_t{group} + 1) * tables_.size(), 0);
  return by_group_[at];
}

bool ReductionTable::full(std::uint32_t table, std::uint32_t group) {
  return tables_[table].occupied == entries_per_port_ ||
         (spec_.group_entries > 0 && of_group(table, group) >= spec_.group_entries);
}

std::uint32_t ReductionTable::take_entry(std::uint32_t table, const Packet& packet, std::uint32_t contributions,
                                         DataType type, Time now) {
  statistics_.entry_seconds += to_seconds(now - counted_until_) * in_use_;
  counted_until_ = now;
  ++in_use_;
  ++statistics_.entries_opened;
  if (spec_.group_entries > 0) ++of_group(table, packet.destination);
  statistics_.table_high_water_bytes =
      std::max(statistics_.table_high_water_bytes, std::int64_t{++tables_[table].occupied} * entry_bytes_);
  const std::uint32_t index = free_.back();
  free_.pop_back();
  entries_[index] = {.packet = packet,
                     .table = table,
                     .contributions = contributions,
                     .missing = contributions,
                     .type = type,
                     .sum_ready = now,
                     .last_use = now};
  return index;
}

void ReductionTable::free_entry(std::uint32_t entry, Time now) {
  statistics_.entry_seconds += to_seconds(now - counted_until_) * in_use_;
  counted_until_ = now;
  --in_use_;
  --tables_[entries_[entry].table].occupied;
  if (spec_.group_entries > 0) --of_group(entries_[entry].table, entries_[entry].packet.destination);
  free_.push_back(entry);
}

// The adder of the port that is free first takes it, a clock for as many elements as it has lanes.
void ReductionTable::operands_came(Entry& at, const Packet& operand, std::uint32_t count, Time now) {
  const std::uint32_t lanes = spec_.adders.lanes_of(at.type);
  WEFT_CHECK(lanes > 0, "a sum of a type that the switch does not add");
  const std::int64_t elements = operand.payload / bytes_per_element(at.type);
  const Time takes = clock_.edge((elements + lanes - 1) / lanes * count);
  const auto first = adders_free_.begin() + static_cast<std::ptrdiff_t>(at.table) * spec_.adders.per_port;
  Time& adder = *std::min_element(first, first + spec_.adders.per_port);
  adder = std::max(adder, now) + takes;
  statistics_.adders_busy += takes;
  at.sum_ready = std::max(at.sum_ready, adder + spec_.latency);
}

std::optional<std::uint32_t> ReductionTable::open(std::uint32_t table, const Packet& request,
                                                  std::uint32_t contributions, DataType type, Time now) {
  if (full(table, request.destination)) return std::nullopt;
  return take_entry(table, request, contributions, type, now);
}

std::optional<Time> ReductionTable::add(std::uint32_t entry, const Packet& reply, Time now) {
  Entry& at = entries_[entry];
  if (sums_ != nullptr) sums_->add(entry, reply);
  if (spec_.accumulation.order == AccumulationOrder::arrival) {
    operands_came(at, reply, 1, now);
  } else if (at.missing == reply.count) {  // nothing is added before the last one is there
    operands_came(at, reply, at.contributions, now);
  }
  WEFT_CHECK(at.missing >= reply.count, "a contribution to an entry that waits for none");
  at.missing -= reply.count;
  if (at.missing != 0) return std::nullopt;
  statistics_.reduced_bytes += reply.payload;
  return at.sum_ready;
}

Pushed ReductionTable::push(std::uint32_t table, const Packet& packet, std::uint32_t contributions, DataType type,
                            Time now) {
  Pushed pushed;
  std::uint32_t entry = find(packet.destination, packet.line);
  if (entry == kNone) {
    if (full(table, packet.destination)) {
      const std::uint32_t victim = tables_[table].oldest;
      if (victim == kNone) return pushed;
      pushed.evicted_at = std::max(now, entries_[victim].sum_ready);
      pushed.evicted = evict(victim, now);
      ++statistics_.evicted;
      if (full(table, packet.destination)) return pushed;  // the group's share: the victim was another group's
    }
    entry = take_entry(table, packet, contributions, type, now);
    std::uint32_t& first = bucket(packet.destination, packet.line);
    entries_[entry].next = first;
    first = entry;
  }
  Entry& at = entries_[entry];
  WEFT_CHECK(at.missing >= packet.count, "a contribution to an entry that waits for none");
  operands_came(at, packet, 1, now);
  at.missing -= packet.count;
  pushed.entry = entry;
  if (at.missing != 0) {
    used(entry, now);
    return pushed;
  }
  forget(entry);
  statistics_.reduced_bytes += packet.payload;
  pushed.ready = at.sum_ready;
  return pushed;
}

Packet ReductionTable::close(std::uint32_t entry, Time now) {
  Packet packet = entries_[entry].packet;
  packet.count = static_cast<std::uint8_t>(entries_[entry].contributions);
  if (sums_ != nullptr) {
    packet.kind = PacketKind::read_reply;  // of pull on one level
    sums_->send(entry, packet);
  }
  free_entry(entry, now);
  return packet;
}

std::uint32_t& ReductionTable::bucket(std::uint32_t group, LineAddress line) {
  const std::uint64_t key = (std::uint64_t{group} << 32 | line) * 0x9E3779B97F4A7C15U;
  return buckets_[(key >> 32) & (buckets_.size() - 1)];
}

std::uint32_t ReductionTable::find(std::uint32_t group, LineAddress line) {
  std::uint32_t at = bucket(group, line);
  while (at != kNone && (entries_[at].packet.line != line || entries_[at].packet.destination != group)) {
    at = entries_[at].next;
  }
  return at;
}

// Moves to the newest end of its table's list, from wherever it is.
void ReductionTable::used(std::uint32_t entry, Time now) {
  Table& table = tables_[entries_[entry].table];
  Entry& at = entries_[entry];
  at.last_use = now;
  if (table.newest == entry) return;
  if (at.newer != kNone) {  // is in the list
    entries_[at.newer].older = at.older;
    (at.older == kNone ? table.oldest : entries_[at.older].newer) = at.newer;
  }
  at.older = table.newest;
  at.newer = kNone;
  (table.newest == kNone ? table.oldest : entries_[table.newest].newer) = entry;
  table.newest = entry;
}

// Out of the list by last use and out of reach of further contributions.
void ReductionTable::forget(std::uint32_t entry) {
  Entry& at = entries_[entry];
  Table& table = tables_[at.table];
  if (table.oldest == entry || at.older != kNone) {
    (at.older == kNone ? table.oldest : entries_[at.older].newer) = at.newer;
    (at.newer == kNone ? table.newest : entries_[at.newer].older) = at.older;
  }
  std::uint32_t* link = &bucket(at.packet.destination, at.packet.line);
  while (*link != entry) link = &entries_[*link].next;
  *link = at.next;
}

Packet ReductionTable::evict(std::uint32_t entry, Time now) {
  forget(entry);
  Packet packet = entries_[entry].packet;
  packet.count = static_cast<std::uint8_t>(entries_[entry].contributions - entries_[entry].missing);
  free_entry(entry, now);
  return packet;
}

std::optional<Time> ReductionTable::next_timeout(std::uint32_t table) const {
  if (spec_.timeout == Time(0) || tables_[table].oldest == kNone) return std::nullopt;
  return entries_[tables_[table].oldest].last_use + spec_.timeout;
}

std::optional<Packet> ReductionTable::take_timed_out(std::uint32_t table, Time now) {
  const std::optional<Time> due = next_timeout(table);
  if (!due || *due > now) return std::nullopt;
  ++statistics_.timed_out;
  return evict(tables_[table].oldest, now);
}

void ReductionTable::count_stall(std::uint32_t table, Time duration) {
  statistics_.stalled += duration;
  stalled_[table] += duration;
}

}  // namespace weft
