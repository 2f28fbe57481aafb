// CUPTI, opened when CUDA starts and not linked with, so that programs without CUDA never see it.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#define WEFT_CUPTI_FUNCTIONS(X)             \
  X(cuptiSubscribe_v2)                      \
  X(cuptiUnsubscribe)                       \
  X(cuptiEnableCallback)                    \
  X(cuptiGetResultString)                   \
  X(cuptiGetCallbackName)                   \
  X(cuptiGetDeviceId)                       \
  X(cuptiGetGraphNodeId)                    \
  X(cuptiGetStreamIdEx)                     \
  X(cuptiSetThreadIdType)                   \
  X(cuptiActivityRegisterCallbacks)         \
  X(cuptiActivityRegisterTimestampCallback) \
  X(cuptiActivityEnable)                    \
  X(cuptiActivityEnableRuntimeApi)          \
  X(cuptiActivityEnableDriverApi)           \
  X(cuptiActivityGetNextRecord)             \
  X(cuptiActivityGetNumDroppedRecords)      \
  X(cuptiActivityFlushAll)

namespace weft::capture {

struct Cupti {
  void* library = nullptr;
#define WEFT_MEMBER(name) decltype(&::name) name = nullptr;
  WEFT_CUPTI_FUNCTIONS(WEFT_MEMBER)
#undef WEFT_MEMBER
};

// Opened by the first call, preferring kCuptiVariable, then the copy that the process has; nullptr: there is none.
[[nodiscard]] const Cupti* cupti();

// One of its functions; nullptr: it has none of that name, or there is no CUPTI.
[[nodiscard]] void* cupti_function(const char* name);

// Functions that some versions lack, as `functions()`: each is nullptr where it is missing, and `all` false.
#define WEFT_CUPTI_MEMBER(name) decltype(&::name) name = nullptr;
#define WEFT_CUPTI_FIND(name) \
  all = (this->name = reinterpret_cast<decltype(&::name)>(cupti_function(#name))) != nullptr && all;
#define WEFT_CUPTI_TABLE(names)               \
  struct Functions {                          \
    names(WEFT_CUPTI_MEMBER) bool all = true; \
    Functions() { names(WEFT_CUPTI_FIND) }    \
  };                                          \
  const Functions& functions() {              \
    static const Functions found;             \
    return found;                             \
  }

// A function of the driver, where it is loaded; nullptr: there is none.
[[nodiscard]] void* driver_function(const char* name);

// For the user: that `what` failed, why that may be, and that the program runs on, `but` what.
[[nodiscard]] std::string failure(const char* what, CUptiResult result, const char* but);
void tell_failure(const char* what, CUptiResult result, const char* but);

// Asks for callbacks in the name of weft, once a process. nullopt, after telling why, when another profiler has them or
// CUPTI cannot start.
[[nodiscard]] std::optional<CUpti_SubscriberHandle> subscribe(CUpti_CallbackFunc callback, const char* but);

// Each call of the driver and the runtime that CUPTI knows, with its name.
void for_each_call(const std::function<void(CUpti_CallbackDomain, CUpti_CallbackId, const char* name)>& visit);

// What is captured into a graph does not run now. The default stream counts as captured while another one is: to ask of
// it then is an error.
[[nodiscard]] bool is_capturing(CUstream stream);

// Structs of CUPTI's profilers: their size, by which it knows the version, then zeros.
template <class Parameters>
Parameters sized_parameters(std::size_t bytes) {
  Parameters parameters{};
  parameters.structSize = bytes;
  return parameters;
}
#define WEFT_PARAMETERS(type) ::weft::capture::sized_parameters<type>(type##_STRUCT_SIZE)

}  // namespace weft::capture
