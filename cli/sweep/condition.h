// The conditions of a sweep's "where".
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/json_reader.h"

namespace weft {

// The value that a path (keys joined by dots) has at a point. Throws InputError for one that has none.
using ConditionValues = std::function<Json(const std::string& path)>;

// Whether `text` holds: paths, numbers, 'strings', true, false and null with || && ! == != < <= > >= + - * / and
// parentheses, binding as in C. == and != compare anything, < and its like two numbers or two strings. Throws
// InputError ("expected ..., got ...") for what cannot be read or is no truth value.
[[nodiscard]] bool condition_holds(std::string_view text, const ConditionValues& values);

}  // namespace weft
