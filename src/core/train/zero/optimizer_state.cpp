#include "core/train/zero/optimizer_state.hpp"

#include <stdexcept>
#include <type_traits>
#include <variant>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/optimizers.hpp"

namespace dstune {
namespace {

/// A tensor with its parts of the state and of the scratch; parts that it does not have are empty.
struct Piece {
  UpdatedTensor tensor;
  std::array<Tensor, 2> state;
  std::array<Tensor, 2> scratch;
};

AdamStep step_of(const AdamSettings& adam, const NextUpdate& next) {
  return {next.optimizer->lr, adam.beta1,  adam.beta2,           adam.epsilon,
          next.weight_decay,  adam.adam_w, adam.bias_correction, next.step};
}

SgdStep step_of(const SgdSettings& sgd, const NextUpdate& next) {
  return {next.optimizer->lr, sgd.momentum, sgd.dampening, next.weight_decay, sgd.nesterov};
}

LionStep step_of(const LionSettings& lion, const NextUpdate& next) {
  return {next.optimizer->lr, lion.beta1, lion.beta2, next.weight_decay};
}

AdagradStep step_of(const AdagradSettings& adagrad, const NextUpdate& next) {
  const double slower = 1 + static_cast<double>(next.step - 1) * adagrad.lr_decay;
  return {next.optimizer->lr / slower, adagrad.epsilon, next.weight_decay};
}

LambStep step_of(const LambSettings& lamb, const NextUpdate& next) {
  return {next.optimizer->lr,
          lamb.beta1,
          lamb.beta2,
          lamb.epsilon,
          lamb.epsilon_inside_root,
          next.weight_decay,
          lamb.bias_correction,
          lamb.max_ratio,
          lamb.min_ratio,
          next.gradient_scale,
          next.step};
}

/// One update of one piece, by the optimizer that is set.
struct Apply {
  Device& device;
  const NextUpdate& next;
  bool first;
  bool on_host;
  const Piece& piece;

  void operator()(const AdamSettings& adam) const {
    run(Adam{.step = step_of(adam, next),
             .gradient = piece.tensor.gradient,
             .parameter = piece.tensor.parameter,
             .exp_avg = piece.state[0],
             .exp_avg_sq = piece.state[1]});
  }
  void operator()(const SgdSettings& sgd) const {
    SgdStep step = step_of(sgd, next);
    step.first = first;
    run(Sgd{.step = step,
            .gradient = piece.tensor.gradient,
            .parameter = piece.tensor.parameter,
            .momentum = piece.state[0],
            .decayed = piece.scratch[0]});
  }
  void operator()(const LionSettings& lion) const {
    run(Lion{.step = step_of(lion, next),
             .gradient = piece.tensor.gradient,
             .parameter = piece.tensor.parameter,
             .exp_avg = piece.state[0]});
  }
  void operator()(const AdagradSettings& adagrad) const {
    run(Adagrad{.step = step_of(adagrad, next),
                .gradient = piece.tensor.gradient,
                .parameter = piece.tensor.parameter,
                .sum = piece.state[0],
                .numerator = piece.scratch[0],
                .root = piece.scratch[1]});
  }
  void operator()(const LambSettings& lamb) const {
    run(Lamb{.step = step_of(lamb, next),
             .gradient = piece.tensor.gradient,
             .parameter = piece.tensor.parameter,
             .exp_avg = piece.state[0],
             .exp_avg_sq = piece.state[1],
             .copy = piece.tensor.copy});
  }

 private:
  template <class Operation>
  void run(const Operation& update) const {
    if (!on_host) return device.run(MemoryPass::update, update);
    if constexpr (std::is_same_v<Operation, Sgd> || std::is_same_v<Operation, Lamb>) {
      throw std::logic_error("DeepSpeed's CPU optimizers are Adam, Lion and Adagrad");
    } else {
      device.run_on_host(MemoryPass::update, update);
    }
  }
};

std::int64_t total(std::span<const UpdatedTensor> tensors) {
  std::int64_t sum = 0;
  for (const UpdatedTensor& tensor : tensors) sum += tensor.parameter.numel;
  return sum;
}

int tensors_of_state(const OptimizerConfig& optimizer, Tier tier) {
  return is_of_host(tier) ? state_tensors_on_host(optimizer) : state_tensors(optimizer);
}

double initial_state(const OptimizerConfig& optimizer) {
  const auto* adagrad = std::get_if<AdagradSettings>(&optimizer.settings);
  return adagrad == nullptr ? 0 : adagrad->initial_accumulator;
}

Tensor part(const Buffer& buffer, std::int64_t offset, std::int64_t count) {
  return buffer ? buffer.tensor(DType::fp32).slice(offset, count) : Tensor{};
}

}  // namespace

// Its Lion makes a second one, as its Adam does, and does not use it.
int state_tensors_on_host(const OptimizerConfig& optimizer) {
  return is<LionSettings>(optimizer) ? 2 : state_tensors(optimizer);
}

void OptimizerState::ensure(Device& device, const OptimizerConfig& optimizer, std::int64_t numel) {
  if (exists_) return;
  exists_ = true;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensors_of_state(optimizer, tier_)); ++i) {
    state_[i] = make_buffer(device, MemoryCategory::optimizer, numel, DType::fp32, tier_);
    const FillConstant initial{state_[i].tensor(DType::fp32), initial_state(optimizer)};
    if (is_of_host(tier_)) {
      device.run_on_host(initial);
    } else {
      device.run(initial);
    }
  }
}

std::array<Tensor, 2> OptimizerState::tensors() const {
  std::array<Tensor, 2> found;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    if (state_[i]) found[i] = state_[i].tensor(DType::fp32);
  }
  return found;
}

void update_on_host(Device& device, const NextUpdate& next, const UpdatedTensor& tensor,
                    const std::array<Tensor, 2>& state) {
  const Piece piece{tensor, state, {}};
  std::visit(Apply{device, next, next.step == 1, true, piece}, next.optimizer->settings);
}

void OptimizerState::update(Device& device, const NextUpdate& next,
                            std::span<const UpdatedTensor> tensors) {
  const std::int64_t numel = total(tensors);
  const bool first = !exists_;
  ensure(device, *next.optimizer, numel);
  std::array<Buffer, 2> scratch;
  // DeepSpeed's CPU optimizers have none.
  const int scratches = is_of_host(tier_) ? 0 : scratch_tensors(*next.optimizer, next.weight_decay);
  for (std::size_t i = 0; i < static_cast<std::size_t>(scratches); ++i) {
    scratch[i] = make_buffer(device, MemoryCategory::temporaries, numel, DType::fp32);
  }
  std::int64_t offset = 0;
  for (const UpdatedTensor& tensor : tensors) {
    const std::int64_t count = tensor.parameter.numel;
    const Piece piece{tensor,
                      {part(state_[0], offset, count), part(state_[1], offset, count)},
                      {part(scratch[0], offset, count), part(scratch[1], offset, count)}};
    std::visit(Apply{device, next, first, is_of_host(tier_), piece}, next.optimizer->settings);
    offset += count;
  }
}

}  // namespace dstune
