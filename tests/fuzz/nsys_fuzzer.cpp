#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/fuzz/fuzzed_file.h"
#include "traces/nsys/nsys_import.h"
#include "traces/trace_info.h"

// SQLite opens no file by its descriptor, so it is one that has a name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("weft-fuzz-" + std::to_string(::getpid()) + ".sqlite");
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    std::vector<std::string> notes;
    (void)trace_info_json(import_nsys({file}, notes)).dump();
  } catch (const InputError&) {
  }
  return 0;
}
