// Imports profiles whose notes do not matter.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "traces/kineto_import.h"

namespace weft {

inline Trace import_kineto(const std::vector<std::filesystem::path>& files) {
  std::vector<std::string> notes;
  return import_kineto(files, notes);
}

}  // namespace weft
