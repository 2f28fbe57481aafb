// From CUPTI's activity records (CUDA 13's structs) to those of a capture file.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/capture/inject/record_file.h"

namespace weft::capture {

// Calls of the runtime or driver that launch, copy, set or wait, or that record an event; most others are questions,
// of which frameworks ask many.
[[nodiscard]] bool call_matters(std::string_view name);

// For one file at a time: names of calls are numbered once.
class ActivityConverter {
 public:
  using CallName = CUptiResult (*)(CUpti_CallbackDomain domain, std::uint32_t call, const char** name);

  explicit ActivityConverter(CallName call_name) : call_name_(call_name) {}

  // Records of other kinds, and operations that have not ended (of a forced flush), are left out.
  void convert(const CUpti_Activity& activity, RecordFile& file);

 private:
  struct Call {
    bool asked = false;
    bool matters = false;
    std::uint32_t name = 0;
  };

  void convert_call(const CUpti_ActivityAPI& call, RecordFile& file);

  CallName call_name_;
  std::vector<Call> runtime_calls_, driver_calls_;
};

}  // namespace weft::capture
