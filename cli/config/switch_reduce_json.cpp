#include "cli/config/switch_reduce_json.h"

namespace weft {

namespace {

constexpr double kMaxTimeNs = 1e9;  // keeps out what is a slip of the unit

const EnumNames<TableArbitration>& table_arbitration_names() {
  static const EnumNames<TableArbitration> names{{TableArbitration::fifo, "fifo"},
                                                 {TableArbitration::round_robin, "round_robin"}};
  return names;
}

const EnumNames<AccumulationType>& accumulation_type_names() {
  static const EnumNames<AccumulationType> names{
      {AccumulationType::fp32, "fp32"}, {AccumulationType::fp16, "fp16"}, {AccumulationType::operand, "operand"}};
  return names;
}
const EnumNames<AccumulationOrder>& accumulation_order_names() {
  static const EnumNames<AccumulationOrder> names{{AccumulationOrder::arrival, "arrival"},
                                                  {AccumulationOrder::fixed, "fixed"}};
  return names;
}
const EnumNames<Overflow>& overflow_names() {
  static const EnumNames<Overflow> names{{Overflow::ieee, "ieee"}, {Overflow::saturate, "saturate"}};
  return names;
}

// As many lanes of a type as its elements fill the adder, where nothing else is said.
template <class Fields>
void adder_fields(Fields& f, AdderSpec& adders) {
  f.count("per_port", adders.per_port, 1, 1024, Presence::optional);
  f.count("bits", adders.bits, 8, 65536);
  f.clock_MHz("clock_MHz", adders.clock, 1, 1e5);
  if constexpr (Fields::kReads) {
    for (std::size_t type = 0; type < kDataTypes; ++type) {
      adders.lanes[type] = adders.bits / static_cast<std::uint32_t>(8 * bytes_per_element(static_cast<DataType>(type)));
    }
  }
  f.object(
      "lanes",
      [&](auto& lanes) {
        for (std::size_t type = 0; type < kDataTypes; ++type) {
          lanes.count(to_string(static_cast<DataType>(type)), adders.lanes[type], 0, 65536, Presence::optional);
        }
      },
      Presence::optional);
}

template <class Fields>
void all_fields(Fields& f, ReduceSpec& reduce) {
  f.count("entry_bytes", reduce.entry_bytes, 1, 65536);
  f.count("table_bytes_per_port", reduce.table_bytes_per_port, reduce.entry_bytes, std::int64_t{1} << 40);
  f.object("adders", [&](auto& adders) { adder_fields(adders, reduce.adders); });
  f.time_ns("latency_ns", reduce.latency, 0, kMaxTimeNs);
  f.choice("arbitration", reduce.arbitration, table_arbitration_names(), Presence::optional);
  f.count("group_entries", reduce.group_entries, 0, 1 << 24, Presence::optional);
  f.count("max_groups", reduce.max_groups, 0, 65535, Presence::optional);
  f.count("fan_in", reduce.fan_in, 2, 255, Presence::optional);
  f.time_ns("timeout_ns", reduce.timeout, 0, kMaxTimeNs, Presence::optional);
  AccumulationSpec& accumulation = reduce.accumulation;
  f.choice("accumulation", accumulation.type, accumulation_type_names(), Presence::optional);
  f.choice("order", accumulation.order, accumulation_order_names(), Presence::optional);
  f.choice("overflow", accumulation.overflow, overflow_names(), Presence::optional);
}

template <class Fields>
void all_fields(Fields& f, AggregationSpec& aggregation) {
  f.count("slots", aggregation.slots, 1, 1 << 24);
  f.count("slot_bytes", aggregation.slot_bytes, 1, 65536, Presence::optional);
  f.object("adders", [&](auto& adders) { adder_fields(adders, aggregation.adders); });
  f.time_ns("latency_ns", aggregation.latency, 0, kMaxTimeNs);
  f.count("window", aggregation.window, 1, 1 << 24);
  f.time_ns("timeout_ns", aggregation.timeout, 0, kMaxTimeNs, Presence::optional);
  f.number("loss", aggregation.loss, 0, 0.5, Presence::optional);
  f.refuse_unless(aggregation.loss == 0 || aggregation.timeout > Time(0), "timeout_ns",
                  "expected a time above 0 where packets get lost, got none: who waits for one would wait for ever");
}

}  // namespace

void reduce_fields(FieldReader& fields, ReduceSpec& reduce) { all_fields(fields, reduce); }
void reduce_fields(FieldWriter& fields, ReduceSpec& reduce) { all_fields(fields, reduce); }
void aggregation_fields(FieldReader& fields, AggregationSpec& aggregation) { all_fields(fields, aggregation); }
void aggregation_fields(FieldWriter& fields, AggregationSpec& aggregation) { all_fields(fields, aggregation); }

}  // namespace weft
