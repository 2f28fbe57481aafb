// Imports what a TestProcess wrote.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/traces/temporary_file.h"
#include "traces/capture/capture_import.h"

namespace weft::testing {

inline constexpr const char* kAllReduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

class CaptureImport : public ::testing::Test {
 protected:
  Trace import() {
    notes.clear();
    return import_capture({folder.file("")}, notes);
  }
  // Of a trace of one rank.
  const TraceOp& op(const Trace& trace, const std::string& name) {
    for (const TraceOp& o : trace.ranks.at(0).ops)
      if (o.name == name) return o;
    ADD_FAILURE() << "no operation " << name;
    return trace.ranks[0].ops.at(0);
  }
  std::uint32_t index(const Trace& trace, const std::string& name) {
    return static_cast<std::uint32_t>(&op(trace, name) - trace.ranks[0].ops.data());
  }

  TemporaryFolder folder;
  std::vector<std::string> notes;
};

}  // namespace weft::testing
