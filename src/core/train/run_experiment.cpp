#include "core/train/run_experiment.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/device/backend_list.hpp"
#include "core/experiment/step_config.hpp"
#include "core/experiment/step_refused.hpp"
#include "core/train/core_meter.hpp"
#include "core/train/dry_run_memory.hpp"
#include "core/train/families/families.hpp"
#include "core/train/measure_machine.hpp"
#include "core/train/rank_report.hpp"
#include "core/train/rehearsal_device.hpp"
#include "core/train/stopping_rule.hpp"
#include "core/train/training_step.hpp"
#include "core/train/zero/layout/leaf_modules.hpp"
#include "core/train/zero/layout/shard_groups.hpp"
#include "core/train/zero/loss_scaler.hpp"
#include "core/train/zero/offload/nvme/swap_rules.hpp"

namespace dstune {
namespace {

// The first step is unlike the others: the optimizer's moments, the last lazy allocation, come with
// its update. In stage 3 its first micro-step records the order of modules, and there are no
// persistent parameters yet.
constexpr int kUnsteadySteps = 1;

// Steps with an overflow until the loss scale is found: DeepSpeed needs at most 32 halvings, each
// after two overflows.
constexpr int kMostOverflows = 100;

// Warm-up takes a quarter of an experiment's time limit at most, however long it is to be.
constexpr double kWarmUpShare = 0.25;

std::optional<Skipped> skipped(const Experiment& experiment, const StepConfig& config) {
  std::vector<std::string> reasons = config.unsupported;
  if (names_leaf_modules(config)) {  // a model's names cost a tenth of its dry run
    for (auto& reason :
         unsupported_leaf_modules(config, make_model_parameters(experiment.settings.model))) {
      reasons.push_back(std::move(reason));
    }
  }
  for (auto& reason : unsupported_shard_sizes(config, experiment.ranks)) {
    reasons.push_back(std::move(reason));
  }
  if (config.swaps_optimizer()) {
    auto reason = unsupported_swap_buffers(config, make_model_parameters(experiment.settings.model),
                                           experiment.ranks);
    if (reason) reasons.push_back(*std::move(reason));
  }
  if (reasons.empty()) return std::nullopt;
  return Skipped{concat("not modelled: ", join(reasons, ", "))};
}

// Where there is no limit, none is in the journal.
OutOfMemory to_outcome(const OutOfMemoryError& error, int rank) {
  return {rank,
          error.category,
          error.requested,
          error.in_use,
          error.limit >= kNoLimit ? 0 : error.limit,
          error.reserved,
          error.refusal,
          error.tier};
}

void limit_host_memory(Device& device, const RunSettings& settings) {
  device.share_memory_with_host(settings.is_one_memory());
  device.host_memory().begin_anew();
  device.host_memory().limit_to(settings.host_limits());
}

DryRun rehearse(const Experiment& experiment, const StepConfig& config, int rank, Bytes limit,
                const Device* imitated, DryRunMemory* known = nullptr) {
  Walk walk;
  RehearsalDevice device(limit, imitated, walk, known);
  device.memory().count_as(experiment.settings.allocator);
  limit_host_memory(device, experiment.settings);
  RehearsalCollectives collectives(device, rank, experiment.ranks, walk);
  Measured result;
  bool folded = false;
  try {
    TrainingStep step(experiment.settings, config, device, collectives,
                      known == nullptr ? nullptr : known->parameters_of(experiment.settings.model));
    for (int i = 0; i <= kUnsteadySteps; ++i) folded = step.run().folded;
  } catch (const OutOfMemoryError& error) {
    return {to_outcome(error, rank), walk.number()};
  } catch (const StepRefused& refused) {
    return {Skipped{refused.what()}, walk.number()};
  }
  result.peak_memory = device.memory().peak();
  result.peak_host_memory = device.host_memory().peak();
  result.ledger = device.ledger();
  return {std::move(result), walk.number(), folded};
}

/// Answers the dispatcher while it lives, and leaves the device as it found it, so that the device
/// can serve the next experiment, however this one ended.
class BusyDevice {
 public:
  BusyDevice(Device& device, Group& group, const RunSettings& settings) : device_(device) {
    device_.synchronize();  // then what the last experiment gave back is free
    device_.memory().count_as(settings.allocator);
    limit_host_memory(device_, settings);
    device_.memory().enter(StepPhase::setup);
    device_.memory().reset_peak();
    device_.on_tick([&group] { group.poll(); });
  }
  ~BusyDevice() {
    device_.on_tick({});
    device_.set_host_overhead({});
    device_.trim();
  }
  BusyDevice(const BusyDevice&) = delete;
  BusyDevice& operator=(const BusyDevice&) = delete;

