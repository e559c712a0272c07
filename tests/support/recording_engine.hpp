// The ZeroEngine of one rank without ZeRO: owns every parameter, records what the model does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/device/device.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/families.hpp"
#include "core/train/zero/zero_engine.hpp"

namespace dstune::test {

/// Parameters are readable between fetch and release only: outside they hold NaN, so a module that
/// is read without a fetch spoils the loss, and asking for their tensor throws.
class RecordingEngine : public ZeroEngine {
 public:
  RecordingEngine(const ModelSpec& spec, DType dtype, Device& device)
      : parameters_(make_model_parameters(spec)),
        dtype_(dtype),
        device_(&device),
        values_(parameters_.tensors.size()),
        gradients_(parameters_.tensors.size()),
        holders_(parameters_.tensors.size(), 0) {
    for (std::size_t index = 0; index < parameters_.tensors.size(); ++index) {
      const std::int64_t numel = parameters_.tensors[index].numel();
      values_[index].assign(static_cast<std::size_t>(numel), 0.0F);
      buffers_.push_back(make_buffer(device, MemoryCategory::parameters, numel, dtype));
      poison(index);
    }
  }

  void begin_micro_step(bool /*boundary*/) override {}

  void fetch(std::size_t module) override {
    events.push_back(concat("fetch ", parameters_.modules.at(module).name));
    if (on_fetch) on_fetch(module);
    for (const std::size_t index : parameters_.modules[module].parameters) {
      if (holders_[index]++ == 0) device_->write(values_[index], buffers_[index].tensor(dtype_));
    }
  }

  void release(std::size_t module) override {
    events.push_back(concat("release ", parameters_.modules.at(module).name));
    for (const std::size_t index : parameters_.modules[module].parameters) {
      if (holders_[index]-- == 0) throw std::logic_error("released without a fetch");
      if (holders_[index] == 0) poison(index);
    }
  }

  Tensor parameter(std::size_t tensor) const override {
    if (holders_.at(tensor) == 0) throw std::logic_error("read without a fetch");
    return buffers_[tensor].tensor(dtype_);
  }

  bool is_trainable(std::size_t tensor) const override {
    return parameters_.tensors.at(tensor).trainable;
  }

  void gradient_ready(std::size_t tensor, Buffer gradient) override {
    const auto& spec = parameters_.tensors.at(tensor);
    if (!spec.trainable) return;
    events.push_back(concat("gradient ", spec.name));
    if (!keeps_gradients) return;
    auto& values = gradients_[tensor];
    if (!values.empty()) throw std::logic_error("a second gradient of " + spec.name);
    values.resize(static_cast<std::size_t>(spec.numel()));
    device_->read(gradient.tensor(dtype_), values);
  }

  void end_backward() override {}
  StepResult step() override { return {}; }
  double grad_norm() override { return 0; }
  double loss_scale() const override { return 1; }

  std::vector<float> read_parameter(std::size_t tensor) override { return values_.at(tensor); }
  void write_parameter(std::size_t tensor, std::span<const float> values) override {
    values_.at(tensor).assign(values.begin(), values.end());
  }

  const ModelParameters& parameters() const { return parameters_; }
  /// Empty until gradient_ready.
  const std::vector<float>& gradient(std::size_t tensor) const { return gradients_.at(tensor); }
  void forget_gradients() {
    for (auto& gradient : gradients_) gradient.clear();
  }

  std::vector<std::string> events;  ///< "fetch NAME", "release NAME", "gradient NAME" in call order
  bool keeps_gradients = true;
  std::function<void(std::size_t module)> on_fetch;  ///< empty, or called first

 private:
  void poison(std::size_t index) {
    device_->run(
        FillConstant{buffers_[index].tensor(dtype_), std::numeric_limits<double>::quiet_NaN()});
  }

  ModelParameters parameters_;
  DType dtype_;
  Device* device_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<float>> gradients_;
  std::vector<int> holders_;
  std::vector<Buffer> buffers_;
};

}  // namespace dstune::test
