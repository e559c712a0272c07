// The toy family's backward against finite differences of its forward.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/scalar.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/numbers.hpp"
#include "tests/support/recording_engine.hpp"

namespace dstune::toy_mlp_model_test {
namespace {

constexpr std::int64_t kSequence = 5;
constexpr std::int64_t kTokens[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};

ModelSpec spec() {
  ModelSpec model;
  model.family = "toy_mlp";
  model.vocab_size = 11;
  model.hidden_size = 4;
  model.inner_size = 6;
  return model;
}

// Values between -1 and 1 without a pattern.
std::vector<float> values_of(std::size_t tensor, std::int64_t numel) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < numel; ++i) {
    values.push_back(static_cast<float>(
        std::sin(1.7 * static_cast<double>(i) + 5.3 * static_cast<double>(tensor))));
  }
  return values;
}

class ToyRun {
 public:
  ToyRun() : device_(Bytes{1} << 24U), engine(spec(), DType::fp32, device_) {
    for (std::size_t i = 0; i < engine.parameters().tensors.size(); ++i) {
      engine.write_parameter(i, values_of(i, engine.parameters().tensors[i].numel()));
    }
    model_ = family_of(spec()).make_model(spec(), engine.parameters(), {2, kSequence, DType::fp32},
                                          device_);
    tokens_ = make_buffer(device_, MemoryCategory::activations, 10, DType::int64);
    std::copy(std::begin(kTokens), std::end(kTokens), static_cast<std::int64_t*>(tokens_.data()));
  }

  double forward() {
    const Scalar loss(device_);
    loss.set_zero();
    model_->forward(engine, tokens_.tensor(DType::int64), 0, loss.tensor());
    return test::read(device_, loss);
  }
  void backward() { model_->backward(engine, 1); }

 private:
  cpu::CpuDevice device_;

 public:
  test::RecordingEngine engine;

 private:
  std::unique_ptr<Model> model_;
  Buffer tokens_;
};

double loss_with(std::size_t tensor, const std::vector<float>& values) {
  ToyRun run;
  run.engine.write_parameter(tensor, values);
  return run.forward();
}

TEST(ToyMlpModel, EveryGradientAgreesWithFiniteDifferences) {
  ToyRun run;
  run.forward();
  run.backward();

  for (std::size_t i = 0; i < run.engine.parameters().tensors.size(); ++i) {
    const std::vector<float> gradient = run.engine.gradient(i);
    double norm = 0;
    for (const float value : gradient) norm += static_cast<double>(value) * value;
    norm = std::sqrt(norm);
    const auto moved = [&](double distance) {
      auto values = values_of(i, static_cast<std::int64_t>(gradient.size()));
      for (std::size_t k = 0; k < values.size(); ++k) {
        values[k] = static_cast<float>(values[k] + distance * gradient[k] / norm);
      }
      return loss_with(i, values);
    };
    constexpr double kStep = 1e-2;
    EXPECT_NEAR((moved(kStep) - moved(-kStep)) / (2 * kStep), norm, 2e-3 * norm + 2e-5)
        << run.engine.parameters().tensors[i].name;
  }
}

TEST(ToyMlpModel, HooksFireAsAutogradsWould) {
  ToyRun run;

  run.forward();
  run.backward();

  const std::vector<std::string> expected = {"fetch ",
                                             "fetch embed",
                                             "release embed",
                                             "fetch mlp",
                                             "fetch mlp.fc_in",
                                             "release mlp.fc_in",
                                             "fetch mlp.act",
                                             "release mlp.act",
                                             "fetch mlp.fc_out",
                                             "release mlp.fc_out",
                                             "release mlp",
                                             "fetch head",
                                             "release head",
                                             "release ",
                                             "fetch ",
                                             "fetch head",
                                             "gradient head.weight",
                                             "release head",
                                             "fetch mlp",
                                             "fetch mlp.fc_out",
                                             "gradient mlp.fc_out.bias",
                                             "gradient mlp.fc_out.weight",
                                             "release mlp.fc_out",
                                             "fetch mlp.act",
                                             "release mlp.act",
                                             "fetch mlp.fc_in",
                                             "gradient mlp.fc_in.bias",
                                             "gradient mlp.fc_in.weight",
                                             "release mlp.fc_in",
                                             "release mlp",
                                             "fetch embed",
                                             "gradient embed.weight"};
  EXPECT_EQ(run.engine.events, expected);
}

}  // namespace
}  // namespace dstune::toy_mlp_model_test
