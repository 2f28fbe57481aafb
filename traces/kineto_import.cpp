#include "traces/kineto_import.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "sim/error.h"
#include "traces/kineto_rank.h"

namespace weft {
namespace {

constexpr std::int64_t kMaxWorld = 1 << 24;

struct Part {
  const KinetoFile* file;
  std::int64_t device;
};

// The largest world that any file's distributedInfo or collectives speak of.
std::uint32_t world_size(const std::vector<KinetoFile>& files, std::size_t parts) {
  std::int64_t stated = 0;
  std::int64_t seen = static_cast<std::int64_t>(parts);
  for (const KinetoFile& file : files) {
    if (file.world_size) {
      if (*file.world_size < 1 || *file.world_size > kMaxWorld)
        throw InputError(file.name, "/distributedInfo/world_size",
                         "expected from 1 to 2^24, got " + std::to_string(*file.world_size));
      if (stated != 0 && stated != *file.world_size)
        throw InputError(file.name, "/distributedInfo/world_size",
                         "expected the ranks of one run (world size " + std::to_string(stated) + "), got " +
                             std::to_string(*file.world_size));
      stated = *file.world_size;
    }
    if (file.rank) seen = std::max(seen, *file.rank + 1);
    for (const KinetoEvent& e : file.events) {
      if (!e.collective || stated != 0) continue;
      seen = std::max(seen, e.collective->group_size.value_or(0));
      if (e.collective->group_ranks)
        for (const std::int64_t rank : *e.collective->group_ranks) seen = std::max(seen, rank + 1);
    }
  }
  if (stated != 0 && static_cast<std::int64_t>(parts) > stated)
    throw InputError(
        files.front().name, "/distributedInfo/world_size",
        "expected at least as many ranks as files (" + std::to_string(parts) + "), got " + std::to_string(stated));
  return static_cast<std::uint32_t>(stated != 0 ? stated : std::min(seen, kMaxWorld));
}

}  // namespace

Trace import_kineto(const std::vector<std::filesystem::path>& paths) {
  if (paths.empty()) throw InputError("expected at least one Kineto file, got none");
  std::vector<KinetoFile> files;
  files.reserve(paths.size());
  for (const std::filesystem::path& path : paths) files.push_back(read_kineto(path));

  std::vector<Part> parts;
  std::int64_t origin = std::numeric_limits<std::int64_t>::max();
  for (const KinetoFile& file : files) {
    origin = std::min(origin, earliest_time(file));
    const std::vector<std::int64_t> devices = used_devices(file);
    // One process may drive several GPUs, but then it is no rank of a distributed run.
    if (devices.size() > 1 && (file.rank || files.size() > 1))
      throw InputError(
          file.name, "",
          "expected one GPU for each rank, got operations on " + std::to_string(devices.size()) + " devices");
    for (const std::int64_t device : devices) parts.push_back({&file, device});
  }

  Trace trace;
  trace.source = paths.front().filename().string();
  trace.world_size = world_size(files, parts.size());
  std::map<std::int64_t, const KinetoFile*> seen;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const KinetoFile& file = *parts[i].file;
    const std::int64_t rank = file.rank.value_or(static_cast<std::int64_t>(i));
    if (rank < 0 || rank >= trace.world_size)
      throw InputError(
          file.name, "/distributedInfo/rank",
          "expected a rank below the world size " + std::to_string(trace.world_size) + ", got " + std::to_string(rank));
    if (const auto [other, added] = seen.emplace(rank, &file); !added)
      throw InputError(file.name, "/distributedInfo/rank",
                       "expected each rank once, got rank " + std::to_string(rank) + " as in " + other->second->name);
    trace.ranks.push_back(
        kineto_rank(file, static_cast<std::uint32_t>(rank), parts[i].device, trace.world_size, origin));
  }
  std::sort(trace.ranks.begin(), trace.ranks.end(),
            [](const TraceRank& a, const TraceRank& b) { return a.rank < b.rank; });
  validate(trace, files.front().name);
  return trace;
}

}  // namespace weft
