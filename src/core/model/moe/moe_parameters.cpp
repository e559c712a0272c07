#include "core/base/text.hpp"
#include "core/model/activation_names.hpp"
#include "core/model/moe/moe.hpp"

namespace dstune::llama {

namespace {

/// Adds the modules of one layer's experts.
class ExpertsBuilder {
 public:
  ExpertsBuilder(ModelBuilder& builder, const ModelSpec& spec, const LlamaSettings& settings)
      : builder_(builder),
        spec_(spec),
        settings_(settings),
        prefix_(description_of(settings.kin).prefix) {}

  void add_router(const std::string& name, std::size_t parent) {
    const std::size_t module = builder_.add_module(name, concat(prefix_, "TopKRouter"), parent);
    add(module, "weight", {settings_.experts.count, spec_.hidden_size});
  }
  void add_fused(const std::string& name, std::size_t parent) {
    const auto& experts = settings_.experts;
    const std::size_t module = builder_.add_module(name, concat(prefix_, "Experts"), parent);
    add(module, "gate_up_proj", {experts.count, 2 * experts.inner_size, spec_.hidden_size});
    add(module, "down_proj", {experts.count, spec_.hidden_size, experts.inner_size});
    add_activation(name, module);
  }
  void add_shared(const std::string& name, std::size_t parent) {
    const std::int64_t inner = settings_.experts.shared_size;
    const std::size_t module = builder_.add_module(name, concat(prefix_, "MLP"), parent);
    add_linear(name + ".gate_proj", module, {inner, spec_.hidden_size});
    add_linear(name + ".up_proj", module, {inner, spec_.hidden_size});
    add_linear(name + ".down_proj", module, {spec_.hidden_size, inner});
    add_activation(name, module);
  }
  void add_linear(const std::string& name, std::size_t parent, std::vector<std::int64_t> shape) {
    add(builder_.add_module(name, "Linear", parent), "weight", std::move(shape));
  }

 private:
  void add(std::size_t module, std::string_view name, std::vector<std::int64_t> shape) {
    builder_.add_tensor(module, name, std::move(shape), {.stddev = spec_.initializer_range});
  }
  void add_activation(const std::string& name, std::size_t parent) {
    builder_.add_module(name + ".act_fn", std::string(activation_class(settings_.activation)),
                        parent);
  }

  ModelBuilder& builder_;
  const ModelSpec& spec_;
  const LlamaSettings& settings_;
  std::string_view prefix_;
};

}  // namespace

void add_experts(ModelBuilder& builder, const ModelSpec& spec, const LlamaSettings& settings,
                 const std::string& name, std::size_t parent) {
  const std::size_t block = builder.add_module(
      name, concat(description_of(settings.kin).prefix, "SparseMoeBlock"), parent);
  ExpertsBuilder parts(builder, spec, settings);
  const bool experts_first = settings.experts.experts_first;
  if (experts_first) parts.add_fused(name + ".experts", block);
  parts.add_router(name + ".gate", block);
  if (!experts_first) parts.add_fused(name + ".experts", block);
  if (settings.experts.shared_size == 0) return;
  parts.add_shared(name + ".shared_expert", block);
  parts.add_linear(name + ".shared_expert_gate", block, {1, spec.hidden_size});
}

double active_mlp_weights(const ModelSpec& spec, const LlamaSettings& settings,
                          std::int64_t layer) {
  const auto h = static_cast<double>(spec.hidden_size);
  const ExpertSettings& experts = settings.experts;
  if (!experts.in_layer[static_cast<std::size_t>(layer)]) {
    return 3 * h * static_cast<double>(spec.inner_size);
  }
  const double of_experts =
      3 * h * static_cast<double>(experts.chosen * experts.inner_size + experts.shared_size);
  const double of_gate = experts.shared_size > 0 ? h : 0;
  return of_experts + of_gate + h * static_cast<double>(experts.count);
}

}  // namespace dstune::llama
