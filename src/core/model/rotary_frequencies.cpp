// After modeling_rope_utils.py of transformers 5.23.
#include "core/model/rotary_frequencies.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "core/base/json.hpp"

namespace dstune {

namespace {

/// The values that the kinds read, with Hugging Face's defaults.
class Parameters {
 public:
  explicit Parameters(const json::object& object) : object_(object) {}

  double number(const char* key, double otherwise) const {
    const auto* value = find(key);
    return value == nullptr ? otherwise : value->to_number<double>();
  }
  bool has(const char* key) const { return find(key) != nullptr; }
  bool truth(const char* key, bool otherwise) const {
    const auto* value = find(key);
    return value == nullptr ? otherwise : value->get_bool();
  }
  double number_at(const char* key, std::size_t index) const {
    return find(key)->get_array().at(index).to_number<double>();
  }
  std::string type() const { return json::value_to<std::string>(object_.at("rope_type")); }

 private:
  const json::value* find(const char* key) const {
    const auto* value = object_.if_contains(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  const json::object& object_;
};

// 1 / theta^(2j / columns)
std::vector<double> default_values(double theta, std::int64_t columns) {
  std::vector<double> values;
  for (std::int64_t j = 0; j < columns; j += 2) {
    values.push_back(1 / std::pow(theta, static_cast<double>(j) / static_cast<double>(columns)));
  }
  return values;
}

// Long waves are stretched by `factor`, short ones stay, in between there is a straight line.
void stretch_as_llama3(const Parameters& own, std::vector<double>& values) {
  const double factor = own.number("factor", 1);
  const double low = own.number("low_freq_factor", 1);
  const double high = own.number("high_freq_factor", 4);
  const double context = own.number("original_max_position_embeddings", 0);
  for (double& value : values) {
    const double wavelength = 2 * std::numbers::pi / value;
    if (wavelength > context / low) {
      value /= factor;
    } else if (wavelength >= context / high) {
      const double smooth = (context / wavelength - low) / (high - low);
      value = (1 - smooth) * value / factor + smooth * value;
    }
  }
}

double yarn_magnitude(double scale, double multiplier) {
  return scale <= 1 ? 1.0 : 0.1 * multiplier * std::log(scale) + 1.0;
}

double yarn_scaling(const Parameters& own) {
  const double factor = own.number("factor", 1);
  const double numerator = own.number("mscale", 0);
  const double denominator = own.number("mscale_all_dim", 0);
  const double inferred =
      numerator != 0 && denominator != 0
          ? yarn_magnitude(factor, numerator) / yarn_magnitude(factor, denominator)
          : yarn_magnitude(factor, 1);
  return own.number("attention_factor", inferred);
}

/// Pairs between which YaRN goes from the frequency to its `factor`th part.
struct Ramp {
  double low;
  double high;

  double at(std::size_t pair) const {
    return std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
  }
};

Ramp yarn_ramp(const Parameters& own, double columns) {
  const double theta = own.number("rope_theta", 0);
  const double context = own.number("original_max_position_embeddings", 0);
  const auto pair_of = [&](double rotations) {
    return columns * std::log(context / (rotations * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  double low = pair_of(own.number("beta_fast", 32));
  double high = pair_of(own.number("beta_slow", 1));
  if (own.truth("truncate", true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, columns - 1);
  return {low, low == high ? high + 0.001 : high};
}

RotaryFrequencies yarn(const Parameters& own, std::int64_t columns, std::vector<double> values) {
  const double factor = own.number("factor", 1);
  const Ramp ramp = yarn_ramp(own, static_cast<double>(columns));
  for (std::size_t pair = 0; pair < values.size(); ++pair) {
    const double stretched = ramp.at(pair);
    values[pair] = values[pair] / factor * stretched + values[pair] * (1 - stretched);
  }
  return {std::move(values), yarn_scaling(own)};
}

RotaryFrequencies longrope(const Parameters& own, std::int64_t max_positions,
                           std::int64_t sequence_length, std::vector<double> values) {
  const double context = own.number("original_max_position_embeddings", 0);
  const bool is_long = static_cast<double>(sequence_length) > context;
  for (std::size_t pair = 0; pair < values.size(); ++pair) {
    values[pair] /= own.number_at(is_long ? "long_factor" : "short_factor", pair);
  }
  const double factor = own.number("factor", static_cast<double>(max_positions) / context);
  const double inferred = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(context));
  return {std::move(values), own.number("attention_factor", inferred)};
}

}  // namespace

RotaryFrequencies rotary_frequencies(const json::object& parameters, std::int64_t max_positions,
                                     std::int64_t columns, std::int64_t sequence_length) {
  const Parameters own(parameters);
  std::vector<double> values = default_values(own.number("rope_theta", 0), columns);
  const std::string type = own.type();
  if (type == "yarn") return yarn(own, columns, std::move(values));
  if (type == "longrope") {
    return longrope(own, max_positions, sequence_length, std::move(values));
  }
  if (type == "linear") {
    for (double& value : values) value /= own.number("factor", 1);
  }
  if (type == "llama3") stretch_as_llama3(own, values);
  return {std::move(values), 1};
}

}  // namespace dstune
