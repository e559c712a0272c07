// What an offloaded step of stages 1 and 2 holds, copies, waits for and reads, beside the real
// DeepSpeed's: tests/data/offload_fixture.json, written by scripts/make_offload_fixture.py.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/json.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/train/zero/zero_engine.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::offload_of_deepspeed_test {
namespace {

/// PyTorch keeps a few numbers of its own on the host, such as a norm or a step's count.
constexpr Bytes kNumbers = 200;

const json::object& fixture() {
  static const json::value root =
      parse_json(read_text_file(test::test_data("offload_fixture.json")));
  return root.as_object();
}

std::vector<json::object> rows() {
  std::vector<json::object> rows;
  for (const json::value& row : fixture().at("rows").as_array()) {
    const std::string_view placement(row.as_object().at("placement").as_string());
    if (!placement.starts_with("stage3")) rows.push_back(row.as_object());
  }
  return rows;
}

ModelParameters model_of(const json::object& row) {
  ModelParameters model;
  model.modules.push_back({"", "Model", 0, {}});
  const json::object& known = fixture().at("models").at(row.at("model").as_string()).as_object();
  for (const json::value& entry : known.at("parameters").as_array()) {
    ParameterSpec tensor;
    tensor.name = std::string(entry.at(0).as_string());
    for (const json::value& size : entry.at(1).as_array()) {
      tensor.shape.push_back(size.to_number<std::int64_t>());
    }
    tensor.weight_decay = tensor.shape.size() > 1;
    model.tensors.push_back(std::move(tensor));
  }
  for (const json::value& entry : known.at("modules").as_array()) {
    ModuleSpec module{
        std::string(entry.at(0).as_string()), std::string(entry.at(1).as_string()), 0, {}};
    for (const json::value& tensor : entry.at(2).as_array()) {
      module.parameters.push_back(tensor.to_number<std::size_t>());
    }
    model.modules.push_back(std::move(module));
  }
  return model;
}

StepConfig config_of(const json::object& row) {
  StepConfig config = make_step_config(row.at("ds_config").as_object());
  config.optimizer.client = row.at("parameter_groups").as_array().size() == 2;
  return config;
}

using Counts = std::map<std::string, std::uint64_t>;
/// By stream, purpose, direction, tier and kind: calls and bytes.
using Copies = std::map<std::string, std::pair<std::uint64_t, Bytes>>;

/// What happened between two moments of a step.
struct Phase {
  Copies copies;
  Counts waits;
  Counts reads;
  Copies passes;  // calls and elements

  bool operator==(const Phase&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Phase& phase) {
  for (const auto& [name, sums] : phase.copies) {
    out << "\n  " << name << ": " << sums.first << " calls, " << sums.second << " bytes";
  }
  for (const auto& [name, calls] : phase.waits) out << "\n  waits for " << name << ": " << calls;
  for (const auto& [name, calls] : phase.reads) out << "\n  reads " << name << ": " << calls;
  for (const auto& [name, sums] : phase.passes) {
    out << "\n  " << name << ": " << sums.first << " calls, " << sums.second << " elements";
  }
  return out;
}

std::string text(const json::value& value) { return std::string(value.as_string()); }

Phase recorded(const json::object& row, const std::string& name) {
  Phase phase;
  const json::object& phases = row.at("phases").as_object();
  const json::value* const found = phases.if_contains(name);
  if (found == nullptr) return phase;
  for (const json::value& line : found->at("copies").as_array()) {
    std::string purpose = text(line.at(1));
    if (purpose == "norm" || purpose == "overflow") purpose = "scalar";
    auto& sums = phase.copies[join(
        {text(line.at(0)), purpose, text(line.at(2)), text(line.at(3)), text(line.at(4))}, " ")];
    sums.first += line.at(5).to_number<std::uint64_t>();
    sums.second += line.at(6).to_number<Bytes>();
  }
  for (const auto& [reason, calls] : found->at("waits").as_object()) {
    phase.waits[reason] = calls.to_number<std::uint64_t>();
  }
  for (const auto& [what, calls] : found->at("reads").as_object()) {
    phase.reads[what.ends_with("norm") ? std::string("norm") : std::string(what)] +=
        calls.to_number<std::uint64_t>();
  }
  for (const json::value& line : found->at("host_passes").as_array()) {
    phase.passes[text(line.at(0))] = {line.at(1).to_number<std::uint64_t>(),
                                      line.at(2).to_number<Bytes>()};
  }
  return phase;
}

std::string name_of_purpose(TransferPurpose purpose) {
  return purpose == TransferPurpose::gradient_sum ? "gradient sum" : std::string(name_of(purpose));
}

/// The bytes that the pass of the optimizer reads and writes for an element, and its name there.
std::pair<std::string, Bytes> update_of(const StepConfig& config) {
  if (is<LionSettings>(config.optimizer)) return {"lion", 20};
  if (is<AdagradSettings>(config.optimizer)) return {"adagrad", 20};
  return {"adam", 28};
}

Phase measured(const Ledger& ledger, const StepConfig& config) {
  Phase phase;
  for (const TransferLine& line : ledger.transfers()) {
    const bool comes_down = line.transfer == Transfer::device_to_host;
    if (line.purpose == TransferPurpose::scalar && comes_down) continue;  // these are reads
    phase.copies[join(
        {line.stream == Stream::compute ? "default" : std::string(name_of(line.stream)),
         name_of_purpose(line.purpose), comes_down ? "D2H" : "H2D",
         line.tier == Tier::pinned ? "pinned" : "host", line.is_blocking ? "blocking" : "async"},
        " ")] = {line.calls, line.bytes};
  }
  const std::map<HostSync, std::string> waits = {{HostSync::offload_copy, "offload copies"},
                                                 {HostSync::reduction, "reduction"}};
  const std::map<HostSync, std::string> reads = {{HostSync::offload_overflow, "tensor overflow"},
                                                 {HostSync::offload_norm, "norm"},
                                                 {HostSync::overflow, "overflow"}};
  for (const SyncLine& line : ledger.syncs()) {
    if (waits.contains(line.reason)) phase.waits[waits.at(line.reason)] = line.calls;
    if (reads.contains(line.reason)) phase.reads[reads.at(line.reason)] = line.calls;
  }
  const auto [name, bytes] = update_of(config);
  const std::map<MemoryPass, std::pair<std::string, Bytes>> passes = {
      {MemoryPass::unscale, {"unscale", 8}},
      {MemoryPass::update, {name, bytes}},
      {MemoryPass::master_cast, {"cast", 4 + size_of(config.dtype)}}};
  for (const HostPassLine& line : ledger.host_passes()) {
    const auto& [pass, of_element] = passes.at(line.pass);
    phase.passes[pass] = {line.calls, (line.read + line.written) / of_element};
  }
  return phase;
}

HostUse use_in(const json::object& object) {
  return {object.at("pinned").to_number<Bytes>(), object.at("host").to_number<Bytes>()};
}

void expect_near(Bytes ours, Bytes theirs) {
  EXPECT_LE(ours, theirs);
  EXPECT_LE(theirs, ours + kNumbers);
}

/// The steady uses by purpose, added up.
HostUse steady_of(const json::object& row) {
  HostUse use;
  for (const auto& [purpose, bytes] : row.at("steady").at("pinned").as_object()) {
    use.pinned += bytes.to_number<Bytes>();
  }
  for (const auto& [purpose, bytes] : row.at("steady").at("host").as_object()) {
    use.pageable += bytes.to_number<Bytes>();
  }
  return use;
}

class OffloadOfDeepSpeed : public testing::TestWithParam<json::object> {};

INSTANTIATE_TEST_SUITE_P(Rows, OffloadOfDeepSpeed, testing::ValuesIn(rows()),
                         [](const auto& row) { return text(row.param.at("name")); });

/// Drives an engine as the recorded run drove DeepSpeed's.
class Driver {
 public:
  explicit Driver(const json::object& row)
      : row_(row),
        config_(config_of(row)),
        model_(model_of(row)),
        device_(kNoLimit),
        collectives_(device_, row.at("rank").to_number<int>(), row.at("ranks").to_number<int>()),
        engine_(make_zero_engine(config_, model_, device_, collectives_, 1)) {}

