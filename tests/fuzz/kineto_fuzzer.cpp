#include "tests/fuzz/fuzzed_file.h"
#include "tests/traces/imported_kineto.h"
#include "traces/trace_info.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  return fuzz::read_fuzzed(data, size,
                           [](const std::filesystem::path& file) { (void)trace_info_json(import_kineto({file})); });
}
