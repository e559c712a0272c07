#include <algorithm>
#include <type_traits>
#include <utility>

#include <boost/json/serialize.hpp>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/model/config_keys.hpp"
#include "core/model/llama.hpp"
#include "core/model/llama_kin.hpp"

namespace dstune::llama {

namespace {

// Of LlamaConfig and its likes, or of their published files, without effect on a training step.
constexpr std::string_view kWithoutEffect[] = {
    "pretraining_tp",
    "rope_interleaved",
    "use_mrope",
};

constexpr std::int64_t kMostHeadColumns = 10'000'000;
constexpr std::int64_t kDefaultWindowedFrom = 28;  // max_window_layers of Qwen
constexpr const char* kSliding = "sliding_attention";

/// Values of a checked section.
class Values {
 public:
  explicit Values(json::object values) : values_(std::move(values)) {}

  const json::value* find(const char* key) const {
    const auto* value = values_.if_contains(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  template <class T>
  T get(const char* key, T otherwise) const {
    const auto* value = find(key);
    if (value == nullptr) return otherwise;
    if constexpr (std::is_same_v<T, bool>) {
      return value->get_bool();
    } else {
      return value->to_number<T>();
    }
  }
  /// Null counts as a value.
  bool has(const char* key) const { return values_.contains(key); }
  const json::object& all() const { return values_; }

 private:
  json::object values_;
};

ModelSpec spec_from(const Values& values, Kin kin) {
  const Defaults& defaults = description_of(kin).defaults;
  ModelSpec spec;
  spec.family = model_type_of(kin);
  spec.vocab_size = values.get("vocab_size", defaults.vocab_size);
  spec.max_positions = values.get("max_position_embeddings", defaults.positions);
  spec.hidden_size = values.get("hidden_size", defaults.hidden_size);
  spec.inner_size = values.get("intermediate_size", defaults.inner_size);
  spec.num_layers = values.get("num_hidden_layers", defaults.layers);
  spec.num_heads = values.get("num_attention_heads", defaults.heads);
  spec.layer_norm_epsilon = values.get("rms_norm_eps", 1e-6);
  spec.initializer_range = values.get("initializer_range", 0.02);
  spec.attention_dropout = values.get("attention_dropout", 0.0);
  return spec;
}

std::int64_t head_size_of(const Values& values, const ModelSpec& spec, const Defaults& defaults) {
  const bool is_null = values.has("head_dim") && values.find("head_dim") == nullptr;
  const std::int64_t otherwise =
      defaults.head_size == 0 || is_null ? spec.hidden_size / spec.num_heads : defaults.head_size;
  return values.get("head_dim", otherwise);
}

std::int64_t kv_heads_of(const Values& values, const ModelSpec& spec, const Defaults& defaults) {
  const bool is_null =
      values.has("num_key_value_heads") && values.find("num_key_value_heads") == nullptr;
  const std::int64_t otherwise =
      defaults.kv_heads == 0 || is_null ? spec.num_heads : defaults.kv_heads;
  return values.get("num_key_value_heads", otherwise);
}

void check_heads(const ModelSpec& spec, std::int64_t kv_heads, std::int64_t head_size,
                 bool must_divide, std::string_view pointer, Problems& problems) {
  if (must_divide && spec.hidden_size % spec.num_heads != 0) {
    problems.add(
        child(pointer, "num_attention_heads"),
        concat("is ", spec.num_heads, ", which does not divide hidden_size ", spec.hidden_size));
  } else if (head_size < 2 || head_size % 2 != 0) {
    problems.add(child(pointer, "head_dim"),
                 concat("is ", head_size, "; accepted: an even integer from 2, whose halves turn"));
  } else if (spec.num_heads * head_size > kMostHeadColumns) {
    problems.add(child(pointer, "head_dim"),
                 concat("times num_attention_heads is ", spec.num_heads * head_size,
                        "; accepted: at most ", kMostHeadColumns));
  }
  if (kv_heads > 0 && spec.num_heads % kv_heads != 0) {
    problems.add(
        child(pointer, "num_key_value_heads"),
        concat("is ", kv_heads, ", which does not divide num_attention_heads ", spec.num_heads));
  }
}

json::array layer_types_of(const Values& values, std::int64_t layers) {
  if (const auto* given = values.find("layer_types")) return given->get_array();
  const auto first = values.get("max_window_layers", kDefaultWindowedFrom);
  json::array types;
  for (std::int64_t i = 0; i < layers; ++i) {
    types.emplace_back(i >= first ? kSliding : "full_attention");
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

void read_windows(const Values& values, const ModelSpec& spec, const Description& kin,
                  std::string_view pointer, Problems& problems, json::object& own) {
  const bool is_null = values.has("sliding_window") && values.find("sliding_window") == nullptr;
  const auto window = is_null ? 0 : values.get<std::int64_t>("sliding_window", kin.defaults.window);
  if (kin.windows_by_layer) {
    const bool is_used = values.get("use_sliding_window", false) && window > 0;
    check_layer_types(values, spec.num_layers, is_used, pointer, problems);
    if (!is_used) return;
    own["layer_types"] = layer_types_of(values, spec.num_layers);
  }
  if (window > 0) own["sliding_window"] = window;
}

}  // namespace

std::optional<ModelSpec> read(Kin kin, const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings) {
  const Description& description = description_of(kin);
  warn_of_unknown_keys(config, description.section, kWithoutEffect, description.title, pointer,
                       warnings);
  const auto faults = problems.count();
  const Values values(check_section(config, description.section, pointer, problems));
  if (problems.count() > faults) return std::nullopt;
  ModelSpec spec = spec_from(values, kin);
  const std::int64_t head_size = head_size_of(values, spec, description.defaults);
  const std::int64_t kv_heads = kv_heads_of(values, spec, description.defaults);
  check_heads(spec, kv_heads, head_size, kin == Kin::llama, pointer, problems);
  json::object own{
      {"num_key_value_heads", kv_heads},
      {"head_dim", head_size},
      {"attention_bias", values.get("attention_bias", false)},
      {"hidden_act",
       values.find("hidden_act") == nullptr ? json::value("silu") : *values.find("hidden_act")},
      {"mlp_bias", values.get("mlp_bias", false)},
      {"tie_word_embeddings", values.get("tie_word_embeddings", false)}};
  read_windows(values, spec, description, pointer, problems, own);
  if (problems.count() > faults) return std::nullopt;
  const auto rope =
      read_rope_parameters(values.all(), spec.max_positions, head_size, pointer, problems);
  if (!rope) return std::nullopt;
  own["rope_parameters"] = *rope;
  spec.own = json::serialize(own);
  return spec;
}

}  // namespace dstune::llama
