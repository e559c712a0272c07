#include <cmath>

#include "core/base/text.hpp"
#include "core/model/activation_names.hpp"
#include "core/model/gpt2/gpt2.hpp"
#include "core/model/labels.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune::gpt2 {

namespace {

double residual_stddev(const ModelSpec& spec) {
  return spec.initializer_range / std::sqrt(2.0 * static_cast<double>(spec.num_layers));
}

void add_block(ModelBuilder& builder, const ModelSpec& spec, std::string_view activation,
               const std::string& name, std::size_t parent) {
  const std::int64_t h = spec.hidden_size;
  const std::int64_t f = spec.inner_size;
  const double stddev = spec.initializer_range;
  const std::size_t block = builder.add_module(name, "GPT2Block", parent);
  builder.add_layer_norm(name + ".ln_1", block, h);
  const std::size_t attention = builder.add_module(name + ".attn", "GPT2Attention", block);
  builder.add_linear(name + ".attn.c_attn", "Conv1D", attention, {h, 3 * h}, 3 * h, stddev);
  builder.add_linear(name + ".attn.c_proj", "Conv1D", attention, {h, h}, h, residual_stddev(spec));
  builder.add_module(name + ".attn.resid_dropout", "Dropout", attention);
  builder.add_layer_norm(name + ".ln_2", block, h);
  const std::size_t mlp = builder.add_module(name + ".mlp", "GPT2MLP", block);
  builder.add_linear(name + ".mlp.c_fc", "Conv1D", mlp, {h, f}, f, stddev);
  builder.add_linear(name + ".mlp.c_proj", "Conv1D", mlp, {f, h}, h, residual_stddev(spec));
  builder.add_module(name + ".mlp.act", std::string(activation), mlp);
  builder.add_module(name + ".mlp.dropout", "Dropout", mlp);
}

}  // namespace

ModelParameters parameters(const ModelSpec& spec) {
  const std::int64_t h = spec.hidden_size;
  const double stddev = spec.initializer_range;
  const Gpt2Settings settings = settings_of(spec);
  const bool classifies = spec.task == Task::sequence_classification;
  ModelBuilder builder;
  const std::size_t root =
      builder.add_module("", classifies ? "GPT2ForSequenceClassification" : "GPT2LMHeadModel", 0);
  const std::size_t body = builder.add_module("transformer", "GPT2Model", root);
  builder.takes_numbers_only(root);
  builder.takes_numbers_only(body);
  builder.add_embedding("transformer.wte", body, spec.vocab_size, h, stddev);
  builder.add_embedding("transformer.wpe", body, spec.max_positions, h, stddev);
  builder.add_module("transformer.drop", "Dropout", body);
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    add_block(builder, spec, activation_class(settings.activation), concat("transformer.h.", layer),
              body);
  }
  builder.add_layer_norm("transformer.ln_f", body, h);
  if (classifies) {
    add_nn_linear(builder, "score", root, h, label_count(spec), false, stddev);
  } else if (settings.tied) {
    constexpr std::size_t kWte = 0;
    builder.tie(builder.add_module("lm_head", "Linear", root), kWte);
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

}  // namespace dstune::gpt2
