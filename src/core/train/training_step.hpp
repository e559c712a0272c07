// One optimizer step of an experiment: micro-steps of forward and backward, then the update.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"
#include "core/device/scalar.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/micro_steps.hpp"
#include "core/train/model.hpp"
#include "core/train/zero/zero_engine.hpp"

namespace dstune {

/// The report of one optimizer step on this rank. Times are those of the compute stream, and of all
/// micro-steps, also of those that were left out (MicroSteps::some); `total` ends with all of the
/// device's work.
struct StepReport {
  double loss = 0;  ///< mean over this rank's micro-steps that ran
  StepResult result;
  double grad_norm = 0;  ///< see ZeroEngine::grad_norm()
  Seconds total = 0;     ///< the whole step, with the making of the tokens
  Seconds forward = 0;
  Seconds backward = 0;  ///< with the gradient communication inside it
  Seconds optimizer = 0;
  /// Sums over this rank's micro-steps where lengths vary: see VaryingSteps. FLOPs are those of the
  /// real tokens.
  double real_tokens = 0;
  double padded_tokens = 0;
  double flops = 0;
  Seconds ran = 0;          ///< what of `total` passed; the rest is that of micro-steps left out
  int micro_steps_run = 0;  ///< 0: all
  /// Of a device that folds(): whether it left out micro-steps that are alike from the third on.
  bool folded = false;
};

/// Holds all memory of a run, enough for the longest sequences that there may be. The tokens of a
/// step depend only on the seed and on the place of a sequence in the global batch: however the
/// batch is split, the same sequences are trained on.
class TrainingStep {
 public:
  /// Local: allocates, and calls no collective.
  /// @param parameters  of settings.model, where the caller has them already
  /// @throws OutOfMemoryError
  TrainingStep(const RunSettings& settings, const StepConfig& config, Device& device,
               Collectives& collectives,
               std::shared_ptr<const ModelParameters> parameters = nullptr);
  ~TrainingStep();
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

  /// Collective over the group. The n-th call runs the n-th step.
  /// @param batch  which of the seed's batches, where lengths vary; none: the one that needs most
  /// @param which  all, where micro-steps are not alike (StepReport::folded) or lengths vary
  StepReport run(std::optional<std::uint64_t> batch = std::nullopt,
                 MicroSteps which = MicroSteps::all);

  ZeroEngine& engine() { return *engine_; }
  const ModelParameters& parameters() const { return *parameters_; }

 private:
  void synchronize_for_timer();
  std::uint64_t first_sequence(std::int64_t micro_step) const;
  void set_lengths(std::int64_t micro_step);
  void count_work();
  double flops_of(std::int64_t length);
  void make_tokens(std::int64_t micro_step);
  Tensor tokens() const;
  /// The points on the compute stream that bound the parts of a micro-step.
  struct MicroStep {
    Event begin;
    Event turn;  ///< from forward to backward
    Event end;
  };
  MicroStep run_micro_step(std::int64_t micro);
  std::vector<MicroStep> run_micro_steps(const MicroStepPlan& plan);
  Event end_of_work();
  void read_numbers(StepReport& report);
  void read_times(const std::vector<MicroStep>& times, const MicroStepPlan& plan,
                  StepReport& report);

  RunSettings settings_;
  StepConfig config_;
  Device& device_;
  Collectives& collectives_;
  std::shared_ptr<const ModelParameters> parameters_;
  std::unique_ptr<ZeroEngine> engine_;
  std::unique_ptr<Model> model_;
  Buffer tokens_;  // int64
  Scalar loss_;    // sum over the micro-steps
  std::uint64_t step_ = 0;

  // The members below belong to the step that runs.
  std::optional<std::uint64_t> batch_;
  RowLengths rows_;
  StepReport work_;                       ///< what is known of it without the clock
  std::map<std::int64_t, double> flops_;  // FLOPs of a sequence, by its length
};

/// Bytes of a TrainingStep's own buffer (category activations): the tokens of all sequences of a
/// micro-batch, and behind them those of their targets.
Bytes token_bytes(std::int64_t micro_batch, std::int64_t sequence_length,
                  std::int64_t target_length);

}  // namespace dstune
