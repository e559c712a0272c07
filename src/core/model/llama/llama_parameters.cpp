#include <algorithm>

#include "core/base/text.hpp"
#include "core/model/activation_names.hpp"
#include "core/model/labels.hpp"
#include "core/model/llama/llama.hpp"
#include "core/model/llama/llama_kin.hpp"
#include "core/model/moe/moe.hpp"

namespace dstune::llama {

namespace {

/// Adds the modules of one model.
class Builder {
 public:
  explicit Builder(const ModelSpec& spec)
      : spec_(spec), settings_(settings_of(spec)), prefix_(description_of(settings_.kin).prefix) {}

  ModelParameters build();

 private:
  std::string class_name(std::string_view part) const { return concat(prefix_, part); }
  void add_linear(const std::string& name, std::size_t parent, std::int64_t in, std::int64_t out,
                  bool has_bias);
  void add_norm(const std::string& name, std::size_t parent, std::int64_t size);
  void add_attention(const std::string& name, std::size_t parent);
  void add_projections(const std::string& name, std::size_t module);
  void add_mlp(const std::string& name, std::size_t parent);
  void add_layer(std::int64_t index, std::size_t parent);
  void add_body(std::size_t root);
  void add_head(std::size_t root);

  const ModelSpec& spec_;
  const LlamaSettings settings_;
  std::string_view prefix_;
  ModelBuilder builder_;
};

void Builder::add_linear(const std::string& name, std::size_t parent, std::int64_t in,
                         std::int64_t out, bool has_bias) {
  const std::size_t module = builder_.add_module(name, "Linear", parent);
  builder_.add_tensor(module, "weight", {out, in}, {.stddev = spec_.initializer_range});
  if (has_bias) builder_.add_tensor(module, "bias", {out}, {});
}

void Builder::add_norm(const std::string& name, std::size_t parent, std::int64_t size) {
  builder_.add_tensor(builder_.add_module(name, class_name("RMSNorm"), parent), "weight", {size},
                      {.constant = settings_.is_gemma ? 0.0 : 1.0});
}

void Builder::add_attention(const std::string& name, std::size_t parent) {
  const std::size_t module = builder_.add_module(name, class_name("Attention"), parent);
  // Its input is a keyword argument, which DeepSpeed's hook after the backward does not see.
  builder_.takes_numbers_only(module);
  add_projections(name, module);
  if (!settings_.head_norms) return;
  add_norm(name + ".q_norm", module, settings_.head_size);
  add_norm(name + ".k_norm", module, settings_.head_size);
}

void Builder::add_projections(const std::string& name, std::size_t module) {
  const std::int64_t h = spec_.hidden_size;
  const std::int64_t of_queries = spec_.num_heads * settings_.head_size;
  const std::int64_t of_keys = settings_.kv_heads * settings_.head_size;
  if (settings_.is_phi) {
    add_linear(name + ".o_proj", module, of_queries, h, false);
    add_linear(name + ".qkv_proj", module, h, of_queries + 2 * of_keys, false);
    return;
  }
  add_linear(name + ".q_proj", module, h, of_queries, settings_.input_biases);
  add_linear(name + ".k_proj", module, h, of_keys, settings_.input_biases);
  add_linear(name + ".v_proj", module, h, of_keys, settings_.input_biases);
  add_linear(name + ".o_proj", module, of_queries, h, settings_.output_bias);
}

void Builder::add_mlp(const std::string& name, std::size_t parent) {
  const std::int64_t h = spec_.hidden_size;
  const std::int64_t f = spec_.inner_size;
  const std::size_t module = builder_.add_module(name, class_name("MLP"), parent);
  const std::string activation(activation_class(settings_.activation));
  if (settings_.is_phi) {
    add_linear(name + ".gate_up_proj", module, h, 2 * f, false);
    add_linear(name + ".down_proj", module, f, h, false);
    builder_.add_module(name + ".activation_fn", activation, module);
    return;
  }
  add_linear(name + ".gate_proj", module, h, f, settings_.mlp_bias);
  add_linear(name + ".up_proj", module, h, f, settings_.mlp_bias);
  add_linear(name + ".down_proj", module, f, h, settings_.mlp_bias);
  builder_.add_module(name + ".act_fn", activation, module);
}

void Builder::add_layer(std::int64_t index, std::size_t parent) {
  const std::string name = concat("model.layers.", index);
  const std::size_t layer = builder_.add_module(name, class_name("DecoderLayer"), parent);
  add_attention(name + ".self_attn", layer);
  if (settings_.experts.in_layer[static_cast<std::size_t>(index)]) {
    add_experts(builder_, spec_, settings_, name + ".mlp", layer);
  } else {
    add_mlp(name + ".mlp", layer);
  }
  add_norm(name + ".input_layernorm", layer, spec_.hidden_size);
  add_norm(name + ".post_attention_layernorm", layer, spec_.hidden_size);
  if (settings_.is_phi) {
    builder_.add_module(name + ".resid_attn_dropout", "Dropout", layer);
    builder_.add_module(name + ".resid_mlp_dropout", "Dropout", layer);
  }
  if (!settings_.post_norms) return;
  add_norm(name + ".pre_feedforward_layernorm", layer, spec_.hidden_size);
  add_norm(name + ".post_feedforward_layernorm", layer, spec_.hidden_size);
}

void Builder::add_body(std::size_t root) {
  const std::size_t body =
      builder_.add_module("model", class_name(description_of(settings_.kin).body), root);
  builder_.takes_numbers_only(body);
  const std::size_t embedding = builder_.add_module(
      "model.embed_tokens",
      settings_.is_gemma ? class_name("TextScaledWordEmbedding") : "Embedding", body);
  builder_.takes_numbers_only(embedding);
  builder_.add_tensor(embedding, "weight", {spec_.vocab_size, spec_.hidden_size},
                      {.stddev = spec_.initializer_range});
  for (std::int64_t layer = 0; layer < spec_.num_layers; ++layer) {
    add_layer(layer, body);
  }
  add_norm("model.norm", body, spec_.hidden_size);
  // Its outputs are constants, so it has no gradients.
  builder_.takes_numbers_only(
      builder_.add_module("model.rotary_emb", class_name("RotaryEmbedding"), body));
}

void Builder::add_head(std::size_t root) {
  if (spec_.task == Task::sequence_classification) {
    add_linear("score", root, spec_.hidden_size, settings_.labels, false);
  } else if (settings_.tied) {
    constexpr std::size_t kEmbedding = 0;
    builder_.tie(builder_.add_module("lm_head", "Linear", root), kEmbedding);
  } else {
    add_linear("lm_head", root, spec_.hidden_size, spec_.vocab_size, false);
  }
}

std::string_view classifier_of(Kin kin) {
  return kin == Kin::gemma3_text ? "TextForSequenceClassification" : "ForSequenceClassification";
}

ModelParameters Builder::build() {
  const bool classifies = spec_.task == Task::sequence_classification;
  const std::size_t root = builder_.add_module(
      "", class_name(classifies ? classifier_of(settings_.kin) : "ForCausalLM"), 0);
  builder_.takes_numbers_only(root);
  add_body(root);
  add_head(root);
  return builder_.take();
}

}  // namespace

ModelParameters parameters(const ModelSpec& spec) { return Builder(spec).build(); }

double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length) {
  const LlamaSettings settings = settings_of(spec);
  const auto h = static_cast<double>(spec.hidden_size);
  const auto of_queries = static_cast<double>(spec.num_heads * settings.head_size);
  const auto of_keys = static_cast<double>(settings.kv_heads * settings.head_size);
  double weights = static_cast<double>(head_rows(spec)) * h;
  double seen = 0;  // positions, summed up over layers
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    weights += 2 * h * (of_queries + of_keys) + active_mlp_weights(spec, settings, layer);
    const std::int64_t window = settings.window_of(layer);
    seen += static_cast<double>(window > 0 ? std::min(window, sequence_length) : sequence_length);
  }
  return static_cast<double>(tokens) * (6 * weights + 12 * of_queries * seen);
}

}  // namespace dstune::llama
