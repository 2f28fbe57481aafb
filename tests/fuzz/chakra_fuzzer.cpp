#include "tests/fuzz/fuzzed_file.h"
#include "traces/chakra_import.h"
#include "traces/trace_info.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  return fuzz::read_fuzzed(data, size, [](const std::filesystem::path& file) {
    std::vector<std::string> notes;
    (void)trace_info_json(import_chakra({file}, notes));
  });
}
