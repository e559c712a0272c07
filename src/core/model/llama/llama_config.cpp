#include <string>
#include <utility>

#include <boost/json/serialize.hpp>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/model/config_keys.hpp"
#include "core/model/labels.hpp"
#include "core/model/llama/llama.hpp"
#include "core/model/llama/llama_kin.hpp"
#include "core/model/llama/llama_values.hpp"
#include "core/model/moe/moe.hpp"

namespace dstune::llama {

namespace {

// The no-op keys of LlamaConfig and its likes, or of their published files: a training step does
// not read them.
constexpr std::string_view kNoOpKeys[] = {
    "cache_implementation",
    "embd_pdrop",         // Phi3Model has no such dropout any more
    "full_attn_mod",      // this and the next of Phi-4-mini
    "hidden_activation",  // Gemma has hidden_act
    "interpolate_factor",
    "pretraining_tp",
    "rope_interleaved",
    "use_mrope",
    "qkv_bias",  // Qwen3-MoE files have it and the next, which only Qwen2-MoE reads
    "shared_expert_intermediate_size",
};

constexpr double kDefaultScalar = 256;  // query_pre_attn_scalar of Gemma

ModelSpec spec_from(const Values& values, Kin kin) {
  const Description& description = description_of(kin);
  const Defaults& defaults = description.defaults;
  ModelSpec spec;
  spec.family = model_type_of(kin);
  spec.vocab_size = values.get("vocab_size", defaults.vocab_size);
  spec.max_positions = values.get("max_position_embeddings", defaults.positions);
  spec.hidden_size = values.get("hidden_size", defaults.hidden_size);
  spec.inner_size = values.get("intermediate_size", defaults.inner_size);
  spec.num_layers = values.get("num_hidden_layers", defaults.layers);
  spec.num_heads = values.get("num_attention_heads", defaults.heads);
  spec.layer_norm_epsilon = values.get("rms_norm_eps", description.epsilon);
  spec.initializer_range = values.get("initializer_range", 0.02);
  spec.attention_dropout = values.get("attention_dropout", 0.0);
  spec.residual_dropout = values.get("resid_pdrop", 0.0);  // Phi-3's
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

// Gemma's "gelu" means the other one: GemmaConfig of transformers 5.23.
std::string activation_of(const Values& values, Kin kin) {
  constexpr const char* kGeluTanh = "gelu_pytorch_tanh";
  const bool is_gemma = description_of(kin).is_gemma;
  const bool is_later = description_of(kin).scales_by_scalar;
  const auto* value = values.find(is_later ? "hidden_activation" : "hidden_act");
  const std::string name = value != nullptr ? json::value_to<std::string>(*value)
                                            : std::string(is_gemma ? kGeluTanh : "silu");
  return kin == Kin::gemma && name == "gelu" ? kGeluTanh : name;
}

/// A cap that is null is none; `key` stays out of `own` then.
void read_cap(const Values& values, const char* key, double otherwise, json::object& own) {
  const bool is_null = values.has(key) && values.find(key) == nullptr;
  const double cap = is_null ? 0 : values.get(key, otherwise);
  if (cap > 0) own[key] = cap;
}

void read_scores(const Values& values, const Description& kin, json::object& own) {
  if (!kin.scales_by_scalar) return;
  own["query_pre_attn_scalar"] = values.get("query_pre_attn_scalar", kDefaultScalar);
  read_cap(values, "attn_logit_softcapping", kin.score_cap, own);
  read_cap(values, "final_logit_softcapping", kin.logit_cap, own);
}

}  // namespace

std::optional<ModelSpec> read(Kin kin, const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings) {
  const Description& description = description_of(kin);
  warn_of_unknown_keys(config, description.section, kNoOpKeys, description.title, pointer,
                       warnings);
  const auto faults = problems.count();
  const Values values(check_section(config, description.section, pointer, problems));
  if (problems.count() > faults) return std::nullopt;
  ModelSpec spec = spec_from(values, kin);
  const std::int64_t head_size = head_size_of(values, spec, description.defaults);
  const std::int64_t kv_heads = kv_heads_of(values, spec, description.defaults);
  const bool must_divide = kin == Kin::llama || kin == Kin::gemma2;
  check_heads(spec, kv_heads, head_size, must_divide, pointer, problems);
  json::object own{
      {"num_key_value_heads", kv_heads},
      {"head_dim", head_size},
      {"attention_bias", values.get("attention_bias", false)},
      {"hidden_act", activation_of(values, kin)},
      {"mlp_bias", values.get("mlp_bias", false)},
      {"tie_word_embeddings", values.get("tie_word_embeddings", description.is_gemma)}};
  read_windows(values, spec, description, pointer, problems, own);
  read_scores(values, description, own);
  read_experts(values, spec, description, pointer, problems, own);
  if (kin == Kin::qwen2_moe) own["qkv_bias"] = values.get("qkv_bias", true);
  if (problems.count() > faults) return std::nullopt;
  read_ropes(values, spec, description, head_size, pointer, problems, own);
  if (problems.count() > faults) return std::nullopt;
  spec.own = with_labels(json::serialize(own), values.all());
  return spec;
}

}  // namespace dstune::llama
