#include "cli/config/system_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/config/config_paths.h"
#include "cli/config/engine_fields.h"
#include "cli/config/gpu_json.h"
#include "cli/config/network_json.h"
#include "cli/config/spec_fields.h"
#include "cli/config/switch_reduce_json.h"
#include "cli/config/system_of.h"
#include "gpu_model/occupancy.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

const EnumNames<InSwitchForm>& in_switch_form_names() {
  static const EnumNames<InSwitchForm> names{{InSwitchForm::pull, "pull"}, {InSwitchForm::push, "push"}};
  return names;
}

template <class Fields>
void direct_fields(Fields& f, TunerSpec::Direct& direct) {
  f.count("ranks", direct.ranks, 0, 65535);
  f.count("min_bytes", direct.min_bytes, 0, std::int64_t{1} << 40);
  f.count("simple_from_bytes", direct.simple_from_bytes, 0, std::int64_t{1} << 40);
  f.count("max_bytes", direct.max_bytes, 0, std::int64_t{1} << 40);
  f.count("channels", direct.channels, 0, 1024);
}

template <class Fields>
void collective_fields(Fields& f, CollectiveSpec& collectives) {
  f.object("ring", [&](auto& ring) {
    ring.count("channels", collectives.ring.channels, 1, 1024);
    ring.count("threads", collectives.ring.threads, 32, 4096);
    ring.count("buffer_bytes", collectives.ring.buffer_bytes, 4096, std::int64_t{1} << 40);
    ring.count("buffer_steps", collectives.ring.buffer_steps, 1, 1024);
    ring.count("chunk_steps", collectives.ring.chunk_steps, 1, collectives.ring.buffer_steps);
    ring.count("slice_steps", collectives.ring.slice_steps, 1, collectives.ring.chunk_steps);
    ring.flag("receiver_reads", collectives.ring.receiver_reads);
    ring.flag("channel_shares", collectives.ring.channel_shares, Presence::optional);
  });
  f.object(
      "sends",
      [&](auto& sends) {
        sends.count("channels", collectives.sends.channels, 0, 1024, Presence::optional);
        sends.count("channels_to_peer", collectives.sends.channels_to_peer, 0, 1024, Presence::optional);
        sends.count("chunk_bytes", collectives.sends.chunk_bytes, 0, 1 << 30, Presence::optional);
        sends.refuse_unless(
            collectives.sends.chunk_bytes % kLineBytes == 0, "chunk_bytes",
            fmt::format("expected whole lines of {} B, got {} B", kLineBytes, collectives.sends.chunk_bytes));
      },
      Presence::optional);
  f.object("in_switch", [&](auto& in_switch) {
    in_switch.count("channels", collectives.in_switch.channels, 1, 1024);
    in_switch.flag("registered", collectives.in_switch.registered);
    in_switch.count("reduce_warps", collectives.in_switch.reduce_warps, 1, 64);
    in_switch.count("copy_warps", collectives.in_switch.copy_warps, 1, 64);
    in_switch.count("bytes_in_flight_per_warp", collectives.in_switch.bytes_in_flight_per_warp, 32, 1 << 24,
                    Presence::optional);
    in_switch.time_ns("start_latency_ns", collectives.in_switch.start_latency, 0, kMaxTimeNs, Presence::optional);
    in_switch.time_ns("poll_ns", collectives.in_switch.poll, 0, kMaxTimeNs, Presence::optional);
    in_switch.count("registered_channels", collectives.in_switch.registered_channels, 1, 1024, Presence::optional);
    in_switch.choice("form", collectives.in_switch.form, in_switch_form_names(), Presence::optional);
    in_switch.count("waves", collectives.in_switch.waves, 0, 4096, Presence::optional);
    in_switch.count("wave_bytes", collectives.in_switch.wave_bytes, 128, std::int64_t{1} << 40, Presence::optional);
  });
  f.object(
      "tuner",
      [&](auto& tuner) {
        tuner.number("link_GBps", collectives.tuner.link_GBps, 0, kMaxGBps, Presence::optional);
        tuner.number("ll_max_GBps", collectives.tuner.ll_max_GBps, kMinGBps, kMaxGBps, Presence::optional);
        tuner.number("ll_max_two_nodes_GBps", collectives.tuner.ll_max_two_nodes_GBps, kMinGBps, kMaxGBps,
                     Presence::optional);
        tuner.number("ll_max_nodes_GBps", collectives.tuner.ll_max_nodes_GBps, kMinGBps, kMaxGBps, Presence::optional);
        tuner.number("ll128_channel_GBps", collectives.tuner.ll128_channel_GBps, 0, kMaxGBps, Presence::optional);
        tuner.number("in_switch_efficiency", collectives.tuner.in_switch_efficiency, 0.01, 1, Presence::optional);
        tuner.numbers("in_switch_head_GBps", collectives.tuner.in_switch_head_GBps, kMinGBps, kMaxGBps);
        tuner.object(
            "direct", [&](auto& direct) { direct_fields(direct, collectives.tuner.direct); }, Presence::optional);
      },
      Presence::optional);
  f.count("registers_per_thread", collectives.registers_per_thread, 1, 1024);
  f.count("shared_memory_bytes", collectives.shared_memory_bytes, 0, 1 << 30);
  f.count("bytes_in_flight_per_warp", collectives.bytes_in_flight_per_warp, 32, 1 << 24);
  f.number("flagged_GBps", collectives.flagged_GBps, 0, kMaxGBps, Presence::optional);
  f.time_ns("base_latency_ns", collectives.base_latency, 0, kMaxTimeNs);
  f.time_ns("fence_ns", collectives.fence, 0, kMaxTimeNs, Presence::optional);
  f.flag("pxn", collectives.pxn, Presence::optional);
  f.object(
      "proxy",
      [&](auto& proxy) {
        proxy.time_ns("ll_ns", collectives.proxy.ll, 0, kMaxTimeNs, Presence::optional);
        proxy.time_ns("ll128_ns", collectives.proxy.ll128, 0, kMaxTimeNs, Presence::optional);
        proxy.time_ns("simple_ns", collectives.proxy.simple, 0, kMaxTimeNs, Presence::optional);
      },
      Presence::optional);
}

