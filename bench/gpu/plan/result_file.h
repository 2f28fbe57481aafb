// The file of results ("weft-overlap/1"): a JSON object of sections, of which lists grow item by item. It is replaced
// as a whole, never written in place.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace weft::gpu_probe {

class ResultFile {
 public:
  // With `resume` an existing file is gone on with, else it is replaced at the first save. Throws std::runtime_error
  // where it is none of this schema.
  ResultFile(std::filesystem::path path, bool resume);

  // An item of a list that has the same text under each of the keys.
  [[nodiscard]] const nlohmann::json* find(const std::string& list, const nlohmann::json& keys) const;
  // Replaces the item that has the same `keys`, else appends; then saves if the last time is a second ago.
  void put(const std::string& list, const nlohmann::json& keys, nlohmann::json item);

  void set(const std::string& section, nlohmann::json value);
  [[nodiscard]] const nlohmann::json* section(const std::string& name) const;

  void save();

 private:
  std::filesystem::path path_;
  nlohmann::json document_;
  std::chrono::steady_clock::time_point saved_{};
};

}  // namespace weft::gpu_probe
