// How alike configurations are, setting by setting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/experiment/step_config.hpp"

namespace dstune {

/// A configuration as residuals compare it.
struct Configuration {
  const StepConfig* step = nullptr;
  std::int64_t sequence_length = 0;
  bool is_near_limit = false;  ///< whether its peak comes near the limit of its memory
};

/// The settings in which the configurations of a list differ: each knob that the step reads, the
/// length of sequences, and whether memory is nearly full. Settings that divide the list alike (as
/// micro-batch and accumulation do at a fixed batch) count once.
class Likeness {
 public:
  explicit Likeness(const std::vector<Configuration>& configurations);

  std::size_t configurations() const { return count_; }
  std::size_t settings() const { return settings_.size(); }
  /// How alike two configurations are in a setting: 1 with the same value, 0 with two values that
  /// have no order or where only one step reads the setting. Numbers are the less alike the more
  /// doublings lie between them: exp(-doublings / 4).
  double in_setting(std::size_t setting, std::size_t a, std::size_t b) const;

 private:
  struct Setting {
    std::vector<std::size_t> values;              ///< by configuration: the place of its value
    std::vector<std::vector<double>> alike = {};  ///< by two places

    void compare(const std::vector<std::optional<double>>& numbers);
  };

  void add(Setting setting, const std::vector<std::optional<double>>& numbers);

  std::size_t count_;
  std::vector<Setting> settings_;
};

}  // namespace dstune
