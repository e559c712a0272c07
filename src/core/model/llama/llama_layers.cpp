#include <algorithm>
#include <string>

#include "core/base/text.hpp"
#include "core/model/llama/llama_values.hpp"
#include "core/model/rotary_frequencies.hpp"

namespace dstune::llama {

namespace {

constexpr std::int64_t kDefaultWindowedFrom = 28;  // max_window_layers of Qwen
constexpr const char* kSliding = "sliding_attention";
constexpr const char* kFull = "full_attention";

bool is_windowed(const Values& values, const Description& kin, std::int64_t layer) {
  if (kin.windows == Windows::on_request) {
    return layer >= values.get("max_window_layers", kDefaultWindowedFrom);
  }
  if (kin.windows == Windows::every_other) {
    return layer % 2 == 0 && layer < values.get("max_window_layers", kDefaultWindowedFrom);
  }
  return (layer + 1) % values.get("sliding_window_pattern", kin.window_pattern) != 0;
}

json::array layer_types_of(const Values& values, const Description& kin, std::int64_t layers) {
  if (const auto* given = values.find("layer_types")) return given->get_array();
  json::array types;
  for (std::int64_t i = 0; i < layers; ++i) {
    types.emplace_back(is_windowed(values, kin, i) ? kSliding : kFull);
  }
  return types;
}

void check_layer_types(const Values& values, std::int64_t layers, bool has_window,
                       std::string_view pointer, Problems& problems) {
  const auto* given = values.find("layer_types");
  if (given == nullptr) return;
  const auto& types = given->get_array();
  const std::string place = child(pointer, "layer_types");
  if (static_cast<std::int64_t>(types.size()) != layers) {
    problems.add(place,
                 concat("has ", types.size(), " elements; accepted: num_hidden_layers, ", layers));
  } else if (!has_window && std::find(types.begin(), types.end(), kSliding) != types.end()) {
    problems.add(place, "has sliding_attention without use_sliding_window and sliding_window");
  }
}

/// The parameters of full_attention or sliding_attention, which transformers 5 has in an object of
/// both names, and earlier ones in keys of the whole.
json::object rope_config(const Values& values, std::string_view kind) {
  const auto* both = values.find("rope_parameters");
  if (both != nullptr &&
      (both->get_object().contains(kSliding) || both->get_object().contains(kFull))) {
    const auto* own = both->get_object().if_contains(kind);
    if (own == nullptr || !own->is_object()) return {};
    return {{"rope_parameters", *own}};
  }
  if (kind == kFull) return values.all();
  json::object config;
  if (const auto* theta = values.find("rope_local_base_freq")) config["rope_theta"] = *theta;
  return config;
}

}  // namespace

void read_windows(const Values& values, const ModelSpec& spec, const Description& kin,
                  std::string_view pointer, Problems& problems, json::object& own) {
  const bool is_null = values.has("sliding_window") && values.find("sliding_window") == nullptr;
  const auto window = is_null ? 0 : values.get<std::int64_t>("sliding_window", kin.defaults.window);
  if (kin.windows == Windows::none) return;
  if (kin.windows != Windows::all) {
    const bool is_used = kin.windows == Windows::alternating ||
                         (values.get("use_sliding_window", false) && window > 0);
    check_layer_types(values, spec.num_layers, is_used, pointer, problems);
    if (!is_used) return;
    if (kin.windows != Windows::all_on_request) {
      own["layer_types"] = layer_types_of(values, kin, spec.num_layers);
    }
  }
  if (window > 0) own["sliding_window"] = window;
}

void read_ropes(const Values& values, const ModelSpec& spec, const Description& kin,
                std::int64_t head_size, std::string_view pointer, Problems& problems,
                json::object& own) {
  const auto read = [&](const json::object& config) {
    return read_rope_parameters(config, spec.max_positions, head_size, pointer, problems);
  };
  if (kin.is_phi) return read_rope_of_phi(values, spec, head_size, pointer, problems, own);
  if (!kin.has_windowed_rope) {
    json::object config = values.all();
    if (kin.theta > 0 && values.find("rope_theta") == nullptr) config["rope_theta"] = kin.theta;
    if (auto rope = read(config)) own["rope_parameters"] = std::move(*rope);
    return;
  }
  constexpr double kGlobalTheta = 1e6;
  json::object full = rope_config(values, kFull);
  if (!full.contains("rope_theta")) full["rope_theta"] = kGlobalTheta;
  if (auto rope = read(full)) own["rope_parameters"] = std::move(*rope);
  if (auto rope = read(rope_config(values, kSliding))) {
    own["windowed_rope_parameters"] = std::move(*rope);
  }
}

}  // namespace dstune::llama
