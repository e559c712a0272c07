// Optimizers against torch.optim and published rules (scripts/make_optimizer_fixture.py), from the
// configuration's text to the parameters.
#include "core/train/zero/optimizer_state.hpp"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/experiment/step_config.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::optimizer_state_test {
namespace {

constexpr Bytes kLimit = Bytes{1} << 20U;
constexpr double kTolerance = 2e-6;  // a few fp32 roundings of numbers around 1

using Numbers = std::vector<float>;

json::value read_fixture() {
  std::ifstream file(test::test_data("optimizer_fixture.json"));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return json::parse(text);
}

OptimizerConfig config_of(const json::object& section) {
  const StepConfig config = make_step_config({{"optimizer", section}});
  EXPECT_TRUE(config.unsupported.empty());
  return config.optimizer;
}

OptimizerConfig config_of(const json::value& fixture_case) {
  return config_of(
      json::object{{"type", fixture_case.at("type")}, {"params", fixture_case.at("params")}});
}

/// A parameter of which `parts` tensors lie in one list.
class Updated {
 public:
  Updated(Device& device, const OptimizerConfig& optimizer, const Numbers& initial)
      : device_(device), optimizer_(optimizer) {
    const auto count = static_cast<std::int64_t>(initial.size());
    gradient_ = make_buffer(device, MemoryCategory::temporaries, count, DType::fp32);
    parameter_ = make_buffer(device, MemoryCategory::optimizer, count, DType::fp32);
    device.write(initial, parameter_.tensor(DType::fp32));
  }

  /// @param cut  the tensors are [0, cut) and [cut, end); 0: it is one
  Numbers update(std::int64_t step, const Numbers& gradient, std::int64_t cut) {
    const Tensor g = gradient_.tensor(DType::fp32);
    const Tensor p = parameter_.tensor(DType::fp32);
    device_.write(gradient, g);
    std::vector<UpdatedTensor> tensors;
    if (cut > 0) tensors.push_back({g.slice(0, cut), p.slice(0, cut)});
    tensors.push_back({g.slice(cut, g.numel - cut), p.slice(cut, p.numel - cut)});
    state_.update(device_, {&optimizer_, optimizer_.weight_decay, step}, tensors);
    Numbers values(gradient.size());
    device_.read(p, values);
    return values;
  }

