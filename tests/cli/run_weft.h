// Runs the program from outside.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "sim/config_file.h"
#include "sim/json_reader.h"
#include "tests/sim/temporary_folder.h"

namespace weft {

struct Ran {
  int code = -1;
  std::string output, errors;
};

// `weft ARGUMENTS` (as a shell reads them) in `folder`.
inline Ran weft(const std::string& arguments, const TemporaryFolder& folder) {
  const TemporaryFolder logs;
  const std::string command = "cd '" + folder.path().string() + "' && '" + WEFT_BINARY + "' " + arguments + " >'" +
                              (logs.path() / "out").string() + "' 2>'" + (logs.path() / "err").string() + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(logs.path() / "out"), read_file(logs.path() / "err")};
}

// What does not depend on the machine and on threads.
inline Json without_engine(Json result) {
  result.erase("engine");
  return result;
}

}  // namespace weft
