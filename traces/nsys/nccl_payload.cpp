#include "traces/nsys/nccl_payload.h"

#include <array>
#include <cstring>

namespace weft {
namespace {

using Kind = NsysColumn::Kind;

constexpr std::size_t kHeaderBytes = 32;  // domain, schema, size, and where the payload is or ends: 8 bytes each

std::uint64_t word_at(std::string_view data, std::size_t offset, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, data.data() + offset, bytes);  // little-endian, as all hosts that NVIDIA supports
  return value;
}

// Of whole numbers (NVTX 3.1, nvToolsExtPayload.h: NVTX_PAYLOAD_ENTRY_TYPE_*, on 64-bit Linux); 0 for others.
std::size_t bytes_of_type(std::uint32_t type) {
  constexpr std::array<std::uint8_t, 23> kBytes{0, 1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 1, 1, 2, 2, 4, 4, 8, 8, 0, 0, 0, 8};
  return type < kBytes.size() ? kBytes[type] : 0;
}

}  // namespace

std::string_view nccl_function(std::string_view range) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kFunctions{{
      {"ncclAllReduce", "AllReduce"},
      {"ncclAllGather", "AllGather"},
      {"ncclReduceScatter", "ReduceScatter"},
      {"ncclBroadcast", "Broadcast"},
      {"ncclBcast", "Broadcast"},
      {"ncclReduce", "Reduce"},
      {"ncclSend", "Send"},
      {"ncclRecv", "Recv"},
      {"ncclAlltoAll", "AlltoAll"},
      {"ncclAllToAll", "AlltoAll"},
      {"ncclGather", "Gather"},
      {"ncclScatter", "Scatter"},
  }};
  for (const auto& [name, function] : kFunctions)
    if (range == name) return function;
  return {};
}

NcclPayloads::NcclPayloads(const NsysDatabase& database) {
  NsysRows rows = database.rows(
      "NVTX_PAYLOAD_SCHEMA_ENTRIES",
      {{"domainId"}, {"schemaId"}, {"type", Kind::optional}, {"offset", Kind::optional}, {"name", Kind::optional}});
  while (rows.next()) {
    const auto schema =
        std::pair(static_cast<std::uint64_t>(rows.integer(0)), static_cast<std::uint64_t>(rows.integer(1)));
    const auto type = static_cast<std::uint64_t>(rows.integer(2));
    schemas_[schema].push_back({type > 0xffff ? 0 : static_cast<std::uint32_t>(type),
                                static_cast<std::uint64_t>(rows.integer(3)), rows.text(4)});
  }
}

std::optional<NcclPayload> NcclPayloads::decode(std::string_view binary) const {
  if (binary.size() < kHeaderBytes) return std::nullopt;
  const auto schema = schemas_.find({word_at(binary, 0, 8), word_at(binary, 8, 8)});
  if (schema == schemas_.end()) return std::nullopt;
  const std::string_view payload = binary.substr(kHeaderBytes);
  NcclPayload out;
  for (const Entry& entry : schema->second) {
    const std::size_t bytes = bytes_of_type(entry.type);
    if (bytes == 0 || entry.offset > payload.size() || payload.size() - entry.offset < bytes) continue;
    const std::uint64_t value = word_at(payload, entry.offset, bytes);
    // "Bytes": broadcasts, sends and receives of NCCL before 2.22.
    if (entry.name == "NCCL communicator ID")
      out.communicator = value;
    else if (entry.name == "Message size [bytes]" || entry.name == "Bytes")
      out.bytes = value;
    else if (entry.name == "Peer rank")
      out.peer = value;
    else if (entry.name == "No. of ranks")
      out.ranks = value;
    else if (entry.name == "Rank")
      out.rank = value;
    else if (entry.name == "CUDA device")
      out.device = value;
  }
  return out;
}

}  // namespace weft
