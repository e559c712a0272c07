#include "core/model/llama/llama_kin.hpp"

#include <array>

#include "core/model/activation_names.hpp"
#include "core/model/config_keys.hpp"
#include "core/model/labels.hpp"

namespace dstune::llama {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the tables read like documents

constexpr KeyRule kCommon[] = {
    integer("vocab_size", 1, kMostTokens),
    integer("max_position_embeddings", 2, kMostTokens),
    integer("hidden_size", 1, kWidest),
    integer("intermediate_size", 1, 10 * kWidest),
    integer("num_hidden_layers", 1, kDeepest),
    integer("num_attention_heads", 1, kWidest),
    integer("num_key_value_heads", 1, kWidest).or_null(),
    integer("head_dim", 2, kWidest).must_be_even().or_null(),
    choice("hidden_act", kActivationNames).because(kOtherActivations),
    above("rms_norm_eps", 0),
    at_least("initializer_range", 0),
    fraction_below_one("attention_dropout").or_null(),
    boolean("tie_word_embeddings"),
    above("rope_theta", 1).or_null(),
    object("rope_scaling").or_null(),
    object("rope_parameters").or_null(),
};
constexpr KeyRule kOfLlama[] = {
    boolean("attention_bias"),
    boolean("mlp_bias"),
};
constexpr KeyRule kOfMistral[] = {
    integer("sliding_window", 1, kMostTokens).or_null(),
};
constexpr KeyRule kOfQwen2[] = {
    boolean("use_sliding_window"),
    integer("sliding_window", 1, kMostTokens).or_null(),
    integer("max_window_layers", 0),
    texts("layer_types", "full_attention|sliding_attention").or_null(),
};
constexpr KeyRule kOfQwen3[] = {
    boolean("attention_bias"),
};

constexpr KeyRule kOfGemma[] = {
    boolean("attention_bias"),
    only("use_bidirectional_attention", false).or_null(),
};
constexpr KeyRule kOfGemma2[] = {
    integer("sliding_window", 1, kMostTokens),
    texts("layer_types", "full_attention|sliding_attention").or_null(),
    above("query_pre_attn_scalar", 0),
    choice("hidden_activation", kActivationNames).because(kOtherActivations),
    above("attn_logit_softcapping", 0).or_null(),
    above("final_logit_softcapping", 0).or_null(),
};
constexpr KeyRule kOfGemma3[] = {
    integer("sliding_window_pattern", 1, kDeepest),
    above("rope_local_base_freq", 1).or_null(),
};

constexpr KeyRule kOfPhi3[] = {
    integer("sliding_window", 1, kMostTokens).or_null(),
    fraction_below_one("resid_pdrop"),
    above("partial_rotary_factor", 0),
    integer("original_max_position_embeddings", 2, kMostTokens),
    only("attention_bias", false),
    only("mlp_bias", false),
    only("lm_head_bias", false),
};

constexpr std::int64_t kMostExperts = 2000;
constexpr std::int64_t kMostWideExperts = 250;  // of intermediate_size

constexpr KeyRule kOfExperts[] = {
    integer("num_experts_per_tok", 1, kMostExperts),
    boolean("output_router_logits"),
    at_least("router_aux_loss_coef", 0),
};
constexpr KeyRule kOfMixtral[] = {
    integer("num_local_experts", 1, kMostWideExperts).also("num_experts"),
    within("router_jitter_noise", 0, 0).because("; noise on what the router reads is not modelled"),
};
constexpr KeyRule kOfQwenMoe[] = {
    integer("num_experts", 0, kMostExperts).also("num_local_experts"),
    integer("moe_intermediate_size", 1, kWidest),
    integer("decoder_sparse_step", 1, kDeepest),
    list("mlp_only_layers").or_null(),
    boolean("norm_topk_prob"),
};
constexpr KeyRule kOfQwen2Moe[] = {
    integer("shared_expert_intermediate_size", 1, kWidest),
    boolean("qkv_bias"),
};

constexpr auto kBase = extended(std::to_array(kCommon), kLabelRules);
constexpr auto kLlamaRules = extended(kBase, kOfLlama);
constexpr auto kMistralRules = extended(kBase, kOfMistral);
constexpr auto kQwen2Rules = extended(kBase, kOfQwen2);
constexpr auto kQwen3Rules = extended(kQwen2Rules, kOfQwen3);
constexpr auto kGemmaRules = extended(kBase, kOfGemma);
constexpr auto kGemma2Rules = extended(kGemmaRules, kOfGemma2);
constexpr auto kGemma3Rules = extended(kGemma2Rules, kOfGemma3);
constexpr auto kPhi3Rules = extended(kBase, kOfPhi3);

constexpr auto kMixtralRules = extended(extended(kMistralRules, kOfExperts), kOfMixtral);
constexpr auto kQwenMoeRules = extended(extended(kQwen2Rules, kOfExperts), kOfQwenMoe);
constexpr auto kQwen2MoeRules = extended(kQwenMoeRules, kOfQwen2Moe);
constexpr auto kQwen3MoeRules = extended(kQwenMoeRules, kOfQwen3);

constexpr std::int64_t kWindow = 4096;

constexpr Description kDescriptions[] = {
    {.model_type = "llama",
     .title = "Llama",
     .prefix = "Llama",
     .section = {.rules = kLlamaRules, .other_keys = true},
     .defaults = {32000, 4096, 11008, 32, 32, 0, 0, 2048, 0}},
    {.model_type = "mistral",
     .title = "Mistral",
     .prefix = "Mistral",
     .section = {.rules = kMistralRules, .other_keys = true},
     .defaults = {32000, 4096, 14336, 32, 32, 8, 0, 131072, kWindow},
     .windows = Windows::all},
    {.model_type = "qwen2",
     .title = "Qwen2",
     .prefix = "Qwen2",
     .section = {.rules = kQwen2Rules, .other_keys = true},
     .defaults = {151936, 4096, 22016, 32, 32, 32, 0, 32768, kWindow},
     .always_input_biases = true,
     .windows = Windows::on_request},
    {.model_type = "qwen3",
     .title = "Qwen3",
     .prefix = "Qwen3",
     .section = {.rules = kQwen3Rules, .other_keys = true},
     .defaults = {151936, 4096, 22016, 32, 32, 32, 128, 32768, kWindow},
     .head_norms = true,
     .windows = Windows::on_request},
    {.model_type = "gemma",
     .title = "Gemma",
     .prefix = "Gemma",
     .section = {.rules = kGemmaRules, .other_keys = true},
     .defaults = {256000, 3072, 24576, 28, 16, 16, 256, 8192, 0},
     .is_gemma = true},
    {.model_type = "gemma2",
     .title = "Gemma 2",
     .prefix = "Gemma2",
     .section = {.rules = kGemma2Rules, .other_keys = true},
     .defaults = {256000, 2304, 9216, 26, 8, 4, 256, 8192, kWindow},
     .windows = Windows::alternating,
     .window_pattern = 2,
     .is_gemma = true,
     .post_norms = true,
     .scales_by_scalar = true,
     .score_cap = 50,
     .logit_cap = 30},
    {.model_type = "gemma3_text",
     .title = "Gemma 3",
     .prefix = "Gemma3",
     .body = "TextModel",
     .section = {.rules = kGemma3Rules, .other_keys = true},
     .defaults = {262208, 2304, 9216, 26, 8, 4, 256, 131072, kWindow},
     .head_norms = true,
     .windows = Windows::alternating,
     .window_pattern = 6,
     .is_gemma = true,
     .post_norms = true,
     .scales_by_scalar = true,
     .has_windowed_rope = true},
    {.model_type = "phi3",
     .title = "Phi-3",
     .prefix = "Phi3",
     .section = {.rules = kPhi3Rules, .other_keys = true},
     .defaults = {32064, 3072, 8192, 32, 32, 0, 0, 4096, 0},
     .windows = Windows::all,
     .is_phi = true,
     .epsilon = 1e-5},
    {.model_type = "mixtral",
     .title = "Mixtral",
     .prefix = "Mixtral",
     .section = {.rules = kMixtralRules, .other_keys = true},
     .defaults = {32000, 4096, 14336, 32, 32, 8, 0, 131072, 0},
     .windows = Windows::all,
     .has_experts = true,
     .theta = 1e6,
     .epsilon = 1e-5,
     .kin = Kin::mixtral},
    {.model_type = "qwen2_moe",
     .title = "Qwen2-MoE",
     .prefix = "Qwen2Moe",
     .section = {.rules = kQwen2MoeRules, .other_keys = true},
     .defaults = {151936, 2048, 5632, 24, 16, 16, 0, 32768, kWindow},
     .windows = Windows::every_other,
     .has_experts = true,
     .kin = Kin::qwen2_moe},
    {.model_type = "qwen3_moe",
     .title = "Qwen3-MoE",
     .prefix = "Qwen3Moe",
     .section = {.rules = kQwen3MoeRules, .other_keys = true},
     .defaults = {151936, 2048, 6144, 24, 32, 4, 0, 32768, kWindow},
     .head_norms = true,
     .windows = Windows::all_on_request,
     .has_experts = true,
     .kin = Kin::qwen3_moe},
};

}  // namespace

const Description& description_of(Kin kin) { return kDescriptions[static_cast<std::size_t>(kin)]; }

std::string_view model_type_of(Kin kin) { return description_of(kin).model_type; }

}  // namespace dstune::llama
