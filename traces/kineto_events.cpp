#include "traces/kineto_events.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <limits>
#include <string>
#include <utility>

#include "sim/error.h"
#include "traces/json_stream.h"
#include "traces/kineto_json.h"
#include "traces/kineto_names.h"
#include "traces/kineto_others.h"
#include "traces/kineto_time.h"

namespace weft {
namespace {

namespace od = simdjson::ondemand;
using kineto_json::collective_of;
using kineto_json::correlation;
using kineto_json::integer;
using kineto_json::launch_shape;
using kineto_json::operator_inputs;
using kineto_json::raw_list;
using kineto_json::record_function;
using kineto_json::stream;
using kineto_json::stream_id;
using kineto_json::text;

class KinetoReader {
 public:
  explicit KinetoReader(const std::filesystem::path& path) : stream_(path) { file_.name = path.string(); }

  KinetoFile read() {
    try {
      parse();
      stream_.end();
    } catch (const simdjson::simdjson_error& error) {
      fail(std::string("expected JSON of a Kineto trace, got: ") + error.what());
    }
    finish();
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    std::string place = place_;
    if (in_event_) place = fmt::format("/traceEvents/{}", number_);
    if (in_event_ && !event_name_.empty()) place += fmt::format(" ({})", event_name_.substr(0, 80));
    throw InputError(file_.name, place, message);
  }

  void parse() {
    if (stream_.take_if('[')) {
      read_events();
      return;
    }
    if (!stream_.take_if('{')) {
      (void)checked_(stream_.value());
      fail("expected a Kineto trace (an object with \"traceEvents\"), got another JSON value");
    }
    bool found = false;
    bool has_nodes = false;  // as execution traces of PyTorch and of Chakra have
    std::string key;
    for (bool first = true; stream_.next_key(first, key); first = false) {
      place_ = "/" + key;
      if (key == "traceEvents") {
        if (!stream_.take_if('[')) fail("expected a list of events");
        found = true;
        read_events();
      } else if ((key == "deviceProperties" || key == "computeProperties") && stream_.peek() == '[') {
        od::document devices = checked_(stream_.value());
        read_devices(devices.get_array());
      } else if (key == "distributedInfo" && stream_.peek() == '{') {
        od::document document = checked_(stream_.value());
        od::object info = document.get_object();
        file_.rank = integer(info, "rank");
        file_.world_size = integer(info, "world_size");
      } else if (key == "baseTimeNanoseconds") {
        od::document document = checked_(stream_.value());
        base_ = document.get_int64();
      } else {
        has_nodes = has_nodes || key == "nodes";
        stream_.skip_value();
      }
    }
    place_.clear();
    if (!found && has_nodes)
      fail("expected a Kineto trace with \"traceEvents\", got an execution trace (\"nodes\"; weft import pytorch-et)");
    if (!found) fail("expected a Kineto trace with \"traceEvents\", got a JSON object without");
  }

  void read_devices(od::array devices) {
    for (auto entry : devices) {
      od::object o = entry.get_object();
      KinetoDevice device;
      device.id = integer(o, "id").value_or(static_cast<std::int64_t>(file_.devices.size()));
      device.name = text(o, "name");
      device.memory_bytes = std::max<std::int64_t>(integer(o, "totalGlobalMem").value_or(0), 0);
      const std::int64_t units = integer(o, "numSms").value_or(integer(o, "multiProcessorCount").value_or(0));
      device.compute_units = static_cast<std::uint32_t>(std::clamp<std::int64_t>(units, 0, 1 << 20));
      file_.devices.push_back(std::move(device));
    }
  }

  void read_events() {
    in_event_ = true;
    for (number_ = 0; stream_.next_element(number_ == 0); ++number_) {
      event_name_ = {};
      if (stream_.peek() != '{') {
        (void)checked_(stream_.value());
        fail("expected an event object");
      }
      od::document document = checked_(stream_.value());
      od::object o = document.get_object();
      read_event(o);
    }
    in_event_ = false;
    events_seen_ = number_;
  }

  void read_event(od::object& o) {
    std::string_view ph, cat, name;
    if (o["ph"].get_string().get(ph) != simdjson::SUCCESS) return;
    if (ph == "M") read_thread_name(o);
    if (ph != "X") return;
    const bool known =
        o["cat"].get_string().get(cat) == simdjson::SUCCESS && o["name"].get_string().get(name) == simdjson::SUCCESS;
    const std::optional<KinetoCategory> category = known ? kineto_category(cat, name) : std::nullopt;
    if (!category) return others_.add(cat);
    KinetoEvent event;
    event.category = *category;
    event.name = event_name_ = file_.texts(name);
    event.number = number_;
    if (!is_gpu(*category) && !has_ended(o)) return;
    event.start = time(o, "ts");
    event.duration = time(o, "dur");
    if (is_gpu(*category) && event.start == 0 && event.duration == 0) return;  // never ran (pytorch/kineto#109)
    if (event.start < 0) fail("expected a time of at least 0, got ts " + std::to_string(event.start) + " ns");
    if (event.duration < 0)
      fail("expected a duration of at least 0, got dur " + std::to_string(event.duration) + " ns");
    event.thread = integer(o, "tid").value_or(0);
    event.device = integer(o, "pid").value_or(0);
    od::value args_value;
    if (o["args"].get(args_value) == simdjson::SUCCESS && args_value.type() == od::json_type::object) {
      od::object args = args_value.get_object();
      read_args(args, event);
    }
    if (event.stream < 0 && is_gpu(event.category))
      event.stream = static_cast<std::int32_t>(stream_id(event.thread, 0));
    file_.events.push_back(event);
  }

