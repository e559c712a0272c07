#include <string>

#include "core/base/text.hpp"
#include "core/model/bert/bert_parts.hpp"
#include "core/model/deberta/deberta.hpp"

namespace dstune::deberta {

namespace {

using bert::Parts;

constexpr const char* kBody = "deberta";
constexpr const char* kEncoder = "deberta.encoder";

void add_embeddings(Parts& parts, const DebertaSettings& settings, std::size_t parent) {
  const ModelSpec& spec = parts.spec();
  const std::int64_t e = settings.embedding_size;
  const std::string name = concat(kBody, ".embeddings");
  const std::size_t module = parts.module_of_numbers(name, "DebertaV2Embeddings", parent);
  parts.embedding(name + ".word_embeddings", module, spec.vocab_size, e);
  if (settings.position_biased_input) {
    parts.embedding(name + ".position_embeddings", module, spec.max_positions, e);
  }
  if (settings.common.type_vocab_size > 0) {
    parts.embedding(name + ".token_type_embeddings", module, settings.common.type_vocab_size, e);
  }
  if (e != spec.hidden_size) parts.linear_without_bias(name + ".embed_proj", module, e);
  parts.norm(name + ".LayerNorm", module, spec.hidden_size);
  parts.dropout(name + ".dropout", module);
}

void add_self_attention(Parts& parts, const DebertaSettings& settings, const std::string& name,
                        std::size_t attention) {
  const std::size_t self = parts.module(name, "DisentangledSelfAttention", attention);
  for (const char* each : {".query_proj", ".key_proj", ".value_proj"}) {
    parts.square(name + each, self);
  }
  if (settings.relative_attention) {
    parts.dropout(name + ".pos_dropout", self);
    if (!settings.share_att_key && settings.c2p) parts.square(name + ".pos_key_proj", self);
    if (!settings.share_att_key && settings.p2c) parts.square(name + ".pos_query_proj", self);
  }
  parts.dropout(name + ".dropout", self);
}

void add_layer(Parts& parts, const DebertaSettings& settings, const std::string& name,
               std::size_t parent) {
  const std::int64_t h = parts.spec().hidden_size;
  const std::int64_t f = parts.spec().inner_size;
  const std::size_t layer = parts.module(name, "DebertaV2Layer", parent);
  const std::string outside = name + ".attention";
  const std::size_t attention = parts.module(outside, "DebertaV2Attention", layer);
  add_self_attention(parts, settings, outside + ".self", attention);
  parts.output(outside + ".output", "DebertaV2SelfOutput", attention, h);
  const std::string inner = name + ".intermediate";
  const std::size_t intermediate = parts.module(inner, "DebertaV2Intermediate", layer);
  parts.linear(inner + ".dense", intermediate, h, f);
  parts.activation(inner + ".intermediate_act_fn", intermediate);
  parts.output(name + ".output", "DebertaV2Output", layer, f);
}

void add_convolution(Parts& parts, std::int64_t width, std::size_t encoder) {
  const std::int64_t h = parts.spec().hidden_size;
  const std::string name = concat(kEncoder, ".conv");
  const std::size_t layer = parts.module(name, "ConvLayer", encoder);
  const std::size_t conv = parts.module(name + ".conv", "Conv1d", layer);
  parts.tensor(conv, "weight", {h, h, width});
  parts.zeros(conv, "bias", {h});
  parts.norm(name + ".LayerNorm", layer, h);
  parts.dropout(name + ".dropout", layer);
}

void add_encoder(Parts& parts, const DebertaSettings& settings, std::size_t body) {
  const std::int64_t h = parts.spec().hidden_size;
  const std::size_t encoder = parts.module(kEncoder, "DebertaV2Encoder", body);
  for (std::int64_t i = 0; i < parts.spec().num_layers; ++i) {
    add_layer(parts, settings, concat(kEncoder, ".layer.", i), encoder);
  }
  if (settings.relative_attention) {
    parts.tensor(encoder, "rel_embeddings.weight", {2 * settings.span(), h});
    if (settings.norm_rel_ebd) parts.norm(concat(kEncoder, ".LayerNorm"), encoder, h);
  }
  if (settings.conv_kernel_size > 0) {
    add_convolution(parts, settings.conv_kernel_size, encoder);
  }
}

void add_masked_lm(Parts& parts, const DebertaSettings& settings, std::size_t root) {
  const std::int64_t e = settings.embedding_size;
  const std::size_t cls = parts.module("cls", "LegacyDebertaV2OnlyMLMHead", root);
  const std::string name = "cls.predictions";
  const std::size_t head = parts.module(name, "LegacyDebertaV2LMPredictionHead", cls);
  const std::size_t bias = parts.word_bias(head);
  const std::string inner = name + ".transform";
  const std::size_t transform = parts.module(inner, "LegacyDebertaV2PredictionHeadTransform", head);
  parts.linear(inner + ".dense", transform, parts.spec().hidden_size, e);
  parts.activation(inner + ".transform_act_fn", transform);
  parts.norm(inner + ".LayerNorm", transform, e);
  const std::size_t decoder = parts.module(name + ".decoder", "Linear", head);
  parts.share_word_embedding(decoder);
  parts.share(decoder, bias);
}

void add_classifier(Parts& parts, std::size_t root) {
  const std::size_t pooler = parts.module("pooler", "ContextPooler", root);
  parts.square("pooler.dense", pooler);
  parts.dropout("pooler.dropout", pooler);
  parts.classifier("classifier", root);
  parts.dropout("dropout", root);
}

}  // namespace

ModelParameters parameters(const ModelSpec& spec) {
  const DebertaSettings settings = settings_of(spec);
  const bool is_masked = spec.task == Task::masked_lm;
  Parts parts(spec);
  const std::size_t root = parts.module_of_numbers(
      "", is_masked ? "DebertaV2ForMaskedLM" : "DebertaV2ForSequenceClassification", 0);
  const std::size_t body = parts.module_of_numbers(kBody, "DebertaV2Model", root);
  add_embeddings(parts, settings, body);
  add_encoder(parts, settings, body);
  if (is_masked) {
    add_masked_lm(parts, settings, root);
  } else {
    add_classifier(parts, root);
  }
  return parts.take();
}

}  // namespace dstune::deberta
