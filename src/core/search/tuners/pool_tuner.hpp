// The common part of all tuners over a pool.
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
/// tuner_num_trials (docs/deepspeed-step.md, "DeepSpeed's autotuner: tuners") were tried or the
/// tuner's own rule ends the search.
class PoolTuner : public Tuner {
 public:
  /// `config` must outlive this.
  PoolTuner(std::string_view name, const TuningConfig& config, int group_size, Pool pool);

  std::vector<Candidate> next(int free_groups) final;
  void learn(const Record& record) final;
  std::optional<Record> best() override;
  /// As many as tuner_num_trials leaves, if nothing ends the search before.
  std::optional<int> still_to_come() override;
  /// How many candidates of how many were tried, and what ended the search.
  std::vector<std::string> remarks() override;

 protected:
  /// Chooses up to `count` of trials().open(), the most important first; an empty list ends the
  /// search.
  virtual std::vector<std::size_t> choose(std::size_t count) = 0;
  virtual void take_in(const Record&) {}
  /// The step time above which a candidate cannot be the best (Experiment::give_up_above).
  virtual Seconds give_up_above(std::size_t) { return 0; }
  /// Why the search ends although there are more candidates to try; "" if it does not.
  virtual std::string end() const;

  const TuningConfig& config() const { return config_; }
  const Trials& trials() const { return trials_; }
  Metric metric() const { return config_.autotuning.metric; }
  Experiment experiment(std::size_t index) const;
  /// The samples of an optimizer step of a candidate, over all ranks.
  std::int64_t samples(std::size_t index) const;
  std::string_view name() const { return name_; }
  /// A random number for a trial, which depends on the trial and the seed alone.
  std::uint64_t random(std::size_t trial) const;

  /// The reason why the search is over: "tuner_num_trials" or end(); "" while it is not.
  std::string why_over() const;

 private:
  std::string_view name_;
  const TuningConfig& config_;
  int group_size_;
  Trials trials_;
};

}  // namespace dstune
