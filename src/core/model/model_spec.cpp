#include "core/model/model_spec.hpp"

#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include <boost/json/value_to.hpp>

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace dstune {

json::object to_json(const ModelSpec& spec) {
  return {{"model_type", "gpt2"},
          {"name", spec.name},
          {"vocab_size", spec.vocab_size},
          {"n_positions", spec.max_positions},
          {"n_embd", spec.hidden_size},
          {"n_layer", spec.num_layers},
          {"n_head", spec.num_heads},
          {"n_inner", spec.inner_size},
          {"layer_norm_epsilon", spec.layer_norm_epsilon},
          {"initializer_range", spec.initializer_range},
          {"embd_pdrop", spec.embedding_dropout},
          {"attn_pdrop", spec.attention_dropout},
          {"resid_pdrop", spec.residual_dropout}};
}

ModelSpec model_spec_from_json(const json::object& object) {
  try {
    ModelSpec spec;
    const auto integer = [&](const char* key) { return object.at(key).to_number<std::int64_t>(); };
    const auto real = [&](const char* key) { return object.at(key).to_number<double>(); };
    spec.name = json::value_to<std::string>(object.at("name"));
    spec.vocab_size = integer("vocab_size");
    spec.max_positions = integer("n_positions");
    spec.hidden_size = integer("n_embd");
    spec.num_layers = integer("n_layer");
    spec.num_heads = integer("n_head");
    spec.inner_size = integer("n_inner");
    spec.layer_norm_epsilon = real("layer_norm_epsilon");
    spec.initializer_range = real("initializer_range");
    spec.embedding_dropout = real("embd_pdrop");
    spec.attention_dropout = real("attn_pdrop");
    spec.residual_dropout = real("resid_pdrop");
    return spec;
  } catch (const std::exception& fault) {
    throw std::invalid_argument(concat("model_spec_from_json: ", fault.what()));
  }
}

std::int64_t ParameterSpec::numel() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t ModelParameters::total() const {
  std::int64_t sum = 0;
  for (const auto& tensor : tensors) sum += tensor.numel();
  return sum;
}

std::size_t ModelParameters::end_of(std::size_t module) const {
  std::size_t end = module + 1;
  while (end < modules.size() && modules[end].parent >= module) ++end;
  return end;
}

std::vector<std::size_t> ModelParameters::tensors_within(std::size_t module) const {
  std::set<std::size_t> all;
  for (std::size_t inner = module; inner < end_of(module); ++inner) {
    all.insert(modules[inner].parameters.begin(), modules[inner].parameters.end());
  }
  return {all.begin(), all.end()};
}

namespace {

class Builder {
 public:
  std::size_t add(std::string name, std::string class_name, std::size_t parent) {
    result.modules.push_back({std::move(name), std::move(class_name), parent, {}, true});
    return result.modules.size() - 1;
  }

  // A weight with a bias (or a LayerNorm, whose weight is one-dimensional).
  void add(const std::string& name, std::string class_name, std::size_t parent,
           std::vector<std::int64_t> weight_shape, std::int64_t bias_size) {
    const bool decay = weight_shape.size() > 1;
    auto& parameters = result.modules[add(name, std::move(class_name), parent)].parameters;
    parameters.push_back(add_tensor(name + ".weight", std::move(weight_shape), decay));
    if (bias_size > 0) parameters.push_back(add_tensor(name + ".bias", {bias_size}, false));
  }

  void add_block(const ModelSpec& spec, const std::string& name, std::size_t parent) {
    const std::int64_t h = spec.hidden_size;
    const std::int64_t f = spec.inner_size;
    const std::size_t block = add(name, "GPT2Block", parent);
    add(name + ".ln_1", "LayerNorm", block, {h}, h);
    const std::size_t attention = add(name + ".attn", "GPT2Attention", block);
    add(name + ".attn.c_attn", "Conv1D", attention, {h, 3 * h}, 3 * h);
    add(name + ".attn.c_proj", "Conv1D", attention, {h, h}, h);
    add(name + ".attn.resid_dropout", "Dropout", attention);
    add(name + ".ln_2", "LayerNorm", block, {h}, h);
    const std::size_t mlp = add(name + ".mlp", "GPT2MLP", block);
    add(name + ".mlp.c_fc", "Conv1D", mlp, {h, f}, f);
    add(name + ".mlp.c_proj", "Conv1D", mlp, {f, h}, h);
    add(name + ".mlp.act", "NewGELUActivation", mlp);
    add(name + ".mlp.dropout", "Dropout", mlp);
  }

  ModelParameters result;

 private:
  std::size_t add_tensor(std::string name, std::vector<std::int64_t> shape, bool decay) {
    result.tensors.push_back({std::move(name), std::move(shape), decay});
    return result.tensors.size() - 1;
  }
};

}  // namespace

ModelParameters make_model_parameters(const ModelSpec& spec) {
  const std::int64_t h = spec.hidden_size;
  Builder builder;
  const std::size_t root = builder.add("", "GPT2LMHeadModel", 0);
  const std::size_t body = builder.add("transformer", "GPT2Model", root);
  builder.add("transformer.wte", "Embedding", body, {spec.vocab_size, h}, 0);
  builder.add("transformer.wpe", "Embedding", body, {spec.max_positions, h}, 0);
  for (auto& module : builder.result.modules) module.input_has_gradient = false;
  builder.add("transformer.drop", "Dropout", body);
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    builder.add_block(spec, concat("transformer.h.", layer), body);
  }
  builder.add("transformer.ln_f", "LayerNorm", body, {h}, h);
  const std::size_t head = builder.add("lm_head", "Linear", root);
  builder.result.modules[head].parameters = {0};
  return std::move(builder.result);
}

double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length) {
  const auto h = static_cast<double>(spec.hidden_size);
  const auto f = static_cast<double>(spec.inner_size);
  const auto layers = static_cast<double>(spec.num_layers);
  const double matmul_weights =
      layers * (4 * h * h + 2 * h * f) + static_cast<double>(spec.vocab_size) * h;
  const double attention = 12 * layers * h * static_cast<double>(sequence_length);
  return static_cast<double>(tokens) * (6 * matmul_weights + attention);
}

}  // namespace dstune
