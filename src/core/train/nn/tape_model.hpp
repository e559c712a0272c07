// A model of which only the forward is written, and what a micro-step gives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/model/model_parameters.hpp"
#include "core/train/model.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

struct StepInput {
  Tensor tokens;
  std::uint64_t seed = 0;
  Tensor loss;  ///< fp32, one element

  /// An independent seed for each place that drops out.
  std::uint64_t seed_at(std::uint64_t place) const { return seed_of(seed, place); }
};

class TapeModel : public Model {
 public:
  TapeModel(const ModelNames& names, const MicroBatch& batch, Device& device)
      : context_(batch, device), is_wrapped_(names.lora().rank > 0) {}

  void set_lengths(const RowLengths& lengths) override { context_.take(lengths); }
  void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) final;
  void backward(ModuleHooks& hooks, double factor) final;

 protected:
  const BatchContext& context() const { return context_; }
  /// @returns the loss, whose gradient is loss_factor()
  virtual Value run(Tape& on, const StepInput& input) = 0;
  /// The factor of the loss of which backward gives the gradients; known when backward begins.
  const double& loss_factor() const { return factor_; }

  BatchContext context_;

 private:
  Value run_wrapped(Tape& on, const StepInput& input);

  bool is_wrapped_;
  std::optional<Tape> tape_;
  std::size_t loss_node_ = Value::kNoNode;
  double factor_ = 1;
};

}  // namespace dstune::nn