 private:
  Device& device_;
};

/// The collective run of one experiment on one rank.
class Run {
 public:
  Run(const Experiment& experiment, const StepConfig& config, Device& device,
      Collectives& collectives, Group& group)
      : experiment_(experiment),
        config_(config),
        device_(device),
        collectives_(collectives),
        group_(group),
        meter_(device, config.dtype) {}

  Outcome run() {
    report_.own.device_peaks = device_.peaks(config_.dtype);
    const Seconds begin = device_.now();
    const std::optional<Outcome> fault = allocate();
    if (!group_.vote(!fault)) return merge_faults(fault);
    choose_micro_steps();
    report_.own.setup_time = device_.now() - begin;
    try {
      warm_up();
      measure();
    } catch (const LossScaleExhausted& reason) {  // every rank has seen the same overflow
      return Failed{FailureKind::error, reason.what()};
    } catch (const StepRefused& refused) {  // after an overflow, which no rehearsal has
      return Skipped{refused.what()};
    }
    report_.own.peak_memory = device_.memory().peak();
    report_.own.peak_host_memory = device_.host_memory().peak();
    report_.own.network = collectives_.network();
    report_.own.core_use = meter_.use();
    return merge_measured();
  }

 private:
  /// @returns why this rank cannot go on, OutOfMemory, Skipped or Failed; none if it can
  std::optional<Outcome> allocate() {
    const DryRun rehearsal =
        rehearse(experiment_, config_, group_.rank(), device_.memory().limit(), &device_);
    if (!std::holds_alternative<Measured>(rehearsal.outcome)) return rehearsal.outcome;
    folded_ = rehearsal.folded;
    try {
      step_.emplace(experiment_.settings, config_, device_, collectives_);
    } catch (const OutOfMemoryError& error) {
      return to_outcome(error, group_.rank());
    } catch (const DriveError& error) {  // there can be no file for what is swapped
      return Failed{FailureKind::error, concat(group_.name_of_this_rank(), ": ", error.what())};
    }
    return std::nullopt;
  }

  Outcome merge_faults(const std::optional<Outcome>& own) {
    step_.reset();
    const auto texts = group_.gather(own ? to_json_text(to_json(*own), 0) : "");
    const auto first = std::find_if(texts.begin(), texts.end(),
                                    [](const std::string& text) { return !text.empty(); });
    if (first != texts.end()) return outcome_from_json(parse_json(*first).as_object());
    if (own) return *own;
    return Failed{FailureKind::error, "another rank of the group ran out of memory"};
  }

  // Whether micro-steps are alike is what each rank's rehearsal found; ranks leave out the same
  // ones.
  void choose_micro_steps() {
    const MicroStepPlan plan = plan_micro_steps(config_.accumulation_steps, MicroSteps::some);
    if (plan.left_out == 0 || experiment_.settings.lengths.varies()) return;
    if (group_.vote(folded_)) micro_steps_ = MicroSteps::some;
  }

  void warm_up() {
    const Seconds begin = device_.now();
    // Warm-up takes the longest batch, so that what does not fit shows at once.
    const bool needs_one = config_.stage == 3 || experiment_.settings.lengths.varies();
    const int least = needs_one ? kUnsteadySteps : 0;
    const int steps = std::max(experiment_.settings.warmup_steps, least);
    for (int i = 0; i < steps || is_unsettled(device_.now() - begin); ++i) {
      run_step(std::nullopt, micro_steps_);
    }
    report_.own.warmup_time = device_.now() - begin;
  }

  bool is_unsettled(Seconds spent) {
    const RunSettings& settings = experiment_.settings;
    if (settings.least_warmup_time == 0) return false;
    const Seconds most = settings.experiment_timeout * kWarmUpShare;
    return as_rank_0_says(spent < std::min(settings.least_warmup_time, most));
  }

  // Rank 0 decides whether to go on, since the clocks of ranks differ. Collective.
  bool as_rank_0_says(bool own) {
    std::byte answer{own};
    group_.broadcast({&answer, 1}, 0);
    return answer != std::byte{0};
  }

  void measure() {
    const auto before = device_.reading();
    const Seconds begin = device_.now();
    const double steps_before = steps_worth_;
    run_measured_steps();
    const Seconds time = device_.now() - begin;
    report_.own.device_use =
        make_device_use(before, device_.reading(), time, steps_worth_ - steps_before);
  }