template <class Fields>
void system_fields(Fields& f, SystemSpec& system) {
  f.text("name", system.name);
  f.text("description", system.description, Presence::optional);
  f.count("max_gpus", system.max_gpus, 1, 65535);
  f.object("gpu", [&](auto& gpu) { gpu_fields(gpu, system.gpu); });
  f.object("network", [&](auto& network) { network_fields(network, system.network, system.max_gpus); });
  f.object("collectives", [&](auto& collectives) { collective_fields(collectives, system.collectives); });
}

}  // namespace

const std::vector<std::string>& system_parts() {
  static const std::vector<std::string> parts{"gpu", "network", "switch_reduce", "network_reduce", "collectives"};
  return parts;
}

SystemSpec read_system(JsonReader reader) {
  SystemSpec system;
  FieldReader fields(reader);
  system_fields(fields, system);
  fields.object(
      "switch_reduce", [&](auto& reduce) { reduce_fields(reduce, system.switch_reduce.emplace()); },
      Presence::optional);
  fields.object(
      "network_reduce", [&](auto& at) { aggregation_fields(at, system.network_reduce.emplace()); }, Presence::optional);
  if (system.switch_reduce && system.network.topology != TopologyKind::switched) {
    reader.fail("switch_reduce", "expected no reducing hardware in a network without switches, got one");
  }
  const CollectiveSpec& collectives = system.collectives;
  if (system.switch_reduce && collectives.in_switch.form == InSwitchForm::push &&
      system.switch_reduce->timeout == Time(0)) {
    reader.fail("switch_reduce",
                "expected timeout_ns above 0 where sums are pushed, got none: what comes after an "
                "eviction would wait for ever");
  }
  const ComputeUnitSpec& unit = system.gpu.compute_unit;
  const BlockNeeds needs =
      block_needs(unit, collectives.ring.threads, collectives.registers_per_thread, collectives.shared_memory_bytes);
  if (blocks_per_unit(unit, needs) == 0) {
    reader.fail("collectives",
                fmt::format("expected a block that fits on a compute unit, of {} threads, {} registers and "
                            "{} B of shared memory, got one of {}, {} and {}",
                            unit.max_threads, unit.registers, unit.shared_memory_bytes, needs.threads, needs.registers,
                            needs.shared_memory));
  }
  reader.finish();
  return system;
}

Json system_to_json(const SystemSpec& system) {
  Json out = Json::object();
  FieldWriter fields(out);
  SystemSpec copy = system;
  system_fields(fields, copy);
  if (copy.network_reduce) {
    fields.object("network_reduce", [&](auto& at) { aggregation_fields(at, *copy.network_reduce); });
  }
  if (copy.switch_reduce) {
    fields.object("switch_reduce", [&](auto& reduce) { reduce_fields(reduce, *copy.switch_reduce); });
  }
  return out;
}

fs::path preset_path(const std::string& folder, const std::string& name) {
  return config_directory() / folder / (name + ".json");
}

std::vector<std::string> preset_names(const std::string& folder) {
  std::vector<std::string> names;
  const fs::path directory = config_directory() / folder;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Json load_preset(const std::string& folder, const std::string& name, const std::string& file,
                 const std::string& where) {
  const std::vector<std::string> names = preset_names(folder);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    std::string list;
    for (const auto& known : names) list += (list.empty() ? "" : ", ") + Json(known).dump();
    const auto near = nearest(name, names);
    throw InputError(file, where,
                     fmt::format("expected one of {}, got {}{}", list, Json(name).dump(),
                                 near ? "; the nearest is " + Json(*near).dump() : ""));
  }
  return load_configuration(preset_path(folder, name));
}

}  // namespace weft
