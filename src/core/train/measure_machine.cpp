#include "core/train/measure_machine.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/host/this_host.hpp"
#include "core/base/json_parser.hpp"
#include "core/device/rates/measure_host_rates.hpp"
#include "core/device/rates/measure_rates.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/check_machine.hpp"
#include "core/train/families/families.hpp"

namespace dstune {
namespace {

// Micro-batches that stand for all sizes; a size in between takes the nearest one.
constexpr std::int64_t kMicroBatches[] = {1, 4, 16};

constexpr Bytes kSmallestMessage = Bytes{1} << 16U;
// The memory of experiments holds two of the largest messages, and some slack: see measure_rates().
constexpr Bytes kMessages = 3;

/// The largest message, in bytes; the same on all ranks, as large as the experiments' memory
/// allows.
Bytes largest_message(const RunSettings& settings) {
  return std::clamp(settings.memory_limit / kMessages, kSmallestMessage, kLargestMessage);
}

// The keys under which ds_config asks for messages and for the host; they are none of DeepSpeed's.
constexpr std::string_view kAsked = "dstune_messages";
constexpr std::string_view kAskedForHost = "dstune_host_rates";

std::vector<GroupMessage> messages_in(const json::object& ds_config) {
  std::vector<GroupMessage> messages;
  const json::value* const asked = ds_config.if_contains(kAsked);
  if (asked == nullptr) return messages;
  for (const json::value& message : asked->as_array()) {
    messages.push_back(group_message_from_json(message.as_object()));
  }
  return messages;
}

/// The part of a rank's memory that is used at a time, as the same memory may be the device's.
constexpr Bytes kShareOfHost = 4;

std::optional<HostRates> host_rates(const Experiment& experiment, Device& device, Group& group) {
  const RunSettings& settings = experiment.settings;
  const Bytes limit = settings.is_one_memory() ? settings.memory_limit : settings.host_memory_limit;
  const int per_node = settings.devices_per_node == 0 ? group.size() : settings.devices_per_node;
  HostMeasure how;
  how.memory = std::min(how.memory, limit / kShareOfHost);
  how.ranks_on_node = std::min(per_node, group.size());
  how.rank_on_node = group.rank() % per_node;
  how.cache = last_level_cache();
  return measure_host_rates(device, group, how);
}

std::vector<MatrixShape> shapes_of(const RunSettings& settings) {
  const ModelParameters model = make_model_parameters(settings.model);
  std::vector<MatrixShape> shapes;
  for (const std::int64_t micro_batch : kMicroBatches) {
    const auto more = product_shapes(model, micro_batch * settings.sequence_length);
    shapes.insert(shapes.end(), more.begin(), more.end());
  }
  return shapes;
}

}  // namespace

std::vector<MatrixShape> product_shapes(const ModelParameters& model, std::int64_t rows) {
  std::vector<MatrixShape> shapes;
  const auto add = [&](const MatrixShape& shape) {
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  };
  for (const ParameterSpec& tensor : model.tensors) {
    if (tensor.shape.size() != 2) continue;
    const std::int64_t in = tensor.shape[0];
    const std::int64_t out = tensor.shape[1];
    add({.rows = rows, .cols = out, .inner = in});
    add({.rows = rows, .cols = in, .inner = out});
    add({.rows = in, .cols = out, .inner = rows});
  }
  std::stable_sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) {
    return a.rows * a.cols * a.inner < b.rows * b.cols * b.inner;
  });
  return shapes;
}

void ask_for(Experiment& machine, const std::vector<GroupMessage>& messages) {
  if (messages.empty()) return;
  json::array asked;
  for (const GroupMessage& message : messages) asked.push_back(to_json(message));
  machine.ds_config.set(kAsked, std::move(asked));
}

void ask_for_host(Experiment& machine) { machine.ds_config.set(kAskedForHost, true); }

bool asks_for_host(const Experiment& machine) {
  return machine.ds_config.json().contains(kAskedForHost);
}

Outcome measure_machine(const Experiment& experiment, Device& device, Collectives& collectives,
                        Group& group) {
  if (is_preflight(experiment)) return check_machine(experiment, device, collectives, group);
  HostOverhead products;  // of the profile: a step's products take as long as they say
  products.products = experiment.settings.host_overhead.products;
  device.set_host_overhead(products);
  const MemoryBudget& memory = device.memory();
  const Bytes largest = largest_message(experiment.settings);
  if (!group.vote(memory.has_room(kMessages * largest))) {
    return OutOfMemory{group.rank(), MemoryCategory::temporaries, kMessages * largest,
                       memory.in_use(), memory.limit()};
  }
  const DType dtype = make_step_config(experiment).dtype;
  auto own = measure_rates(device, collectives, dtype, shapes_of(experiment.settings),
                           messages_in(experiment.ds_config.json()), largest);
  if (own && asks_for_host(experiment)) own->host = host_rates(experiment, device, group);
  std::vector<MachineRates> ranks;
  for (const std::string& text : group.gather(own ? to_json_text(to_json(*own), 0) : "")) {
    if (!text.empty()) ranks.push_back(machine_rates_from_json(parse_json(text).as_object()));
  }
  if (!own) return Failed{FailureKind::error, "the device has no time"};
  Measured measured;
  measured.machine_rates = ranks.empty() ? *own : merge(ranks);
  return measured;
}

}  // namespace dstune
