// A model of which forward alone is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/train/layers/model.hpp"
#include "core/train/nn/step_input.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

class TapeModel : public Model {
 public:
  TapeModel(const MicroBatch& batch, Device& device) : work_(batch, device) {}

  void set_lengths(const RowLengths& lengths) override { work_.take(lengths); }
  void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) final;
  void backward(ModuleHooks& hooks, double factor) final;

 protected:
  const layers::Workspace& work() const { return work_; }
  /// @returns the loss, whose gradient is loss_factor()
  virtual Value run(Tape& on, const StepInput& input) = 0;
  /// What backward's gradients are those of, times the loss; known when backward begins.
  const double& loss_factor() const { return factor_; }

  layers::Workspace work_;

 private:
  std::optional<Tape> tape_;
  std::size_t loss_node_ = Value::kNoNode;
  double factor_ = 1;
};

}  // namespace dstune::nn
