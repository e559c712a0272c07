#include "core/experiment/length_settings.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr std::array<std::string_view, 4> kLaws = {"fixed", "histogram", "lognormal", "uniform"};

std::string_view name_of(LengthLaw law) { return kLaws.at(static_cast<std::size_t>(law)); }

LengthLaw law_from(std::string_view name) {
  const auto* const found = std::find(kLaws.begin(), kLaws.end(), name);
  if (found == kLaws.end()) throw std::invalid_argument("unknown law of lengths");
  return static_cast<LengthLaw>(found - kLaws.begin());
}

json::array counts_to_json(const std::vector<LengthCount>& counts) {
  json::array list;
  for (const LengthCount& each : counts) list.push_back(json::array{each.length, each.count});
  return list;
}

std::string origin_of(const LengthSettings& settings) {
  if (settings.law == LengthLaw::histogram) {
    std::int64_t sequences = 0;
    for (const LengthCount& each : settings.counts) sequences += each.count;
    return concat("of ", sequences, " sequences");
  }
  if (settings.law == LengthLaw::uniform) return "uniform";
  return concat("lognormal, mean ", settings.mean, ", sigma ", settings.sigma);
}

}  // namespace

std::string describe(const LengthSettings& settings) {
  std::string text = concat(origin_of(settings), ", ", settings.least, " to ", settings.most,
                            settings.is_packed ? ", packed" : ", padded to the longest");
  if (settings.pad_to_multiple_of > 1) {
    text += concat(" and a multiple of ", settings.pad_to_multiple_of);
  }
  return text;
}

json::object to_json(const LengthSettings& settings) {
  json::object object = {{"law", name_of(settings.law)},
                         {"least", settings.least},
                         {"most", settings.most},
                         {"pad_to_multiple_of", settings.pad_to_multiple_of}};
  if (settings.is_packed) object["packed"] = true;
  if (settings.law == LengthLaw::histogram) object["counts"] = counts_to_json(settings.counts);
  if (settings.law == LengthLaw::lognormal) {
    object["mean"] = settings.mean;
    object["sigma"] = settings.sigma;
  }
  return object;
}

LengthSettings length_settings_from_json(const json::object& object) {
  LengthSettings settings;
  settings.law = law_from(std::string_view(object.at("law").as_string()));
  settings.least = object.at("least").to_number<std::int64_t>();
  settings.most = object.at("most").to_number<std::int64_t>();
  settings.pad_to_multiple_of = object.at("pad_to_multiple_of").to_number<std::int64_t>();
  settings.is_packed = object.contains("packed");
  if (const auto* counts = object.if_contains("counts")) {
    for (const auto& each : counts->as_array()) {
      settings.counts.push_back({each.as_array().at(0).to_number<std::int64_t>(),
                                 each.as_array().at(1).to_number<std::int64_t>()});
    }
  }
  if (settings.law == LengthLaw::lognormal) {
    settings.mean = object.at("mean").to_number<double>();
    settings.sigma = object.at("sigma").to_number<double>();
  }
  return settings;
}

std::optional<std::int64_t> tuned_sequence_length(const json::object& ds_config) {
  const auto* const section = ds_config.if_contains("dstune");
  const auto* const dstune = section == nullptr ? nullptr : section->if_object();
  const auto* const length = dstune == nullptr ? nullptr : dstune->if_contains("sequence_length");
  if (length == nullptr) return std::nullopt;
  return length->to_number<std::int64_t>();
}

}  // namespace dstune
