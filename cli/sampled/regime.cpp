#include "cli/sampled/regime.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/sampled/ledger_members.h"
#include "sim/error.h"

namespace weft {

namespace {

using Json = nlohmann::json;

// Members in the order in which they stand, for writing and reading.
template <class Link, class Visit>
void visit_link(Link& l, Visit&& visit) {
  visit(l.payload_bytes, l.wire_bytes, l.packets, l.busy, l.busiest, l.stalled, l.queue_high_water);
}
template <class Switch, class Visit>
void visit_switch(Switch& s, Visit&& visit) {
  visit(s.reduced_bytes, s.multicast_bytes, s.table_high_water_bytes, s.stalled, s.adders_busy, s.entries_opened,
        s.refused, s.wasted_replies, s.evicted, s.timed_out, s.entry_seconds, s.stalled_by_table);
}
template <class Operation, class Visit>
void visit_operation(Operation& o, Visit&& visit) {
  visit(o.duration, o.early, o.behind, o.late, o.began, o.ended);
  visit_ledger(o.ledger, visit);
}
template <class Whole, class Visit>
void visit_sums(Whole& r, Visit&& visit) {
  visit(r.hbm_read_bytes, r.hbm_write_bytes, r.hbm_communication_bytes, r.unit_seconds_compute,
        r.unit_seconds_communication, r.gpus, r.apart, r.uncertainty, r.second);
}

struct Writer {
  Json out = Json::array();
  template <class... Members>
  void operator()(const Members&... members) {
    (out.push_back(members), ...);
  }
};
struct Reader {
  const Json& in;
  std::size_t next = 0;
  template <class... Members>
  void operator()(Members&... members) {
    (in.at(next++).get_to(members), ...);
  }
};

template <class Items, class VisitItem>
Json write_all(const Items& items, VisitItem&& visit_item) {
  Json out = Json::array();
  for (const auto& item : items) {
    Writer writer;
    visit_item(item, writer);
    out.push_back(std::move(writer.out));
  }
  return out;
}
template <class Items, class VisitItem>
void read_all(const Json& in, Items& items, VisitItem&& visit_item) {
  for (const Json& one : in) {
    Reader reader{one};
    visit_item(items.emplace_back(), reader);
  }
}

}  // namespace

std::string to_bytes(const Regime& regime) {
  Writer sums;
  visit_sums(regime, sums);
  const Json whole = {sums.out, write_all(regime.operations, [](const auto& o, auto& w) { visit_operation(o, w); }),
                      write_all(regime.links, [](const auto& l, auto& w) { visit_link(l, w); }),
                      write_all(regime.switches, [](const auto& s, auto& w) { visit_switch(s, w); })};
  const std::vector<std::uint8_t> bytes = Json::to_cbor(whole);
  return {bytes.begin(), bytes.end()};
}

Regime regime_from_bytes(const std::string& bytes) {
  try {
    const Json whole = Json::from_cbor(bytes);
    Regime regime;
    Reader sums{whole.at(0)};
    visit_sums(regime, sums);
    read_all(whole.at(1), regime.operations, [](auto& o, auto& r) { visit_operation(o, r); });
    read_all(whole.at(2), regime.links, [](auto& l, auto& r) { visit_link(l, r); });
    read_all(whole.at(3), regime.switches, [](auto& s, auto& r) { visit_switch(s, r); });
    const auto is_by_gpu = [&](const auto& times) { return times.empty() || times.size() == regime.gpus; };
    if (!is_by_gpu(regime.apart) || !std::ranges::all_of(regime.operations, [&](const Regime::Operation& op) {
          return is_by_gpu(op.began) && is_by_gpu(op.ended);
        })) {
      throw InternalError("a remembered regime: not of as many GPUs as it says");
    }
    return regime;
  } catch (const Json::exception& e) {
    throw InternalError(std::string("a remembered regime: ") + e.what());
  }
}

}  // namespace weft
