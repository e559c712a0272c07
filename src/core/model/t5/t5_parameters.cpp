#include <cmath>
#include <string>
#include <utility>

#include "core/base/text.hpp"
#include "core/model/activation_names.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/t5/t5.hpp"

namespace dstune::t5 {

namespace {

constexpr std::size_t kShared = 0;

/// T5PreTrainedModel._init_weights says what tensors start with.
class Parts {
 public:
  explicit Parts(const ModelSpec& spec)
      : spec_(spec),
        settings_(settings_of(spec)),
        inner_(spec.num_heads * settings_.head_size),
        prefix_(variant_of(spec) == T5Variant::mt5 ? "MT5" : "T5") {}

  ModelParameters make() {
    const std::size_t root = module("", "ForConditionalGeneration", 0);
    builder_.takes_numbers_only(root);
    add_stack("encoder", root, spec_.num_layers, false);
    add_stack("decoder", root, settings_.decoder_layers, true);
    add_head(root);
    ModelParameters result = builder_.take();
    result.tensors[kShared].name = "shared.weight";
    return result;
  }

 private:
  std::size_t module(std::string name, const char* class_name, std::size_t parent) {
    return builder_.add_module(std::move(name), prefix_ + class_name, parent);
  }
  double stddev(std::int64_t size) const {
    return spec_.initializer_range / std::sqrt(static_cast<double>(size));
  }
  void linear(std::string name, std::size_t parent, std::int64_t in, std::int64_t out,
              double deviation) {
    add_nn_linear(builder_, std::move(name), parent, in, out, false, deviation);
  }
  void norm(std::string name, std::size_t parent) {
    const std::size_t index = module(std::move(name), "LayerNorm", parent);
    builder_.add_tensor(index, "weight", {spec_.hidden_size},
                        {.constant = spec_.initializer_range});
  }
  void dropout(std::string name, std::size_t parent) {
    builder_.add_module(std::move(name), "Dropout", parent);
  }

  void add_stack(const std::string& name, std::size_t root, std::int64_t layers, bool decodes);
  void add_block(const std::string& name, std::size_t stack, bool first, bool decodes);
  void add_attention(const std::string& layer, std::size_t parent, const char* kind, bool biased);
  void add_mlp(const std::string& layer, std::size_t parent);
  void add_head(std::size_t root);

  const ModelSpec& spec_;
  T5Settings settings_;
  std::int64_t inner_;
  std::string prefix_;
  ModelBuilder builder_;
};

void Parts::add_stack(const std::string& name, std::size_t root, std::int64_t layers,
                      bool decodes) {
  const std::size_t stack = module(name, "Stack", root);
  builder_.takes_numbers_only(stack);
  const std::string embedding = name + ".embed_tokens";
  if (decodes) {
    const std::size_t tokens = builder_.add_module(embedding, "Embedding", stack);
    builder_.takes_numbers_only(tokens);
    builder_.tie(tokens, kShared);
  } else {
    builder_.add_embedding(embedding, stack, spec_.vocab_size, spec_.hidden_size,
                           spec_.initializer_range);
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    add_block(concat(name, ".block.", i), stack, i == 0, decodes);
  }
  norm(name + ".final_layer_norm", stack);
  dropout(name + ".dropout", stack);
}

void Parts::add_block(const std::string& name, std::size_t stack, bool first, bool decodes) {
  const std::size_t block = module(name, "Block", stack);
  const std::string self = name + ".layer.0";
  add_attention(self, module(self, "LayerSelfAttention", block), ".SelfAttention", first);
  if (decodes) {
    const std::string cross = name + ".layer.1";
    add_attention(cross, module(cross, "LayerCrossAttention", block), ".EncDecAttention", false);
  }
  const std::string mlp = name + (decodes ? ".layer.2" : ".layer.1");
  add_mlp(mlp, module(mlp, "LayerFF", block));
}

void Parts::add_attention(const std::string& layer, std::size_t parent, const char* kind,
                          bool biased) {
  const std::int64_t h = spec_.hidden_size;
  const std::string name = layer + kind;
  const std::size_t attention = module(name, "Attention", parent);
  linear(name + ".q", attention, h, inner_, stddev(h * settings_.head_size));
  linear(name + ".k", attention, h, inner_, stddev(h));
  linear(name + ".v", attention, h, inner_, stddev(h));
  linear(name + ".o", attention, inner_, h, stddev(inner_));
  if (biased) {
    builder_.add_embedding(name + ".relative_attention_bias", attention, settings_.buckets,
                           spec_.num_heads, stddev(h));
  }
  norm(layer + ".layer_norm", parent);
  dropout(layer + ".dropout", parent);
}

void Parts::add_mlp(const std::string& layer, std::size_t parent) {
  const std::int64_t h = spec_.hidden_size;
  const std::int64_t f = spec_.inner_size;
  const std::string name = layer + ".DenseReluDense";
  const std::size_t mlp =
      module(name, settings_.gated ? "DenseGatedActDense" : "DenseActDense", parent);
  if (settings_.gated) {
    linear(name + ".wi_0", mlp, h, f, stddev(h));
    linear(name + ".wi_1", mlp, h, f, stddev(h));
  } else {
    linear(name + ".wi", mlp, h, f, stddev(h));
  }
  linear(name + ".wo", mlp, f, h, stddev(f));
  dropout(name + ".dropout", mlp);
  builder_.add_module(name + ".act", std::string(activation_class(settings_.activation)), mlp);
  norm(layer + ".layer_norm", parent);
  dropout(layer + ".dropout", parent);
}

void Parts::add_head(std::size_t root) {
  if (!settings_.tied) {
    linear("lm_head", root, spec_.hidden_size, spec_.vocab_size, spec_.initializer_range);
    return;
  }
  builder_.tie(builder_.add_module("lm_head", "Linear", root), kShared);
}

}  // namespace

ModelParameters parameters(const ModelSpec& spec) { return Parts(spec).make(); }

}  // namespace dstune::t5
