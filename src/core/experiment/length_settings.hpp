// The lengths of the sequences in a run's synthetic batches: "dstune.lengths".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.hpp"

namespace dstune {

/// Where lengths come from; core/train/draw_lengths.hpp says what each law draws.
enum class LengthLaw {
  fixed,      ///< every sequence has RunSettings::sequence_length
  histogram,  ///< each length is as frequent as in a data set
  lognormal,
  uniform,
};

struct LengthCount {
  std::int64_t length = 0;  ///< tokens
  std::int64_t count = 0;   ///< sequences that have it

  bool operator==(const LengthCount&) const = default;
};

/// The sequences of a micro-batch are padded on the right to its longest one, or packed: they fill
/// rows of RunSettings::sequence_length, and the last sequence of a row is cut to the tokens that
/// are left.
struct LengthSettings {
  LengthLaw law = LengthLaw::fixed;
  std::vector<LengthCount> counts = {};  ///< histogram: ascending lengths, counts above 0
  double mean = 0;         ///< lognormal: mean of the lengths before they are cut, tokens
  double sigma = 0;        ///< lognormal: standard deviation of the lengths' logarithms
  std::int64_t least = 0;  ///< tokens; a shorter sequence counts as this long
  std::int64_t most = 0;   ///< tokens; a longer sequence is cut to this
  bool is_packed = false;
  std::int64_t pad_to_multiple_of = 1;  ///< tokens

  bool varies() const { return law != LengthLaw::fixed; }
  /// The tokens of every row of a micro-batch whose longest sequence has `longest` tokens.
  std::int64_t padded(std::int64_t longest) const {
    return (longest + pad_to_multiple_of - 1) / pad_to_multiple_of * pad_to_multiple_of;
  }

  bool operator==(const LengthSettings&) const = default;
};

/// The settings of lengths that vary, for people: "lognormal, mean 600, sigma 0.8, 2 to 2048,
/// padded to the longest".
std::string describe(const LengthSettings& settings);

/// The JSON form of lengths that vary.
json::object to_json(const LengthSettings& settings);
/// Inverse of to_json. @throws std::exception  if `object` is no LengthSettings
LengthSettings length_settings_from_json(const json::object& object);

/// The "dstune.sequence_length" of an experiment's DeepSpeed JSON, in tokens; none if all
/// experiments of the run have the same.
std::optional<std::int64_t> tuned_sequence_length(const json::object& ds_config);

}  // namespace dstune
