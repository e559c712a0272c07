#include "core/base/text.hpp"
#include "core/model/activation_names.hpp"
#include "core/model/gpt_neox/gpt_neox.hpp"
#include "core/model/labels.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune::gpt_neox {

namespace {

void add_layer(ModelBuilder& builder, const ModelSpec& spec, const NeoxSettings& settings,
               const std::string& name, std::size_t parent) {
  const std::int64_t h = spec.hidden_size;
  const std::int64_t f = spec.inner_size;
  const double stddev = spec.initializer_range;
  const std::size_t layer = builder.add_module(name, "GPTNeoXLayer", parent);
  builder.add_layer_norm(name + ".input_layernorm", layer, h);
  builder.add_layer_norm(name + ".post_attention_layernorm", layer, h);
  builder.add_module(name + ".post_attention_dropout", "Dropout", layer);
  builder.add_module(name + ".post_mlp_dropout", "Dropout", layer);
  const std::size_t attention = builder.add_module(name + ".attention", "GPTNeoXAttention", layer);
  const bool bias = settings.attention_bias;
  add_nn_linear(builder, name + ".attention.query_key_value", attention, h, 3 * h, bias, stddev);
  add_nn_linear(builder, name + ".attention.dense", attention, h, h, bias, stddev);
  const std::size_t mlp = builder.add_module(name + ".mlp", "GPTNeoXMLP", layer);
  add_nn_linear(builder, name + ".mlp.dense_h_to_4h", mlp, h, f, true, stddev);
  add_nn_linear(builder, name + ".mlp.dense_4h_to_h", mlp, f, h, true, stddev);
  builder.add_module(name + ".mlp.act", std::string(activation_class(settings.activation)), mlp);
}

}  // namespace

ModelParameters parameters(const ModelSpec& spec) {
  const std::int64_t h = spec.hidden_size;
  const double stddev = spec.initializer_range;
  const NeoxSettings settings = settings_of(spec);
  const bool classifies = spec.task == Task::sequence_classification;
  ModelBuilder builder;
  const std::size_t root = builder.add_module(
      "", classifies ? "GPTNeoXForSequenceClassification" : "GPTNeoXForCausalLM", 0);
  const std::size_t body = builder.add_module("gpt_neox", "GPTNeoXModel", root);
  builder.takes_numbers_only(root);
  builder.takes_numbers_only(body);
  builder.add_embedding("gpt_neox.embed_in", body, spec.vocab_size, h, stddev);
  builder.add_module("gpt_neox.emb_dropout", "Dropout", body);
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    add_layer(builder, spec, settings, concat("gpt_neox.layers.", layer), body);
  }
  builder.add_layer_norm("gpt_neox.final_layer_norm", body, h);
  builder.takes_numbers_only(
      builder.add_module("gpt_neox.rotary_emb", "GPTNeoXRotaryEmbedding", body));
  if (classifies) {
    add_nn_linear(builder, "score", root, h, label_count(spec), false, stddev);
  } else if (settings.tied) {
    constexpr std::size_t kEmbedIn = 0;
    builder.tie(builder.add_module("lm_head", "Linear", root), kEmbedIn);
  } else {
    add_nn_linear(builder, "lm_head", root, h, spec.vocab_size, false, stddev);
  }
  return builder.take();
}

double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length) {
  const auto h = static_cast<double>(spec.hidden_size);
  const auto f = static_cast<double>(spec.inner_size);
  const auto layers = static_cast<double>(spec.num_layers);
  const double matmul_weights =
      layers * (4 * h * h + 2 * h * f) + static_cast<double>(head_rows(spec)) * h;
  const double attention = 12 * layers * h * static_cast<double>(sequence_length);
  return static_cast<double>(tokens) * (6 * matmul_weights + attention);
}

}  // namespace dstune::gpt_neox
