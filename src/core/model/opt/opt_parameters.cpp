#include "core/base/text.hpp"
#include "core/model/activation_names.hpp"
#include "core/model/labels.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/opt/opt.hpp"

namespace dstune::opt {

namespace {

void add_norm(ModelBuilder& builder, const ModelSpec& spec, const OptSettings& settings,
              const std::string& name, std::size_t parent) {
  if (settings.norm_parameters) {
    builder.add_layer_norm(name, parent, spec.hidden_size);
  } else {
    builder.add_module(name, "LayerNorm", parent);
  }
}

void add_attention(ModelBuilder& builder, const ModelSpec& spec, const OptSettings& settings,
                   const std::string& name, std::size_t parent) {
  const std::int64_t h = spec.hidden_size;
  const std::size_t attention = builder.add_module(name, "OPTAttention", parent);
  // Its input is a keyword argument, which DeepSpeed's hook after the backward does not see.
  builder.takes_numbers_only(attention);
  for (const char* part : {".k_proj", ".v_proj", ".q_proj", ".out_proj"}) {
    add_nn_linear(builder, name + part, attention, h, h, settings.has_bias, spec.initializer_range);
  }
}

void add_layer(ModelBuilder& builder, const ModelSpec& spec, const OptSettings& settings,
               const std::string& name, std::size_t parent) {
  const std::int64_t h = spec.hidden_size;
  const std::int64_t f = spec.inner_size;
  const double stddev = spec.initializer_range;
  const std::size_t layer = builder.add_module(name, "OPTDecoderLayer", parent);
  add_attention(builder, spec, settings, name + ".self_attn", layer);
  builder.add_module(name + ".activation_fn", std::string(activation_class(settings.activation)),
                     layer);
  add_norm(builder, spec, settings, name + ".self_attn_layer_norm", layer);
  add_nn_linear(builder, name + ".fc1", layer, h, f, settings.has_bias, stddev);
  add_nn_linear(builder, name + ".fc2", layer, f, h, settings.has_bias, stddev);
  add_norm(builder, spec, settings, name + ".final_layer_norm", layer);
}

void add_embeddings(ModelBuilder& builder, const ModelSpec& spec, const OptSettings& settings,
                    std::size_t decoder) {
  const std::int64_t h = spec.hidden_size;
  const std::int64_t e = settings.embedding_size;
  const double stddev = spec.initializer_range;
  builder.add_embedding("model.decoder.embed_tokens", decoder, spec.vocab_size, e, stddev);
  const std::size_t positions =
      builder.add_module("model.decoder.embed_positions", "OPTLearnedPositionalEmbedding", decoder);
  builder.takes_numbers_only(positions);
  builder.add_tensor(positions, "weight", {spec.max_positions + kFirstPosition, h},
                     {.stddev = stddev});
  if (e == h) return;
  add_nn_linear(builder, "model.decoder.project_out", decoder, h, e, false, stddev);
  add_nn_linear(builder, "model.decoder.project_in", decoder, e, h, false, stddev);
}

}  // namespace

// OPTForCausalLM calls the decoder itself: OPTModel's forward, "model", runs in classifiers only.
ModelParameters parameters(const ModelSpec& spec) {
  const OptSettings settings = settings_of(spec);
  const bool classifies = spec.task == Task::sequence_classification;
  ModelBuilder builder;
  const std::size_t root =
      builder.add_module("", classifies ? "OPTForSequenceClassification" : "OPTForCausalLM", 0);
  builder.takes_numbers_only(root);
  std::size_t parent = root;
  if (classifies) {
    parent = builder.add_module("model", "OPTModel", root);
    builder.takes_numbers_only(parent);
  }
  const std::size_t decoder = builder.add_module("model.decoder", "OPTDecoder", parent);
  builder.takes_numbers_only(decoder);
  add_embeddings(builder, spec, settings, decoder);
  if (settings.has_final_norm()) {
    add_norm(builder, spec, settings, "model.decoder.final_layer_norm", decoder);
  }
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    add_layer(builder, spec, settings, concat("model.decoder.layers.", layer), decoder);
  }
  if (settings.tied && !classifies) {
    constexpr std::size_t kEmbedTokens = 0;
    builder.tie(builder.add_module("lm_head", "Linear", root), kEmbedTokens);
  } else {
    add_nn_linear(builder, classifies ? "score" : "lm_head", root, settings.embedding_size,
                  head_rows(spec), false, spec.initializer_range);
  }
  return builder.take();
}

double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length) {
  const auto h = static_cast<double>(spec.hidden_size);
  const auto f = static_cast<double>(spec.inner_size);
  const auto e = static_cast<double>(settings_of(spec).embedding_size);
  const auto layers = static_cast<double>(spec.num_layers);
  const double projections = e == h ? 0 : 2 * e * h;
  const double matmul_weights =
      layers * (4 * h * h + 2 * h * f) + projections + static_cast<double>(head_rows(spec)) * e;
  const double attention = 12 * layers * h * static_cast<double>(sequence_length);
  return static_cast<double>(tokens) * (6 * matmul_weights + attention);
}

}  // namespace dstune::opt
