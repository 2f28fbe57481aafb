#include "cli/config/system_of.h"

#include <algorithm>
#include <utility>

#include "cli/config/network_json.h"
#include "cli/config/system_json.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace {

constexpr const char* kReduceKey = "switch_reduce";
constexpr const char* kNetworkKey = "network";

// {"preset": NAME, ...} becomes the preset with the rest merged over it.
Json expand_preset(const Json& reduce, const std::string& file, const std::string& path) {
  if (!reduce.is_object() || !reduce.contains("preset")) return reduce;
  const Json& name = reduce["preset"];
  const std::string where = child_path(path, "preset");
  if (!name.is_string()) throw InputError(file, where, "expected a name, got " + describe(name));
  Json expanded = load_preset(kReduceKey, name.get<std::string>(), file, where);
  expanded.erase("description");
  Json rest = reduce;
  rest.erase("preset");
  merge_into(expanded, rest);
  return expanded;
}

// What reduces is in switches, and goes with them.
void drop_reduction_of_other_topology(Json& has, const Json& network) {
  const auto topology = network.find("topology");
  if (topology != network.end() && topology->is_string() && *topology != "switched") has.erase(kReduceKey);
}

// One part of a system over what the system already has. null takes the reducing hardware out.
void override_part(Json& system, const std::string& part, const Json& over, const std::string& file,
                   const std::string& path) {
  if (part != kReduceKey) {
    if (!over.is_object()) throw InputError(file, path, "expected an object, got " + describe(over));
    if (part == kNetworkKey) {
      drop_keys_of_other_topology(system[part], over);
      drop_reduction_of_other_topology(system, over);
      merge_into(system[part], expand_link_presets(over, file, path));
    } else {
      merge_into(system[part], over);
    }
  } else if (over.is_null()) {
    system.erase(part);
  } else if (!over.is_object()) {
    throw InputError(file, path, "expected an object or null, got " + describe(over));
  } else if (over.contains("preset") || !system.contains(part)) {
    system[part] = expand_preset(over, file, path);
  } else {
    merge_into(system[part], over);
  }
}

Json load_system(const std::string& name, const std::string& file, const std::string& where) {
  Json system = load_preset("systems", name, file, where);
  const std::string own_file = preset_path("systems", name).string();
  if (system.contains(kReduceKey) && system[kReduceKey].is_null()) system.erase(kReduceKey);  // of the file included
  if (system.contains(kReduceKey)) {
    system[kReduceKey] = expand_preset(system[kReduceKey], own_file, child_path("", kReduceKey));
  }
  if (system.contains(kNetworkKey)) {
    system[kNetworkKey] = expand_link_presets(system[kNetworkKey], own_file, child_path("", kNetworkKey));
  }
  static_cast<void>(read_system(JsonReader(system, own_file)));
  return system;
}

Json written_system(const Json& written, const std::string& file) {
  if (written.is_string()) return load_system(written.get<std::string>(), file, "/system");
  if (!written.is_object()) {
    throw InputError(file, "/system", "expected the name of a system or an object, got " + describe(written));
  }
  Json system = Json::object();
  if (written.contains("base")) {
    const Json& base = written["base"];
    if (!base.is_string()) throw InputError(file, "/system/base", "expected a name, got " + describe(base));
    system = load_system(base.get<std::string>(), file, "/system/base");
  }
  for (const auto& item : written.items()) {
    if (item.key() == "base") continue;
    const auto& parts = system_parts();
    if (std::find(parts.begin(), parts.end(), item.key()) != parts.end()) {
      override_part(system, item.key(), item.value(), file, child_path("/system", item.key()));
    } else {
      system[item.key()] = item.value();
    }
  }
  return system;
}

// The parts of a system in a document, or in its "system".
void merge_parts(Json& base, Json& over, const std::string& file, const std::string& path) {
  if (over.contains(kNetworkKey) && over[kNetworkKey].is_object()) {
    over[kNetworkKey] = expand_link_presets(over[kNetworkKey], file, child_path(path, kNetworkKey));
    if (base.contains(kNetworkKey)) drop_keys_of_other_topology(base[kNetworkKey], over[kNetworkKey]);
    drop_reduction_of_other_topology(base, over[kNetworkKey]);
  }
  const bool preset = over.contains(kReduceKey) && over[kReduceKey].is_object() && over[kReduceKey].contains("preset");
  if (preset) base.erase(kReduceKey);
}

}  // namespace

SystemSpec system_of(JsonReader& top) {
  if (!top.has("system")) {
    top.fail("system", "expected the name of a system or an object, got nothing");
  }
  Json system = written_system(top.value()["system"], top.file());
  for (const auto& part : system_parts()) {
    if (top.has(part)) override_part(system, part, top.value()[part], top.file(), child_path("", part));
  }
  JsonReader reader(system, top.file(), "/system");
  for (const auto& part : system_parts()) {
    if (top.has(part)) reader.report_at(part, child_path("", part));
  }
  return read_system(std::move(reader));
}

Json load_configuration(const std::filesystem::path& path) {
  return load_config(path, [](Json& base, const Json& written, const std::string& file) {
    Json over = written;
    merge_parts(base, over, file, "");
    if (over.contains("system") && over["system"].is_object()) {
      Json none = Json::object();
      const bool both = base.contains("system") && base["system"].is_object();
      merge_parts(both ? base["system"] : none, over["system"], file, "/system");
    }
    merge_into(base, over);
  });
}

SystemSpec preset_system(const std::string& name) {
  const Json document{{"system", name}};
  JsonReader top(document, preset_path("systems", name).string());
  return system_of(top);
}

}  // namespace weft