  void read_thread_name(od::object& o) {
    std::string_view what, name;
    if (o["name"].get_string().get(what) != simdjson::SUCCESS || what != "thread_name") return;
    if (o["args"]["name"].get_string().get(name) != simdjson::SUCCESS || !is_autograd_thread(name)) return;
    if (const auto thread = integer(o, "tid")) file_.autograd_threads.insert(*thread);
  }

  // Profiles may hold calls without an end, or with one before their start (pytorch/kineto#646).
  static bool has_ended(od::object& o) {
    od::value v;
    return o["dur"].get(v) == simdjson::SUCCESS && nanoseconds_of(v.raw_json_token()).value_or(0) >= 0;
  }

  std::int64_t time(od::object& o, std::string_view key) {
    od::value v;
    if (o[key].get(v) != simdjson::SUCCESS) fail(fmt::format("expected \"{}\", got none", key));
    const std::string_view token = v.raw_json_token();
    const std::optional<std::int64_t> ns = nanoseconds_of(token);
    if (!ns) fail(fmt::format("expected a number of microseconds in \"{}\", got {}", key, token));
    if (token.find('.') != std::string_view::npos) fractions_ = true;
    return *ns;
  }

  void read_args(od::object& args, KinetoEvent& event) {
    switch (event.category) {
      case KinetoCategory::kernel:
      case KinetoCategory::copy:
      case KinetoCategory::memset:
        read_gpu_args(args, event);
        break;
      case KinetoCategory::runtime:
        event.correlation = correlation(args);
        read_shape(args, event);
        event.bytes = integer(args, "size").value_or(integer(args, "bytes").value_or(0));
        break;
      case KinetoCategory::synchronization:
        event.correlation = correlation(args);
        event.stream = stream(args, "stream");
        event.waited_stream = stream(args, "wait_on_stream");
        event.waited_record = integer(args, "wait_on_cuda_event_record_corr_id").value_or(-1);
        break;
      case KinetoCategory::cpu_operator:
        event.correlation = record_function(args);
        event.sequence = integer(args, "Sequence number").value_or(-1);
        if (event.name == "record_param_comms") read_collective(args, event);
        read_inputs(args, event);
        break;
      case KinetoCategory::annotation:
        event.correlation = record_function(args);
        if (event.name.starts_with("nccl:")) read_collective(args, event);
        break;
      case KinetoCategory::module:
        break;
    }
  }

  void read_inputs(od::object& args, KinetoEvent& event) {
    const std::string_view dims = raw_list(args, "Input Dims");
    if (dims.empty()) return;
    const std::string_view types = raw_list(args, "Input type");
    key_.assign(dims).append("\n").append(types);
    auto found = file_.inputs.find(key_);
    if (found == file_.inputs.end()) found = file_.inputs.emplace(key_, operator_inputs(dims, types)).first;
    event.inputs = &found->second;
  }

  void read_gpu_args(od::object& args, KinetoEvent& event) {
    event.device = integer(args, "device").value_or(event.device);
    event.stream = stream(args, "stream");
    event.correlation = correlation(args);
    if (event.category == KinetoCategory::kernel) {
      read_shape(args, event);
      if (is_collective_kernel(event.name)) read_collective(args, event);
    } else {
      event.bytes = integer(args, "bytes").value_or(0);
      event.copy_kind = file_.texts(text(args, "kind"));
    }
    if (event.bytes < 0) fail("expected at least 0 bytes, got " + std::to_string(event.bytes));
  }

  void read_shape(od::object& args, KinetoEvent& event) {
    const auto shape = launch_shape(args, [&](const std::string& message) { fail(message); });
    if (shape) event.shape = &file_.shapes.emplace_back(*shape);
  }

  void read_collective(od::object& args, KinetoEvent& event) {
    event.collective =
        &file_.collectives.emplace_back(collective_of(args, event.category == KinetoCategory::annotation));
  }

  void finish() {
    bool gpu = false;
    for (KinetoEvent& event : file_.events) {
      gpu = gpu || is_gpu(event.category);
      std::int64_t end = 0;
      if (__builtin_add_overflow(event.start, base_, &event.start) ||
          __builtin_add_overflow(event.start, event.duration, &end))
        throw InputError(file_.name, "/traceEvents/" + std::to_string(event.number),
                         "expected a time within 2^63 ns, got a later one");
    }
    if (!gpu)
      fail("expected GPU operations (\"cat\": \"kernel\"), got " + others_.words(events_seen_, !file_.events.empty()));
    // Starts and durations in whole microseconds are both cut off, so an end may be wrong by two.
    file_.clock_tolerance = fractions_ ? 100 : 2000;
  }

  JsonStream stream_;
  kineto_json::CheckedParser checked_;
  KinetoFile file_;
  std::string place_;  // outside of events
  bool in_event_ = false;
  std::size_t number_ = 0;       // of the event
  std::string_view event_name_;  // as far as it is known
  std::string key_;
  std::int64_t base_ = 0;
  std::size_t events_seen_ = 0;
  OtherEvents others_;
  bool fractions_ = false;
};

}  // namespace

KinetoFile read_kineto(const std::filesystem::path& file) { return KinetoReader(file).read(); }

}  // namespace weft
