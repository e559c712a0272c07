// How long the sequences of a run's synthetic batches are: "dstune.lengths".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.hpp"

namespace dstune {

/// Where lengths come from; what each draws is in core/train/draw_lengths.hpp.
enum class LengthLaw {
  fixed,      ///< all are RunSettings::sequence_length
  histogram,  ///< as often as in a data set
  lognormal,
  uniform,
};

struct LengthCount {
  std::int64_t length = 0;  ///< tokens
  std::int64_t count = 0;   ///< sequences that have it

  bool operator==(const LengthCount&) const = default;
};

/// Sequences of a micro-batch are padded on the right to its longest one, or packed: rows of
/// RunSettings::sequence_length are filled with them, the last of each cut to what is left.
struct LengthSettings {
  LengthLaw law = LengthLaw::fixed;
  std::vector<LengthCount> counts = {};  ///< histogram: ascending lengths, counts above 0
  double mean = 0;                       ///< lognormal: of the lengths, before they are cut; tokens
  double sigma = 0;                      ///< lognormal: standard deviation of their logarithms
  std::int64_t least = 0;                ///< tokens; what is shorter counts as this
  std::int64_t most = 0;                 ///< tokens; what is longer is cut to this
  bool is_packed = false;
  std::int64_t pad_to_multiple_of = 1;  ///< tokens

  bool varies() const { return law != LengthLaw::fixed; }
  /// Tokens of every row of a micro-batch whose longest sequence has `longest`.
  std::int64_t padded(std::int64_t longest) const {
    return (longest + pad_to_multiple_of - 1) / pad_to_multiple_of * pad_to_multiple_of;
  }

  bool operator==(const LengthSettings&) const = default;
};

/// "lognormal, mean 600, sigma 0.8, 2 to 2048, padded to the longest"; for lengths that vary.
std::string describe(const LengthSettings& settings);

/// The text form of lengths that vary.
json::object to_json(const LengthSettings& settings);
/// Inverse of to_json. @throws std::exception  if `object` is no such thing
LengthSettings length_settings_from_json(const json::object& object);

/// "dstune.sequence_length" of an experiment's DeepSpeed JSON; nothing if it is the same in all
/// experiments of the run.
std::optional<std::int64_t> tuned_sequence_length(const json::object& ds_config);

}  // namespace dstune
