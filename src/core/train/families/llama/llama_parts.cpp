#include "core/train/families/llama/llama_parts.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "core/train/nn/attention/attention.hpp"
#include "core/train/nn/elementwise.hpp"
#include "core/train/nn/linear.hpp"
#include "core/train/nn/norm.hpp"
#include "core/train/nn/views.hpp"

namespace dstune::llama {
namespace {

std::optional<nn::RmsNorm> norm_if_any(const ModelSpec& spec, const LlamaSettings& settings,
                                       const ModelNames& names, const std::string& name) {
  if (!names.find_module(name)) return std::nullopt;
  return nn::RmsNorm(names, name, spec.layer_norm_epsilon, settings.is_gemma ? 1 : 0);
}

/// LlamaAttention, and the attention of its kin, which gets its input by keyword.
class LlamaAttention final : public AttentionPart {
 public:
  LlamaAttention(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
                 const std::string& name)
      : norms_come_late_(settings.is_gemma),
        module_(names.module(name)),
        q_proj_(names, name + ".q_proj"),
        k_proj_(names, name + ".k_proj"),
        v_proj_(names, name + ".v_proj"),
        o_proj_(names, name + ".o_proj"),
        q_norm_(norm_if_any(spec, settings, names, name + ".q_norm")),
        k_norm_(norm_if_any(spec, settings, names, name + ".k_norm")) {}

  Value operator()(Tape& on, const Value& x, const LayerContext& context) const override {
    return run_module(on, module_, [&] { return forward(on, x, context); });
  }

 private:
  Value forward(Tape& on, const Value& x, const LayerContext& context) const;

  bool norms_come_late_;  // q's and k's norms run behind all three projections
  std::size_t module_;
  nn::Linear q_proj_, k_proj_, v_proj_, o_proj_;
  std::optional<nn::RmsNorm> q_norm_, k_norm_;
};

Value LlamaAttention::forward(Tape& on, const Value& x, const LayerContext& context) const {
  const auto normed = [&](const std::optional<nn::RmsNorm>& norm, Value heads) {
    return norm ? (*norm)(on, std::move(heads)) : heads;
  };
  Value q = q_proj_(on, x);
  if (!norms_come_late_) q = normed(q_norm_, std::move(q));
  Value k = k_proj_(on, x);
  if (!norms_come_late_) k = normed(k_norm_, std::move(k));
  const Value v = v_proj_(on, x);
  if (norms_come_late_) {
    q = normed(q_norm_, std::move(q));
    k = normed(k_norm_, std::move(k));
  }
  q = (*context.rotary)(on, q, context.shape.heads);
  k = (*context.rotary)(on, k, context.shape.kv_heads);
  return o_proj_(on, nn::attend(on, nn::SoftmaxType::fp32, context.shape, q, k, v, context.mask));
}

/// Phi3Attention: q, k and v are slices of one product.
class Phi3Attention final : public AttentionPart {
 public:
  Phi3Attention(const ModelNames& names, const std::string& name)
      : module_(names.module(name)),
        o_proj_(names, name + ".o_proj"),
        qkv_proj_(names, name + ".qkv_proj") {}

  Value operator()(Tape& on, const Value& x, const LayerContext& context) const override {
    return run_module(on, module_, [&] { return forward(on, x, context); });
  }

 private:
  Value forward(Tape& on, const Value& x, const LayerContext& context) const;

  std::size_t module_;
  nn::Linear o_proj_, qkv_proj_;
};

Value Phi3Attention::forward(Tape& on, const Value& x, const LayerContext& context) const {
  const AttentionShape& shape = context.shape;
  const std::int64_t queries = shape.heads * shape.head_size;
  const std::int64_t keys = shape.kv_heads * shape.head_size;
  const Value qkv = qkv_proj_(on, x);
  Value q = nn::slice(on, qkv, 0, queries);
  Value k = nn::slice(on, qkv, queries, keys);
  const Value v = nn::slice(on, qkv, queries + keys, keys);
  q = (*context.rotary)(on, q, shape.heads);
  k = (*context.rotary)(on, k, shape.kv_heads);
  Value out = nn::attend(on, nn::SoftmaxType::fp32, shape, q, k, v, context.mask);
  // Behind sdpa, contiguous() makes a copy of a result that lies by heads.
  if (on.context().attention == AttentionKind::sdpa) out = nn::copy(on, out);
  return o_proj_(on, out);
}

class LlamaMlp final : public MlpPart {
 public:
  LlamaMlp(const LlamaSettings& settings, const ModelNames& names, const std::string& name)
      : module_(names.module(name)),
        gate_proj_(names, name + ".gate_proj"),
        up_proj_(names, name + ".up_proj"),
        down_proj_(names, name + ".down_proj"),
        act_fn_(names.module(name + ".act_fn"), settings.activation) {}