  Device& device() { return device_; }

  /// A step, whose phases are compared if `compares`.
  void step(bool compares) {
    for (std::int64_t i = 0; i < config_.accumulation_steps; ++i) {
      device_.ledger().clear();
      engine_->begin_micro_step(i + 1 == config_.accumulation_steps);
      for (std::size_t tensor = model_.tensors.size(); tensor-- > 0;) {
        engine_->gradient_ready(tensor, make_buffer(device_, MemoryCategory::gradients,
                                                    model_.tensors[tensor].numel(), config_.dtype));
      }
      engine_->end_backward();
      if (compares) compare(concat(i, " backward"));
    }
    device_.ledger().clear();
    engine_->step();
    if (compares) compare(concat(config_.accumulation_steps - 1, " step"));
  }

 private:
  void compare(const std::string& phase) {
    EXPECT_EQ(measured(device_.ledger(), config_), recorded(row_, phase)) << phase;
  }

  const json::object& row_;
  StepConfig config_;
  ModelParameters model_;
  DryDevice device_;
  DryCollectives collectives_;
  std::unique_ptr<ZeroEngine> engine_;
};

TEST_P(OffloadOfDeepSpeed, HoldsTheSameBytesOfTheHost) {
  const json::object& row = GetParam();
  Driver run(row);
  const json::object& setup = row.at("setup").as_object();
  EXPECT_EQ(run.device().host_memory().use(), use_in(setup));
  EXPECT_EQ(run.device().host_memory().peak().at_peak.total(),
            use_in(setup.at("at_host_peak").as_object()).total());

  run.step(false);
  run.step(false);

  const HostUse steady = steady_of(row);
  const HostUse use = run.device().host_memory().use();
  EXPECT_EQ(use.pinned, steady.pinned);
  expect_near(use.pageable, steady.pageable);
  const HostUse in_step = use_in(row.at("step").at("at_host_peak").as_object());
  expect_near(use.total(), in_step.total());
  EXPECT_EQ(run.device().host_memory().held() - use.pageable,
            row.at("pinned").at("taken").to_number<Bytes>());
}

TEST_P(OffloadOfDeepSpeed, CopiesWaitsReadsAndComputesTheSame) {
  Driver run(GetParam());
  run.step(false);

  run.step(true);
}

TEST(OffloadFixture, HasRowsOfEachStageTypeAndNumberOfRanks) {
  std::map<std::string, int> seen;
  for (const json::object& row : rows()) {
    const StepConfig config = config_of(row);
    ++seen[concat("stage ", config.stage)];
    ++seen[concat(row.at("ranks").to_number<int>(), " ranks")];
    ++seen[std::string(name_of(config.dtype))];
    ++seen[concat(config.accumulation_steps, " micro-steps")];
    EXPECT_TRUE(config.unsupported.empty()) << row.at("name");
  }
  for (const char* what : {"stage 1", "stage 2", "2 ranks", "3 ranks", "4 ranks", "fp32", "fp16",
                           "bf16", "1 micro-steps", "2 micro-steps", "3 micro-steps"}) {
    EXPECT_GT(seen[what], 2) << what;
  }
}

}  // namespace
}  // namespace dstune::offload_of_deepspeed_test