  void run_measured_steps() {
    const RunSettings& settings = experiment_.settings;
    const StoppingRule rule(
        settings.measure_steps, settings.experiment_timeout,
        settings.lengths.varies() ? StepsDiffer::by_nature : StepsDiffer::by_noise,
        experiment_.give_up_above, settings.least_measure_time);
    // GPU libraries make a plan for every shape at its first use. A training has soon made them
    // all, and so each batch runs once before it is measured.
    const bool plans_new_shapes =
        traits_of_backend(settings.backend).plans_new_shapes && settings.lengths.varies();
    const MicroSteps which = settings.whole_steps ? MicroSteps::all : micro_steps_;
    Seconds spent = 0;
    bool is_enough = false;
    while (!is_enough) {
      const std::uint64_t batch = report_.total.size();
      if (plans_new_shapes) run_step(batch, which);
      const StepReport step = run_step(batch, which);
      if (!is_steady_) continue;
      spent += step.ran;
      report_.own.micro_steps_run = step.micro_steps_run;
      report_.add(step, device_.ledger().communication_time(), device_.ledger().exposed_time());
      if (rule.needs_more_than(static_cast<int>(report_.total.size()))) continue;
      is_enough = as_rank_0_says(group_.rank() == 0 && rule.is_enough(report_.total, spent));
    }
  }

  // A step without an update is not what is tuned. Every rank counts the same overflows.
  void count_overflow(bool overflow) {
    overflows_ = overflow ? overflows_ + 1 : 0;
    if (overflows_ <= kMostOverflows) return;
    throw LossScaleExhausted(concat("inf or NaN in the gradients of ", overflows_, " steps"));
  }

  StepReport run_step(std::optional<std::uint64_t> batch, MicroSteps which) {
    meter_.begin_step();
    const StepReport step = step_->run(batch, which);
    const double part = step.total > 0 ? step.ran / step.total : 1;
    meter_.end_step(step.total, device_.ledger().exposed_time(), part);
    steps_worth_ += part;
    if (steps_++ == 0) report_.own.first_loss = step.loss;
    report_.own.last_loss = step.loss;
    const bool follows_overflow = overflows_ > 0;
    count_overflow(step.result.overflow);
    is_steady_ = overflows_ == 0 && !(follows_overflow && config_.stage == 3);
    if (is_steady_) report_.own.ledger = device_.ledger();
    if (!std::isfinite(step.loss) && report_.not_finite.empty()) {
      report_.not_finite =
          concat(group_.name_of_this_rank(), ": the loss became ", step.loss, " in step ", steps_);
    }
    group_.poll();
    return step;
  }

  Outcome merge_measured() {
    if (!report_.not_finite.empty()) report_.own.first_loss = report_.own.last_loss = 0;
    step_.reset();
    std::vector<RankReport> reports;
    for (const std::string& text : group_.gather(to_text(report_))) {
      reports.push_back(rank_report_from_text(text));
    }
    if (reports.empty()) reports.push_back(report_);
    return merge_reports(reports, experiment_, config_);
  }

  const Experiment& experiment_;
  const StepConfig& config_;
  Device& device_;
  Collectives& collectives_;
  Group& group_;
  CoreMeter meter_;
  std::optional<TrainingStep> step_;
  RankReport report_;
  bool folded_ = false;  ///< StepReport::folded of the rehearsal
  MicroSteps micro_steps_ = MicroSteps::all;
  int steps_ = 0;
  double steps_worth_ = 0;  ///< how many whole steps took as long as the steps so far
  int overflows_ = 0;       ///< of the last steps, one behind the other
  /// The last step had an update and did not have to gather what a skipped update had left to it.
  bool is_steady_ = false;
};

}  // namespace

Outcome run_experiment(const Experiment& experiment, Device& device, Collectives& collectives,
                       Group& group) {
  const StepConfig config = make_step_config(experiment);
  const auto reason = skipped(experiment, config);
  if (reason && !experiment.measures_machine) return *reason;
  const BusyDevice busy(device, group, experiment.settings);
  if (experiment.measures_machine) return measure_machine(experiment, device, collectives, group);
  return Run(experiment, config, device, collectives, group).run();
}

DryRun dry_run(const Experiment& experiment, int rank, const Device* imitated,
               DryRunMemory* known) {
  const StepConfig config = make_step_config(experiment);
  if (const auto reason = skipped(experiment, config)) return {*reason};
  return rehearse(experiment, config, rank, experiment.settings.memory_limit, imitated, known);
}

bool is_modelled(const Experiment& experiment) {
  return !skipped(experiment, make_step_config(experiment));
}

}  // namespace dstune
