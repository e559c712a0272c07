// Stage 3 with the optimizer in the host's memory, and with parameters there too, beside the real
// DeepSpeed: what a dry step has there, copies, and waits for, against
// tests/data/offload_fixture.json, which scripts/make_offload_fixture.py writes and describes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/json.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/zero/zero_engine.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::sharded_offload_of_deepspeed_test {
namespace {

std::string text(const json::value& value) { return std::string(value.as_string()); }

std::uint64_t number(const json::value& value) { return value.to_number<std::uint64_t>(); }

std::uint64_t number_or_none(const json::object& object, std::string_view key) {
  const json::value* const found = object.if_contains(key);
  return found == nullptr ? 0 : number(*found);
}

/// A dry device that notes which sizes of pinned memory are asked for, and what is in use of its
/// host at most from a moment on.
class PinnedRequests final : public DryDevice {
 public:
  PinnedRequests() : DryDevice(kUnlimited) {}

  const std::vector<Bytes>& sizes() const { return sizes_; }
  const HostUse& peak() const { return peak_; }
  void begin_peak() { peak_ = use_; }

 private:
  static constexpr Bytes kUnlimited = Bytes{1} << 60U;

  Bytes& used_of(Tier tier) { return tier == Tier::pinned ? use_.pinned : use_.pageable; }
  void* do_allocate_on_host(Tier tier, MemoryCategory category, Bytes size) override {
    if (tier == Tier::pinned) sizes_.push_back(size);
    used_of(tier) += size;
    if (use_.total() > peak_.total()) peak_ = use_;
    return do_allocate(category, size);
  }
  void do_free_on_host(Tier tier, void* data, Bytes size) noexcept override {
    used_of(tier) -= size;
    do_free(data, size);
  }

  std::vector<Bytes> sizes_;
  HostUse use_;
  HostUse peak_;
};

ModelParameters model_of(const json::object& model) {
  ModelParameters result;
  for (const json::value& entry : model.at("parameters").as_array()) {
    ParameterSpec tensor;
    tensor.name = text(entry.at(0));
    for (const json::value& side : entry.at(1).as_array()) {
      tensor.shape.push_back(side.to_number<std::int64_t>());
    }
    result.tensors.push_back(std::move(tensor));
  }
  result.modules.push_back({"", "Model", 0, {}, false});
  for (const json::value& entry : model.at("modules").as_array()) {
    ModuleSpec module{text(entry.at(0)), text(entry.at(1)), 0, {}, true};
    for (const json::value& tensor : entry.at(2).as_array()) {
      module.parameters.push_back(tensor.to_number<std::size_t>());
    }
    module.input_has_gradient = module.class_name != "embedding";
    result.modules.push_back(std::move(module));
  }
  return result;
}

/// The two groups of the fixture are those of weights and of biases, as of a client's optimizer.
void set_groups(const json::array& groups, StepConfig& config, ModelParameters& model) {
  config.optimizer.client = groups.size() > 1;
  config.optimizer.weight_decay = groups.front().at(0).to_number<double>();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const json::value& tensor : groups[i].at(1).as_array()) {
      model.tensors.at(tensor.to_number<std::size_t>()).weight_decay = i == 0;
    }
  }
}

/// One rank of a row.
class RankOfRow {
 public:
  RankOfRow(const json::object& row, const json::object& fixture)
      : config_(make_step_config(row.at("ds_config").as_object())),
        model_(model_of(fixture.at("models").at(row.at("model").as_string()).as_object())),
        collectives_(device_, row.at("rank").to_number<int>(), row.at("ranks").to_number<int>()) {
    set_groups(row.at("parameter_groups").as_array(), config_, model_);
    EXPECT_EQ(config_.unsupported, std::vector<std::string>{});
    engine_ = make_zero_engine(config_, model_, device_, collectives_, 1);
  }

  const StepConfig& config() const { return config_; }
  const PinnedRequests& device() const { return device_; }

