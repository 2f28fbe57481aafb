#include "sim/program.h"

#include "sim/error.h"

namespace weft {

GpuGroup GpuGroup::first(std::uint32_t count) {
  std::vector<GpuId> members;
  for (std::uint32_t gpu = 0; gpu < count; ++gpu) members.push_back(GpuId{gpu});
  return members;
}

std::int64_t bytes_per_element(DataType type) {
  switch (type) {
    case DataType::fp64:
    case DataType::int64:
      return 8;
    case DataType::fp32:
    case DataType::tf32:
    case DataType::int32:
      return 4;
    case DataType::fp16:
    case DataType::bf16:
      return 2;
    case DataType::fp8:
    case DataType::int8:
      return 1;
  }
  throw InternalError("unknown data type");
}

const char* to_string(TrainingPhase phase) {
  switch (phase) {
    case TrainingPhase::forward:
      return "forward";
    case TrainingPhase::backward:
      return "backward";
    case TrainingPhase::optimizer:
      return "optimizer";
    case TrainingPhase::other:
      return "other";
  }
  throw InternalError("unknown training phase");
}

const char* to_string(DataType type) {
  switch (type) {
    case DataType::fp64:
      return "fp64";
    case DataType::int64:
      return "int64";
    case DataType::fp32:
      return "fp32";
    case DataType::tf32:
      return "tf32";
    case DataType::int32:
      return "int32";
    case DataType::fp16:
      return "fp16";
    case DataType::bf16:
      return "bf16";
    case DataType::fp8:
      return "fp8";
    case DataType::int8:
      return "int8";
  }
  throw InternalError("unknown data type");
}

const char* to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::barrier:
      return "barrier";
    case CollectiveKind::gather:
      return "gather";
    case CollectiveKind::scatter:
      return "scatter";
    case CollectiveKind::send_receive:
      return "send_receive";
    case CollectiveKind::shift:
      return "shift";
  }
  throw InternalError("unknown collective");
}

const char* to_string(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::parameters:
      return "parameters";
    case MemoryClass::gradients:
      return "gradients";
    case MemoryClass::optimizer:
      return "optimizer";
    case MemoryClass::activations:
      return "activations";
    case MemoryClass::communication:
      return "communication";
    case MemoryClass::workspace:
      return "workspace";
  }
  throw InternalError("unknown memory class");
}

}  // namespace weft
