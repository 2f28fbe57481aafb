#include "traces/nsys/nsys_ranges.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "traces/nsys/nccl_payload.h"

namespace weft {
namespace {

using Kind = NsysColumn::Kind;

constexpr int kPushPopRange = 59, kStartEndRange = 60, kDomainCreate = 75;  // ENUM_NSYS_EVENT_TYPE

class RangeReader {
 public:
  RangeReader(const NsysScope& scope, ProcessBuilder& builder) : scope_(scope), builder_(builder) {}

  bool read() {
    constexpr const char* kTable = "NVTX_EVENTS";
    const std::string own = scope_.by_thread(kTable);
    const std::string with = own.empty() ? "" : " AND " + own;
    std::set<std::int64_t> nccl_domains, domains;
    NsysRows created = scope_.database.rows(
        kTable, {{"eventType"}, {"domainId", Kind::optional}, {"text", Kind::optional}, {"textId", Kind::name}},
        fmt::format("eventType = {}{}", kDomainCreate, with));
    while (created.next()) {
      domains.insert(created.integer(1));
      if (created.text(2) == "NCCL" || created.text(3) == "NCCL") nccl_domains.insert(created.integer(1));
    }
    const NcclPayloads payloads(scope_.database);
    bool payload_found = false;
    NsysRows rows = scope_.database.rows(kTable,
                                         {{"start"},
                                          {"end"},
                                          {"eventType"},
                                          {"text", Kind::optional},
                                          {"textId", Kind::name},
                                          {"globalTid", Kind::optional},
                                          {"domainId", Kind::optional},
                                          {"binaryData", Kind::optional}},
                                         fmt::format("eventType IN ({}, {}){}", kPushPopRange, kStartEndRange, with));
    while (rows.next()) {
      const std::uint64_t start = scope_.time(rows.integer(0));
      // What was open when the recording ended lasted until then.
      const std::uint64_t end = rows.has(1) ? scope_.time(rows.integer(1)) : std::max(builder_.last(), start);
      const std::string text = rows.has(3) ? rows.text(3) : rows.text(4);
      const std::uint32_t on = NsysScope::thread(rows.integer(5));
      // Domains that were made before the recording have no name.
      const std::int64_t domain = rows.integer(6);
      const bool nccl = nccl_domains.contains(domain) ||
                        (!domains.contains(domain) && text.starts_with("nccl") && !text.starts_with("nccl:"));
      if (!nccl) {
        builder_.range(start, end, on, text, domains.contains(domain));
        continue;
      }
      const std::string_view function = nccl_function(text);
      if (!function.empty()) builder_.nccl_call(start, end, on, function);
      const std::optional<NcclPayload> payload = payloads.decode(rows.bytes(7));
      if (!payload) continue;
      payload_found = true;
      add_communicator(*payload);
      if (!function.empty() && payload->bytes) add_collective(start, on, function, *payload);
    }
    return payload_found;
  }

 private:
  void add_communicator(const NcclPayload& payload) {
    if (!payload.communicator || !payload.ranks || !payload.rank ||
        *payload.ranks > static_cast<std::uint64_t>(kMaxWorld) || *payload.rank >= *payload.ranks)
      return;
    CapturedCommunicator communicator{*payload.communicator, static_cast<std::uint32_t>(*payload.ranks),
                                      static_cast<std::uint32_t>(*payload.rank), std::nullopt};
    if (payload.device) communicator.device = static_cast<std::int64_t>(*payload.device);
    std::vector<CapturedCommunicator>& known = builder_.process().communicators;
    const auto same = [&](const CapturedCommunicator& c) {
      return c.id == communicator.id && c.rank == communicator.rank;
    };
    if (std::none_of(known.begin(), known.end(), same)) known.push_back(communicator);
  }

  void add_collective(std::uint64_t start, std::uint32_t on, std::string_view function, const NcclPayload& payload) {
    capture::CollectiveRecord record;
    record.communicator = payload.communicator.value_or(0);
    record.time = start;
    record.count = *payload.bytes;
    record.thread = on;
    record.peer = payload.peer && *payload.peer < static_cast<std::uint64_t>(kMaxWorld)
                      ? static_cast<std::int32_t>(*payload.peer)
                      : -1;
    record.source = capture::CollectiveSource::nvtx_range;
    std::memcpy(record.function, function.data(), std::min(function.size(), sizeof(record.function) - 1));
    builder_.collective(record);
  }

  const NsysScope& scope_;
  ProcessBuilder& builder_;
};

}  // namespace

bool read_nsys_ranges(const NsysScope& scope, ProcessBuilder& builder) { return RangeReader(scope, builder).read(); }

}  // namespace weft