  /// A step of the optimizer. @returns the ledgers of its phases, by their names in the fixture
  std::map<std::string, Ledger> step() {
    std::map<std::string, Ledger> phases;
    const auto end = [&](std::int64_t micro_step, std::string_view phase) {
      phases[concat(micro_step, " ", phase)] = device_.ledger();
      device_.ledger().clear();
    };
    device_.ledger().clear();
    device_.begin_peak();
    const std::int64_t last = config_.accumulation_steps - 1;
    for (std::int64_t micro_step = 0; micro_step <= last; ++micro_step) {
      engine_->begin_micro_step(micro_step == last);
      forward();
      end(micro_step, "forward");
      backward();
      end(micro_step, "backward");
    }
    EXPECT_FALSE(engine_->step().overflow);
    end(last, "step");
    return phases;
  }

 private:
  void forward() {
    engine_->fetch(0);
    for (std::size_t module = 1; module < model_.modules.size(); ++module) {
      engine_->fetch(module);
      engine_->release(module);
    }
    engine_->release(0);
  }

  void backward() {
    engine_->fetch_for_backward(0);
    for (std::size_t module = model_.modules.size() - 1; module > 0; --module) {
      engine_->fetch_for_backward(module);
      const std::vector<std::size_t>& tensors = model_.modules[module].parameters;
      for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
        engine_->gradient_ready(*tensor,
                                make_buffer(device_, MemoryCategory::gradients,
                                            model_.tensors[*tensor].numel(), config_.dtype));
      }
      engine_->release_after_backward(module);
    }
    engine_->release_after_backward(0);
    engine_->end_backward();
  }

  StepConfig config_;
  ModelParameters model_;
  PinnedRequests device_;
  DryCollectives collectives_;
  std::unique_ptr<ZeroEngine> engine_;
};

/// Stream, purpose, direction, tier of the host's side, and whether the host waits by request.
using Kind = std::tuple<std::string, std::string, std::string, std::string, std::string>;
using Copies = std::map<Kind, std::pair<std::uint64_t, Bytes>>;

void add(Copies& copies, const Kind& kind, std::uint64_t calls, Bytes bytes) {
  copies[kind].first += calls;
  copies[kind].second += bytes;
}

bool is_scalar(std::string_view purpose) { return purpose == "norm" || purpose == "overflow"; }

// What the host reads of the device is a copy too: a sum of squares has 8 bytes, the flag one.
Copies deepspeeds_copies(const json::object& phase) {
  Copies copies;
  for (const json::value& line : phase.at("copies").as_array()) {
    const std::string purpose = text(line.at(1));
    add(copies,
        {text(line.at(0)), is_scalar(purpose) ? "scalar" : purpose, text(line.at(2)),
         text(line.at(3)), text(line.at(4))},
        number(line.at(5)), number(line.at(6)));
  }
  const json::object& reads = phase.at("reads").as_object();
  const Kind read{"default", "scalar", "D2H", "host", "blocking"};
  const std::uint64_t norms = number_or_none(reads, "sub-group norm");
  const std::uint64_t flags = number_or_none(reads, "overflow");
  if (norms + flags > 0) add(copies, read, norms + flags, 8 * norms + flags);
  return copies;
}

Copies our_copies(const Ledger& ledger) {
  Copies copies;
  for (const TransferLine& line : ledger.transfers()) {
    std::string purpose(name_of(line.purpose));
    std::replace(purpose.begin(), purpose.end(), '_', ' ');
    add(copies,
        {line.stream == Stream::compute ? "default" : std::string(name_of(line.stream)), purpose,
         line.transfer == Transfer::device_to_host ? "D2H" : "H2D",
         line.tier == Tier::pinned ? "pinned" : "host", line.is_blocking ? "blocking" : "async"},
        line.calls, line.bytes);
  }
  return copies;
}

using Waits = std::map<std::string, std::uint64_t>;

// A driver copies pageable memory while the host waits, whatever was asked for.
Waits deepspeeds_waits(const json::object& phase) {
  Waits waits;
  for (const auto& entry : phase.at("waits").as_object()) {
    waits[entry.key()] = number(entry.value());
  }
  for (const auto& entry : phase.at("reads").as_object()) {
    waits[entry.key() == "overflow" ? "overflow" : "offload_norm"] = number(entry.value());
  }
  for (const json::value& line : phase.at("copies").as_array()) {
    if (line.at(4) == "blocking" || line.at(3) == "host") {
      waits["blocking_copy"] += number(line.at(5));
    }
  }
  return waits;
}

Waits our_waits(const Ledger& ledger) {
  Waits waits;
  for (const SyncLine& line : ledger.syncs()) waits[std::string(name_of(line.reason))] = line.calls;
  return waits;
}

