#include "sim/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "sim/error.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

struct Position {
  std::size_t line = 1, column = 1;
};

Position position_of(std::string_view text, std::size_t byte) {
  Position at;
  for (const char c : text.substr(0, std::min(byte, text.size()))) {
    if (c == '\n') {
      ++at.line;
      at.column = 1;
    } else {
      ++at.column;
    }
  }
  return at;
}

// nlohmann's message without its own numbering and position: "[json.exception.parse_error.101] parse error at line 1,
// column 2: syntax error ..." becomes "syntax error ...".
std::string reason_of(const std::string& what) {
  const auto position_end = what.find(": ");
  if (what.find("parse error at") != std::string::npos && position_end != std::string::npos) {
    return what.substr(position_end + 2);
  }
  const auto tag_end = what.find("] ");
  return tag_end == std::string::npos ? what : what.substr(tag_end + 2);
}

std::vector<std::string> included_files(const Json& document, const std::string& file) {
  const auto found = document.find("include");
  if (found == document.end()) return {};
  if (found->is_string()) return {found->get<std::string>()};
  const bool all_strings =
      found->is_array() && std::all_of(found->begin(), found->end(), [](const Json& item) { return item.is_string(); });
  if (!all_strings) {
    throw InputError(file, "/include", "expected a file name or an array of file names, got " + describe(*found));
  }
  return found->get<std::vector<std::string>>();
}

Json load(const fs::path& path, std::vector<fs::path>& including, const ConfigMerge& merge) {
  std::error_code ignored;
  const fs::path canonical = fs::weakly_canonical(path, ignored);
  if (std::find(including.begin(), including.end(), canonical) != including.end()) {
    std::string cycle;
    for (const auto& file : including) cycle += file.filename().string() + " -> ";
    throw InputError(including.back().string(), "/include",
                     "expected includes without a cycle, got " + cycle + canonical.filename().string());
  }
  Json own = parse_json(read_file(path), path.string());
  if (!own.is_object()) throw InputError(path.string(), "", "expected an object, got " + describe(own));

  including.push_back(canonical);
  Json merged = Json::object();
  const auto add = [&](const Json& over) { merge ? merge(merged, over, path.string()) : merge_into(merged, over); };
  for (const auto& included : included_files(own, path.string())) {
    add(load(path.parent_path() / included, including, merge));
  }
  including.pop_back();
  own.erase("include");
  add(own);
  return merged;
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> keys;
  for (std::size_t begin = 0;;) {
    const std::size_t dot = path.find('.', begin);
    keys.emplace_back(path.substr(begin, dot == std::string_view::npos ? dot : dot - begin));
    if (dot == std::string_view::npos) return keys;
    begin = dot + 1;
  }
}

Json& element(Json& array, const std::string& key, const std::string& file, const std::string& path) {
  std::size_t index = 0;
  const auto parsed = std::from_chars(key.data(), key.data() + key.size(), index);
  if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() || index >= array.size()) {
    throw InputError(file, path,
                     fmt::format("expected the number of one of {} elements, got \"{}\"", array.size(), key));
  }
  return array[index];
}

}  // namespace

std::string read_file(const fs::path& path) {
  std::error_code ignored;
  std::ifstream stream(path, std::ios::binary);
  if (fs::is_directory(path, ignored) || !stream) throw MissingInput(path.string());
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (stream.bad()) throw MissingInput(path.string());
  return text;
}

Json parse_json(std::string_view text, const std::string& file) {
  const bool blank = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
  if (blank) throw InputError(file, "", "line 1, column 1: expected JSON, got an empty file");
  try {
    return Json::parse(text, nullptr, true, true);
  } catch (const Json::parse_error& e) {
    // The parser counts bytes from 1 and has already consumed the one it stumbled over.
    const Position at = position_of(text, e.byte == 0 ? 0 : e.byte - 1);
    throw InputError(
        file, "", fmt::format("line {}, column {}: expected JSON, got a {}", at.line, at.column, reason_of(e.what())));
  } catch (const Json::exception& e) {
    throw InputError(file, "", "expected JSON, got: " + reason_of(e.what()));
  }
}

Json load_config(const fs::path& path, const ConfigMerge& merge) {
  std::vector<fs::path> including;
  return load(path, including, merge);
}

void merge_into(Json& base, const Json& over) {
  if (!base.is_object() || !over.is_object()) {
    base = over;
    return;
  }
  for (const auto& item : over.items()) {
    const auto found = base.find(item.key());
    if (found == base.end()) {
      base[item.key()] = item.value();
    } else {
      merge_into(*found, item.value());
    }
  }
}

void apply_set(Json& document, const std::string& assignment, const std::string& file) {
  const std::size_t equals = assignment.find('=');
  const auto refuse = [&](const char* message) {
    throw InputError("--set " + assignment + ": " + message, ExitCode::wrong_usage);
  };
  if (equals == std::string::npos) refuse("expected PATH=VALUE, got no \"=\"");
  const std::vector<std::string> keys = split_path(std::string_view(assignment).substr(0, equals));
  if (std::find(keys.begin(), keys.end(), "") != keys.end()) refuse("expected keys joined by dots, got an empty key");
  const std::string text = assignment.substr(equals + 1);
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) value = text;

  Json* at = &document;
  std::string path;
  for (const auto& key : keys) {
    if (at->is_array()) {
      at = &element(*at, key, file, path);
    } else if (at->is_object()) {
      at = &(*at)[key];
    } else {
      throw InputError(file, path, "expected an object for --set " + assignment + ", got " + describe(*at));
    }
    path = child_path(path, key);
    if (at->is_null() && &key != &keys.back()) *at = Json::object();
  }
  *at = std::move(value);
}

}  // namespace weft
