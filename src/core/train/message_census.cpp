#include "core/train/message_census.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/experiment/step_config.hpp"
#include "core/experiment/step_refused.hpp"
#include "core/train/run_experiment.hpp"
#include "core/train/training_step.hpp"

namespace dstune {
namespace {

/// Records the messages that are sent.
class CountingCollectives final : public DryCollectives {
 public:
  /// @param census  must outlive this
  CountingCollectives(Device& device, int rank, int size, int spacing,
                      std::vector<GroupMessage>& census)
      : DryCollectives(device, rank, size), spacing_(spacing), census_(census) {}

 private:
  void touch(CollectiveKind kind, Tensor in, Tensor out) override {
    if (std::max(in.numel, out.numel) == 1) return;
    const GroupMessage message{kind, in.dtype, size(), spacing_};
    if (std::find(census_.begin(), census_.end(), message) == census_.end()) {
      census_.push_back(message);
    }
  }

  std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int own) override {
    return std::make_unique<CountingCollectives>(device(), own, static_cast<int>(ranks.size()),
                                                 spacing_ * spacing_of(ranks), census_);
  }

  int spacing_;
  std::vector<GroupMessage>& census_;
};

}  // namespace

std::vector<GroupMessage> messages_of(const Experiment& experiment) {
  // The first micro-step, one in the middle and the last may differ.
  constexpr std::int64_t kUnlikeMicroSteps = 3;
  constexpr int kUnlikeSteps = 2;
  std::vector<GroupMessage> census;
  if (!is_modelled(experiment)) return census;
  StepConfig config = make_step_config(experiment);
  config.accumulation_steps = std::min(config.accumulation_steps, kUnlikeMicroSteps);
  DryDevice device(std::numeric_limits<Bytes>::max());
  CountingCollectives collectives(device, 0, experiment.ranks, 1, census);
  try {
    TrainingStep step(experiment.settings, config, device, collectives);
    for (int i = 0; i < kUnlikeSteps; ++i) step.run();
  } catch (const StepRefused&) {
    census.clear();
  }
  return census;
}

}  // namespace dstune
