#include "bench/gpu/plan/result_file.h"

#include <array>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace weft::gpu_probe {
namespace {

using nlohmann::json;

constexpr const char* kSchema = "weft-overlap/1";
constexpr std::array kLists{"victims", "aggressors", "pairs", "units", "drain", "left_out"};

bool same_keys(const json& item, const json& keys) {
  for (const auto& [name, value] : keys.items()) {
    const auto found = item.find(name);
    if (found == item.end() || *found != value) return false;
  }
  return true;
}

// One item of a list a line: thousands of them, to be read and compared by people too.
void write(std::ostream& out, const json& document) {
  out << "{\n";
  bool first = true;
  for (const auto& [name, value] : document.items()) {
    out << (first ? "" : ",\n") << json(name).dump() << ": ";
    first = false;
    if (!value.is_array()) {
      out << value.dump();
      continue;
    }
    out << "[";
    for (std::size_t i = 0; i < value.size(); ++i) out << (i == 0 ? "\n" : ",\n") << value[i].dump();
    out << "]";
  }
  out << "\n}\n";
}

}  // namespace

ResultFile::ResultFile(std::filesystem::path path, bool resume) : path_(std::move(path)) {
  if (resume && std::filesystem::exists(path_)) {
    std::ifstream in(path_);
    document_ = json::parse(in, nullptr, false);
    if (!document_.is_object() || document_.value("schema", "") != kSchema)
      throw std::runtime_error(path_.string() + ": no results of schema " + kSchema);
  }
  document_["schema"] = kSchema;
  for (const char* list : kLists) {
    if (!document_.contains(list)) document_[list] = json::array();
  }
  for (const char* section : {"machine", "memory", "cache"}) {
    if (!document_.contains(section)) document_[section] = json::object();
  }
}

const json* ResultFile::find(const std::string& list, const json& keys) const {
  for (const json& item : document_.at(list)) {
    if (same_keys(item, keys)) return &item;
  }
  return nullptr;
}

void ResultFile::put(const std::string& list, const json& keys, json item) {
  for (const auto& [name, value] : keys.items()) item[name] = value;
  bool replaced = false;
  for (json& old : document_.at(list)) {
    if (!same_keys(old, keys)) continue;
    old.update(item);
    replaced = true;
    break;
  }
  if (!replaced) document_.at(list).push_back(std::move(item));
  if (std::chrono::steady_clock::now() - saved_ > std::chrono::seconds(1)) save();
}

void ResultFile::set(const std::string& section, json value) { document_[section] = std::move(value); }

const json* ResultFile::section(const std::string& name) const {
  const auto found = document_.find(name);
  return found == document_.end() ? nullptr : &*found;
}

void ResultFile::save() {
  std::filesystem::path next = path_;
  next += ".new";
  {
    std::ofstream out(next);
    write(out, document_);
    out.flush();
    if (!out) throw std::runtime_error(next.string() + ": cannot be written");
  }
  std::filesystem::rename(next, path_);
  saved_ = std::chrono::steady_clock::now();
}

}  // namespace weft::gpu_probe
