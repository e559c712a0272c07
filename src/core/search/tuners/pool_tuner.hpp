// What all tuners over a pool have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/tuners/trials.hpp"
#include "core/search/tuners/tuner.hpp"

namespace dstune {

/// Asks for candidates of the pool, each once, as many at a time as groups are free, until
/// tuner_num_trials (docs/deepspeed-step.md, "DeepSpeed's autotuner: tuners") were tried or the way
/// through the pool has an end of its own.
class PoolTuner : public Tuner {
 public:
  /// `config` must outlive this.
  PoolTuner(std::string_view name, const TuningConfig& config, int group_size, Pool pool);

  std::vector<Candidate> next(int free_groups) final;
  void learn(const Record& record) final;
  std::optional<Record> best() final;
  /// How many were tried of how many, and what ended it.
  std::vector<std::string> remarks() override;

 protected:
  /// Up to `count` of trials().open(), the most important first; none: the end.
  virtual std::vector<std::size_t> choose(std::size_t count) = 0;
  virtual void take_in(const Record&) {}
  /// Why the way ends here although there is more to try; "" if it does not.
  virtual std::string end() const;

  const TuningConfig& config() const { return config_; }
  const Trials& trials() const { return trials_; }
  Metric metric() const { return config_.autotuning.metric; }
  Experiment experiment(std::size_t index) const;
  /// Samples of an optimizer step, over all ranks.
  std::int64_t samples(std::size_t index) const;
  std::string_view name() const { return name_; }
  /// A number that is another for every trial and seed, and the same in every run.
  std::uint64_t random(std::size_t trial) const;

  /// "tuner_num_trials" or end(); "" while neither holds.
  std::string why_over() const;

 private:
  std::string_view name_;
  const TuningConfig& config_;
  int group_size_;
  Trials trials_;
};

}  // namespace dstune