  Value operator()(Tape& on, Value x, const LayerContext& /*context*/) const override {
    return run_module(on, module_, std::move(x), [&](const Value& in) {
      Value product = act_fn_(on, gate_proj_(on, in));
      product =
          nn::multiply(on, product, up_proj_(on, in));  // its factors are gone before down_proj
      return down_proj_(on, std::move(product));
    });
  }

 private:
  std::size_t module_;
  nn::Linear gate_proj_, up_proj_, down_proj_;
  nn::ActivationFunction act_fn_;
};

/// Phi3MLP: gate and up are halves of one product.
class Phi3Mlp final : public MlpPart {
 public:
  Phi3Mlp(const LlamaSettings& settings, const ModelNames& names, const std::string& name)
      : module_(names.module(name)),
        gate_up_proj_(names, name + ".gate_up_proj"),
        down_proj_(names, name + ".down_proj"),
        activation_fn_(names.module(name + ".activation_fn"), settings.activation),
        saves_result_(saves_result(nn::one_kernel_from(settings.activation))) {}

  // In PyTorch the up half is saved, which keeps the memory of both halves.
  Value operator()(Tape& on, Value x, const LayerContext& /*context*/) const override {
    return run_module(on, module_, std::move(x), [&](const Value& in) {
      std::vector<Value> halves = nn::split(on, gate_up_proj_(on, in), 2, nn::Parts::dense);
      Value up = saves_result_ ? nn::hold(on, halves[1], halves[0]) : halves[1];
      const Value gate = activation_fn_(on, std::move(halves[0]));
      return down_proj_(on, nn::multiply(on, up, gate));
    });
  }

 private:
  std::size_t module_;
  nn::Linear gate_up_proj_, down_proj_;
  nn::ActivationFunction activation_fn_;
  bool saves_result_;
};

/// MixtralSparseMoeBlock, Qwen2MoeSparseMoeBlock and Qwen3MoeSparseMoeBlock.
class MoeBlock final : public MlpPart {
 public:
  MoeBlock(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
           const std::string& name)
      : module_(names.module(name)),
        router_(names, name + ".gate",
                {.chosen = settings.experts.chosen,
                 .normalised = settings.experts.normalised,
                 .weights_in_fp32 = settings.experts.weights_in_fp32,
                 .imbalance = spec.expert_imbalance}),
        experts_(names, name + ".experts", settings.activation) {
    if (settings.experts.shared_size == 0) return;
    shared_.emplace(settings, names, name + ".shared_expert");
    shared_gate_.emplace(names, name + ".shared_expert_gate");
  }

  Value operator()(Tape& on, Value x, const LayerContext& context) const override {
    return run_module(on, module_, std::move(x), [&](const Value& in) {
      Value shared = shared_ ? (*shared_)(on, in, context) : Value();
      const nn::Routes routes = router_(on, in, context.expert_seed);
      if (context.routes != nullptr) {
        context.routes->push_back(
            {.logits = routes.logits, .weights = {}, .experts = routes.experts});
      }
      Value out = experts_(on, in, routes);
      if (!shared_) return out;
      const Value opened = nn::activate(on, Activation::sigmoid, (*shared_gate_)(on, in));
      shared = nn::scale_rows(on, shared, opened);
      return nn::add(on, out, shared);
    });
  }

 private:
  std::size_t module_;
  nn::Router router_;
  nn::Experts experts_;
  std::optional<LlamaMlp> shared_;
  std::optional<nn::Linear> shared_gate_;
};

}  // namespace

std::unique_ptr<AttentionPart> make_attention(const ModelSpec& spec, const LlamaSettings& settings,
                                              const ModelNames& names, const std::string& name) {
  if (settings.is_phi) return std::make_unique<Phi3Attention>(names, name);
  return std::make_unique<LlamaAttention>(spec, settings, names, name);
}

std::unique_ptr<MlpPart> make_mlp(const ModelSpec& spec, const LlamaSettings& settings,
                                  const ModelNames& names, const std::string& name,
                                  std::int64_t layer) {
  if (settings.is_phi) return std::make_unique<Phi3Mlp>(settings, names, name);
  if (settings.experts.in_layer[static_cast<std::size_t>(layer)]) {
    return std::make_unique<MoeBlock>(spec, settings, names, name);
  }
  return std::make_unique<LlamaMlp>(settings, names, name);
}

}  // namespace dstune::llama
