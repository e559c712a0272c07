#include "core/search/predict/measured_rates.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/device/backend_list.hpp"
#include "core/experiment/knobs.hpp"
#include "core/search/feasibility/make_experiment.hpp"
#include "core/search/predict/run_rates.hpp"
#include "core/search/space/space.hpp"
#include "core/train/measure_machine.hpp"
#include "core/train/message_census.hpp"
#include "core/train/run_experiment.hpp"

namespace dstune {
namespace {

bool is_talkative(const AxisGroup& group) {
  return std::ranges::any_of(group.tied, [](const Axis& axis) {
    return std::ranges::any_of(kKnobs, [&](const Knob& knob) {
      return knob.decides_messages && axis.pointer == pointer_of(knob);
    });
  });
}

bool may_offload(const AxisGroup& group) {
  constexpr std::string_view kSection = "/zero_optimization/offload_";
  return std::ranges::any_of(group.tied, [&](const Axis& axis) {
    return axis.pointer.starts_with(kSection) || kSection.starts_with(axis.pointer);
  });
}

/// The indices of one point for each combination of values of the groups for which `matters`; only
/// some combinations if there are many.
template <class Matters>
std::vector<std::uint64_t> unlike_points(const Space& space, Matters matters) {
  constexpr std::size_t kMost = 256;
  std::vector<std::uint64_t> points{0};
  for (const AxisGroup& group : space.axes()) {
    const bool counts = matters(group) && points.size() * group.size() <= kMost;
    std::vector<std::uint64_t> longer;
    for (const std::uint64_t point : points) {
      for (std::size_t place = 0; place < (counts ? group.size() : 1); ++place) {
        longer.push_back(point * group.size() + place);
      }
    }
    points = std::move(longer);
  }
  return points;
}

/// The configuration with which a machine is measured for one type of model.
struct Question {
  DType dtype = DType::fp32;
  DeepSpeedConfig ds_config;
  std::vector<GroupMessage> messages;
};

class Questions {
 public:
  Questions(const TuningConfig& config, int group_size) : config_(config), group_size_(group_size) {
    for (const int stage : config.stages) {
      for (const Space& space : make_spaces(config, group_size, stage, {{stage, 1, 1}})) {
        if (space.size() == 0) continue;
        for (const std::uint64_t point : unlike_points(space, is_talkative)) add(space.at(point));
        for (const std::uint64_t point : unlike_points(space, may_offload)) {
          offloads_ = offloads_ || offloads(space.at(point));
        }
      }
    }
    if (all_.empty()) all_.push_back({DType::fp32, base().ds_config, {}});
  }

  std::vector<Question> take() { return std::move(all_); }
  /// Whether a candidate has tensors in the host's memory.
  bool offloads() const { return offloads_; }

 private:
  Experiment base() const { return make_experiment(config_, group_size_, 0, 1, 1); }

  void add(Candidate candidate) {
    const Experiment experiment = make_experiment(config_, group_size_, std::move(candidate));
    try {
      if (!is_modelled(experiment)) return;
      add(make_step_config(experiment).dtype, experiment, messages_of(experiment));
      // DeepSpeed refuses this configuration, so that no search has it.
    } catch (const std::invalid_argument&) {
      return;
    }
  }

  bool offloads(Candidate candidate) const {
    const Experiment experiment = make_experiment(config_, group_size_, std::move(candidate));
    try {
      return is_modelled(experiment) && make_step_config(experiment).offloads();
    } catch (const std::invalid_argument&) {
      return false;
    }
  }

  void add(DType dtype, const Experiment& experiment, const std::vector<GroupMessage>& messages) {
    auto known = std::find_if(all_.begin(), all_.end(),
                              [&](const Question& each) { return each.dtype == dtype; });
    if (known == all_.end()) {
      all_.push_back({dtype, config_for(dtype, experiment), {}});
      known = std::prev(all_.end());
    }
    for (const GroupMessage& message : messages) {
      const bool is_usual = message.ranks == group_size_ && message.dtype == dtype;
      const bool is_known = std::find(known->messages.begin(), known->messages.end(), message) !=
                            known->messages.end();
      if (!is_usual && !is_known) known->messages.push_back(message);
    }
  }

  // For the first type this is the configuration that earlier versions measured, so that their
  // journals have the answer.
  DeepSpeedConfig config_for(DType dtype, const Experiment& experiment) const {
    const Experiment first = base();
    return make_step_config(first).dtype == dtype ? first.ds_config : experiment.ds_config;
  }

  const TuningConfig& config_;
  int group_size_;
  std::vector<Question> all_;
  bool offloads_ = false;
};

/// What predictions of offloaded candidates take of the host, in a line.
std::string host_text(const RunRates& rates, const RunSettings& settings) {
  const std::optional<HostRates>& host = rates.host();
  if (!host && !rates.overlaps()) {
    return "the host's side of offloading was not measured: it counts as the device's own";
  }
  const bool is_measured = host && !traits_of_backend(settings.backend).time_is_virtual;
  return concat("the host's side of offloading, ", is_measured ? "measured" : "guessed", ": ",
                describe(host.value_or(HostRates{})));
}

}  // namespace

std::vector<Experiment> machine_experiments(const TuningConfig& config, int group_size,
                                            int groups) {
  std::vector<Experiment> experiments;
  Questions questions(config, group_size);
  for (Question& question : questions.take()) {
    Experiment machine{"machine", std::move(question.ds_config), group_size, config.settings};
    if (!experiments.empty()) machine.name = concat("machine_", name_of(question.dtype));
    machine.measures_machine = true;
    ask_for(machine, question.messages);
    // Once for all types, since the host's rates are the same.
    if (questions.offloads() && experiments.empty()) ask_for_host(machine);
    for (int group = 0; group < groups; ++group) {
      machine.repetition = group;
      experiments.push_back(machine);
      if (group > 0) experiments.back().name += concat("_again", group);
    }
  }
  return experiments;
}

RunRates measured_rates(const TuningConfig& config, int group_size, Scheduler& scheduler) {
  const int groups = std::max(1, scheduler.slots(group_size));
  const auto experiments = machine_experiments(config, group_size, groups);
  const auto measured = run_rates(scheduler.run(experiments), group_size);
  RunRates rates = measured ? *measured : estimated_rates(config.settings);
  if (asks_for_host(experiments.front())) log_line(host_text(rates, config.settings));
  return rates;
}

}  // namespace dstune