/// Calls and bytes by pass.
using Passes = std::map<std::string, std::pair<std::uint64_t, Bytes>>;

/// What is read and written of an element of `e` bytes.
Bytes bytes_of(std::string_view pass, Bytes e) {
  if (pass == "unscale") return 8;
  if (pass == "adam") return 28;
  if (pass == "adagrad") return 20;
  if (pass == "lion") return 20;
  if (pass == "cast") return 4 + e;
  if (pass == "isinf") return 3 * e + 1;  // by way of absolute values
  if (pass == "isnan") return e + 1;
  EXPECT_EQ(pass, "any");
  return 1;
}

std::string our_name_of(std::string_view pass) {
  if (pass == "unscale") return "unscale";
  if (pass == "cast") return "master_cast";
  return pass == "isinf" || pass == "isnan" || pass == "any" ? "overflow_check" : "update";
}

Passes deepspeeds_passes(const json::object& phase, Bytes e) {
  Passes passes;
  for (const json::value& line : phase.at("host_passes").as_array()) {
    const std::string name = text(line.at(0));
    passes[our_name_of(name)].first += number(line.at(1));
    passes[our_name_of(name)].second += number(line.at(2)) * bytes_of(name, e);
  }
  return passes;
}

Passes our_passes(const Ledger& ledger) {
  Passes passes;
  for (const HostPassLine& line : ledger.host_passes()) {
    passes[std::string(name_of(line.pass))] = {line.calls, line.read + line.written};
  }
  return passes;
}

// The search for inf and NaN is other kernels that move the same bytes; the last byte of an odd
// number is not copied within a mask.
void expect_same_passes(Passes ours, Passes deepspeeds) {
  if (deepspeeds.contains("overflow_check")) {
    const Bytes bytes = deepspeeds["overflow_check"].second;
    EXPECT_LE(ours["overflow_check"].second, bytes);
    EXPECT_GE(ours["overflow_check"].second + 2, bytes);
    ours.erase("overflow_check");
    deepspeeds.erase("overflow_check");
  }
  EXPECT_EQ(ours, deepspeeds);
}

HostUse use_of(const json::object& memory) {
  return {number(memory.at("pinned")), number(memory.at("host"))};
}

/// DeepSpeed has a flag and norms on the host beside, which are not counted here.
void expect_use(const HostUse& ours, const HostUse& deepspeeds, Bytes scalars) {
  EXPECT_EQ(ours.pinned, deepspeeds.pinned);
  EXPECT_LE(ours.pageable, deepspeeds.pageable);
  EXPECT_GE(ours.pageable + scalars, deepspeeds.pageable);
}

Bytes sum_of(const json::object& by_purpose) {
  Bytes sum = 0;
  for (const auto& entry : by_purpose) {
    if (!is_scalar(entry.key())) sum += number(entry.value());
  }
  return sum;
}

bool offloads_optimizer(const json::object& row) {
  return row.at("ds_config").at("zero_optimization").as_object().contains("offload_optimizer");
}

/// The sub-groups: the host reads a norm of each, or each is sent there after its update.
std::uint64_t sub_groups_of(const json::object& row) {
  std::uint64_t reads = 0;
  for (const auto& phase : row.at("phases").as_object()) {
    if (offloads_optimizer(row)) {
      reads += number_or_none(phase.value().at("reads").as_object(), "sub-group norm");
      continue;
    }
    for (const json::value& line : phase.value().at("copies").as_array()) {
      if (line.at(1) == "update" && line.at(2) == "D2H") reads += number(line.at(5));
    }
  }
  return reads;
}

void expect_same_memory_at_first(const json::object& row, const PinnedRequests& device) {
  const json::object& setup = row.at("setup").as_object();
  constexpr Bytes kFlag = 1;
  expect_use(device.host_memory().use(), use_of(setup), kFlag);
  expect_use(device.host_memory().peak().at_peak, use_of(setup.at("at_host_peak").as_object()),
             kFlag);
}