 private:
  Device& device_;
  const OptimizerConfig& optimizer_;
  Buffer gradient_;
  Buffer parameter_;
  OptimizerState state_;
};

void expect_as_in_fixture(const json::value& fixture, const json::value& fixture_case,
                          std::int64_t cut) {
  cpu::CpuDevice device(kLimit);
  const OptimizerConfig optimizer = config_of(fixture_case);
  Updated updated(device, optimizer, json::value_to<Numbers>(fixture.at("initial")));
  std::int64_t step = 0;
  for (const json::value& expected : fixture_case.at("parameters").as_array()) {
    const auto gradient =
        json::value_to<Numbers>(fixture.at("gradients").at(static_cast<std::size_t>(step)));
    const Numbers actual = updated.update(++step, gradient, cut);
    const auto numbers = json::value_to<std::vector<double>>(expected);
    ASSERT_EQ(actual.size(), numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_NEAR(actual[i], numbers[i], kTolerance) << "element " << i << ", step " << step;
    }
  }
}

TEST(OptimizerState, UpdatesAsTheReferenceDoes) {
  const json::value fixture = read_fixture();

  for (const json::value& fixture_case : fixture.at("cases").as_array()) {
    SCOPED_TRACE(concat(to_json_text(fixture_case.at("type"), 0), " ",
                        to_json_text(fixture_case.at("params"), 0)));
    expect_as_in_fixture(fixture, fixture_case, 0);
  }
}

// Lamb's ratio is the tensor's own: a list of two is no tensor of their sum.
TEST(OptimizerState, UpdatesAListAsItsTensorsTogetherUnlessNormsCount) {
  const json::value fixture = read_fixture();

  for (const json::value& fixture_case : fixture.at("cases").as_array()) {
    if (is<LambSettings>(config_of(fixture_case))) continue;
    SCOPED_TRACE(to_json_text(fixture_case.at("params"), 0));
    expect_as_in_fixture(fixture, fixture_case, 7);
  }
}

TEST(OptimizerState, LambHasARatioForEveryTensorOfAList) {
  cpu::CpuDevice device(kLimit);
  const OptimizerConfig lamb = config_of(json::object{{"type", "Lamb"}});
  const Numbers gradient = {1, 1, 1, 1};
  Updated apart(device, lamb, {1, 1, 4, 4});

  const Numbers values = apart.update(1, gradient, 2);

  // The first update is the gradient's sign; the ratios are 1 and 4.
  EXPECT_NEAR(values[0], 1 - 1e-3, 1e-6);
  EXPECT_NEAR(values[2], 4 - 4e-3, 1e-6);
}

// DeepSpeed's kernel takes c > 0 ? -lr : lr.
TEST(OptimizerState, LionMovesAParameterWithoutGradientAsDeepSpeedDoes) {
  cpu::CpuDevice device(kLimit);
  const OptimizerConfig lion = config_of(json::object{{"type", "Lion"}, {"params", {{"lr", 0.5}}}});
  Updated updated(device, lion, {2});

  EXPECT_EQ(updated.update(1, {0}, 0), Numbers{2.5F});
}

TEST(OptimizerState, LambUnscales16BitGradientsAndWritesA16BitCopy) {
  cpu::CpuDevice device(kLimit);
  const OptimizerConfig lamb = config_of(json::object{{"type", "Lamb"}, {"params", {{"lr", 0.1}}}});
  const Buffer gradient = make_buffer(device, MemoryCategory::gradients, 2, DType::fp16);
  const Buffer parameter = make_buffer(device, MemoryCategory::optimizer, 2, DType::fp32);
  const Buffer copy = make_buffer(device, MemoryCategory::parameters, 2, DType::fp16);
  device.write(Numbers{64, -64}, gradient.tensor(DType::fp16));
  device.write(Numbers{1, 1}, parameter.tensor(DType::fp32));
  const UpdatedTensor tensor{gradient.tensor(DType::fp16), parameter.tensor(DType::fp32),
                             copy.tensor(DType::fp16)};
  OptimizerState state;

  state.update(device, {&lamb, 0, 1, 64}, {&tensor, 1});

  Numbers values(2);
  device.read(tensor.parameter, values);
  EXPECT_NEAR(values[0], 0.9, 1e-6);
  EXPECT_NEAR(values[1], 1.1, 1e-6);
  device.read(tensor.copy, values);
  EXPECT_NEAR(values[0], 0.9, 1e-3);
  EXPECT_NEAR(values[1], 1.1, 1e-3);
}

struct Kept {
  const char* optimizer;
  Bytes state;    ///< bytes per element
  Bytes scratch;  ///< bytes per element, in an update
  Bytes read;     ///< bytes per element, of a later update than the first
  Bytes written;  ///< likewise
};

const Kept kKept[] = {
    {R"({"type": "AdamW"})", 8, 0, 16, 12},
    {R"({"type": "SGD"})", 0, 0, 8, 4},
    {R"({"type": "SGD", "params": {"weight_decay": 0.1}})", 0, 4, 16, 8},
    {R"({"type": "SGD", "params": {"momentum": 0.9}})", 4, 0, 20, 12},
    {R"({"type": "SGD", "params": {"momentum": 0.9, "nesterov": true, "weight_decay": 0.1}})", 4, 4,
     36, 20},
    {R"({"type": "Lion"})", 4, 0, 12, 8},
    {R"({"type": "Adagrad"})", 4, 8, 32, 20},
    {R"({"type": "Adagrad", "params": {"weight_decay": 0.1}})", 4, 8, 40, 24},
    {R"({"type": "Lamb"})", 8, 0, 28, 12},
};

TEST(OptimizerState, KeepsAndMovesTheBytesOfItsType) {
  constexpr std::int64_t kCount = 10;
  for (const Kept& kept : kKept) {
    SCOPED_TRACE(kept.optimizer);
    DryDevice device(kLimit);
    const OptimizerConfig optimizer = config_of(json::parse(kept.optimizer).as_object());
    const Tensor tensor{nullptr, kCount, DType::fp32};
    OptimizerState state;
    state.update(device, {&optimizer, optimizer.weight_decay, 1}, tensor, tensor);
    device.ledger().clear();

    state.update(device, {&optimizer, optimizer.weight_decay, 2}, tensor, tensor);

    EXPECT_EQ(device.memory().use().at(MemoryCategory::optimizer), kCount * kept.state);
    EXPECT_EQ(device.memory().peak().categories.at(MemoryCategory::temporaries),
              kCount * kept.scratch);
    ASSERT_EQ(device.ledger().passes().size(), 1U);
    EXPECT_EQ(device.ledger().passes()[0],
              (PassLine{MemoryPass::update, 1, kCount * kept.read, kCount * kept.written}));
  }
}

}  // namespace
}  // namespace dstune::optimizer_state_test
