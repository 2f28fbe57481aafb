// Configuration files: JSON with comments, includes and overrides, merged into one document.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/json_reader.h"

namespace weft {

// The whole file. Throws MissingInput when it cannot be opened or is a folder.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

// JSON with // and /* */ comments. Throws InputError with line and column when it is empty or malformed; `file` names
// the text in messages.
[[nodiscard]] Json parse_json(std::string_view text, const std::string& file);

// Reads a configuration and what it includes. "include" is a file name or an array of them, relative to the including
// file; included files are merged first, in order, and the including file over them. The key itself is gone from the
// result. Throws MissingInput for a missing file, InputError for malformed JSON, a document that is no object, and
// includes that form a cycle. `merge` is called for each file, `over` being what stands in `file` itself.
using ConfigMerge = std::function<void(Json& base, const Json& over, const std::string& file)>;
[[nodiscard]] Json load_config(const std::filesystem::path& path, const ConfigMerge& merge = {});

// Merges `over` into `base`: objects key by key, everything else is replaced.
void merge_into(Json& base, const Json& over);

// Applies one "--set" argument, PATH=VALUE. PATH is keys joined by dots, array elements by their number; missing
// objects on the way are created. VALUE is JSON where it parses as such, else a string. Throws InputError when there is
// no "=" or a key is empty (wrong usage), and when the path leads through something that is no object or array; `file`
// names the document.
void apply_set(Json& document, const std::string& assignment, const std::string& file);

}  // namespace weft