void expect_same_memory_at_last(const json::object& row, const PinnedRequests& device) {
  const HostUse step = use_of(row.at("step").at("at_host_peak").as_object());
  const Bytes numbers = 16 * (sub_groups_of(row) + 1);  // for each sub-group, and for their sum
  expect_use(device.peak(), step, numbers);

  const json::object& steady = row.at("steady").as_object();
  const Bytes pinned = sum_of(steady.at("pinned").as_object());
  // PyTorch's Adam counts its steps on the host.
  const Bytes pageable = offloads_optimizer(row) ? sum_of(steady.at("host").as_object()) : 0;
  EXPECT_EQ(device.host_memory().use(), (HostUse{pinned, pageable}));
  std::vector<Bytes> pins;
  for (const json::value& pin : row.at("pins").as_array()) pins.push_back(number(pin.at(1)));
  EXPECT_EQ(device.sizes(), pins);
  EXPECT_EQ(device.host_memory().held() - device.host_memory().use().pageable,
            number(row.at("pinned").at("taken")));
}

/// @param with_numbers  false: norms and flags are those of a step without offload, which this
///        fixture is not about
void expect_same_copies(const Ledger& ledger, const json::object& phase, bool with_numbers) {
  Copies ours = our_copies(ledger);
  Copies deepspeeds = deepspeeds_copies(phase);
  Waits our_own = our_waits(ledger);
  Waits deepspeeds_own = deepspeeds_waits(phase);
  if (!with_numbers) {
    std::uint64_t numbers = 0;
    std::erase_if(ours, [](const auto& copy) { return std::get<1>(copy.first) == "scalar"; });
    std::erase_if(deepspeeds, [&](const auto& copy) {
      const auto& [stream, purpose, direction, tier, kind] = copy.first;
      const bool is_number = purpose == "scalar";
      if (is_number && direction == "H2D") numbers += copy.second.first;
      return is_number;
    });
    if (numbers > 0) deepspeeds_own["blocking_copy"] -= numbers;
    for (const char* reason : {"overflow", "offload_norm", "norm"}) {
      our_own.erase(reason);
      deepspeeds_own.erase(reason);
    }
  }
  EXPECT_EQ(ours, deepspeeds);
  EXPECT_EQ(our_own, deepspeeds_own);
}

void expect_same_step(const json::object& row, const std::map<std::string, Ledger>& ours, Bytes e) {
  const json::object& phases = row.at("phases").as_object();
  for (const auto& phase : phases) {
    EXPECT_TRUE(ours.contains(phase.key())) << phase.key();
  }
  const json::object nothing = {{"copies", json::array{}},
                                {"waits", json::object{}},
                                {"reads", json::object{}},
                                {"host_passes", json::array{}}};
  for (const auto& [name, ledger] : ours) {
    SCOPED_TRACE(name);
    const json::value* const found = phases.if_contains(name);
    const json::object& phase = found == nullptr ? nothing : found->as_object();
    expect_same_copies(ledger, phase, offloads_optimizer(row));
    expect_same_passes(our_passes(ledger), deepspeeds_passes(phase, e));
  }
}

/// @returns how many rows there are
std::size_t expect_dry_steps_of(std::string_view placement) {
  const json::object fixture =
      parse_json(read_text_file(test::test_data("offload_fixture.json"))).as_object();
  std::size_t rows = 0;
  for (const json::value& value : fixture.at("rows").as_array()) {
    const json::object& row = value.as_object();
    if (row.at("placement").as_string() != placement) continue;
    ++rows;
    SCOPED_TRACE(json::serialize(row.at("name")));

    RankOfRow rank(row, fixture);

    expect_same_memory_at_first(row, rank.device());
    rank.step();
    expect_same_step(row, rank.step(), size_of(rank.config().dtype));
    expect_same_memory_at_last(row, rank.device());
  }
  return rows;
}

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStep) { EXPECT_EQ(expect_dry_steps_of("stage3"), 18U); }

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStepWithSubGroupsOnTheDevice) {
  EXPECT_EQ(expect_dry_steps_of("stage3_ratio"), 18U);
}

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStepWithParametersOnTheHost) {
  EXPECT_EQ(expect_dry_steps_of("stage3_parameters"), 19U);
}

TEST(ShardedOffloadOfDeepSpeed, IsTheDryStepWithParametersAloneOnTheHost) {
  EXPECT_EQ(expect_dry_steps_of("stage3_parameters_alone"), 16U);
}

}  // namespace
}  // namespace dstune::sharded_offload_of_deepspeed_test
