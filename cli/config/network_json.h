// The network part of a system (../docs/formats.md).
#pragma once

#include <string>

#include "cli/config/spec_fields.h"
#include "network/network_spec.h"

namespace weft {

inline constexpr std::int64_t kMaxLanes = 255;  // of a link: a lane's number is a byte of a packet

// Reads or writes a network of up to `max_gpus` GPUs. Reading throws InputError for what makes no network.
void network_fields(FieldReader& fields, NetworkSpec& network, std::uint32_t max_gpus);
void network_fields(FieldWriter& fields, NetworkSpec& network, std::uint32_t max_gpus);

// Names and descriptions of all topologies, for `weft list`.
[[nodiscard]] const std::vector<std::pair<std::string, std::string>>& topology_descriptions();

// {"preset": NAME, ...} of a link becomes that file of configs/links with the rest merged over it, in all links of a
// network. `path` is the network's in `file`.
[[nodiscard]] Json expand_link_presets(Json network, const std::string& file, const std::string& path);

// What a network keeps when another topology is merged over it: not the keys that this one does not have.
void drop_keys_of_other_topology(Json& network, const Json& over);

}  // namespace weft
