// What NCCL tells of its calls in NVTX: ranges named after them, with binary payloads (NCCL's
// src/include/nvtx_payload_schemas.h, from 2.18 on), as Nsight Systems exports them with --include-blobs=true.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/nsys/nsys_database.h"

namespace weft {

struct NcclPayload {
  std::optional<std::uint64_t> communicator;         // from 2.22 on
  std::optional<std::uint64_t> bytes;                // of the message, as the call counts it
  std::optional<std::uint64_t> peer;                 // of a send or receive
  std::optional<std::uint64_t> ranks, rank, device;  // of calls that make a communicator
};

// NCCL's name of the collective that a range calls ("ncclAllReduce": "AllReduce"); empty for other ranges.
[[nodiscard]] std::string_view nccl_function(std::string_view range);

class NcclPayloads {
 public:
  // Reads the export's schemas of payloads.
  explicit NcclPayloads(const NsysDatabase& database);

  // nullopt: no payload that a schema describes.
  [[nodiscard]] std::optional<NcclPayload> decode(std::string_view binary) const;

 private:
  struct Entry {
    std::uint32_t type = 0;  // nvtxPayloadEntryType
    std::uint64_t offset = 0;
    std::string name;
  };

  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<Entry>> schemas_;  // by domain and schema
};

}  // namespace weft
