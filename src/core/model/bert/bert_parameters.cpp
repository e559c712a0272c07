#include <string>

#include "core/base/text.hpp"
#include "core/model/bert/bert.hpp"
#include "core/model/bert/bert_parts.hpp"

namespace dstune::bert {

namespace {

// RoBERTa's table of positions is registered last, and begins with rows for padding.
void add_embeddings(Parts& parts, const std::string& body, const std::string& prefix,
                    std::size_t parent) {
  const ModelSpec& spec = parts.spec();
  const std::int64_t positions = spec.max_positions + first_position(spec);
  const bool positions_last = kin_of(spec) == Variant::roberta;
  const std::string name = body + ".embeddings";
  const std::size_t module = parts.module_of_numbers(name, prefix + "Embeddings", parent);
  parts.embedding(name + ".word_embeddings", module, spec.vocab_size);
  if (!positions_last) parts.embedding(name + ".position_embeddings", module, positions);
  parts.embedding(name + ".token_type_embeddings", module, parts.settings().type_vocab_size);
  parts.norm(name + ".LayerNorm", module);
  parts.dropout(name + ".dropout", module);
  if (positions_last) parts.embedding(name + ".position_embeddings", module, positions);
}

void add_layer(Parts& parts, const std::string& name, const std::string& prefix,
               std::size_t parent) {
  const std::int64_t h = parts.spec().hidden_size;
  const std::int64_t f = parts.spec().inner_size;
  const std::size_t layer = parts.module(name, prefix + "Layer", parent);
  const std::string outside = name + ".attention";
  const std::size_t attention = parts.module(outside, prefix + "Attention", layer);
  const std::string inside = outside + ".self";
  const std::size_t self = parts.module(inside, prefix + "SelfAttention", attention);
  for (const char* each : {".query", ".key", ".value"}) parts.square(inside + each, self);
  parts.output(outside + ".output", prefix + "SelfOutput", attention, h);
  const std::string inner = name + ".intermediate";
  const std::size_t intermediate = parts.module(inner, prefix + "Intermediate", layer);
  parts.linear(inner + ".dense", intermediate, h, f);
  parts.activation(inner + ".intermediate_act_fn", intermediate);
  parts.output(name + ".output", prefix + "Output", layer, f);
}

std::size_t add_body(Parts& parts, const std::string& body, const std::string& prefix,
                     std::size_t root) {
  const std::size_t module = parts.module_of_numbers(body, prefix + "Model", root);
  add_embeddings(parts, body, prefix, module);
  const std::string encoder = body + ".encoder";
  const std::size_t layers = parts.module(encoder, prefix + "Encoder", module);
  for (std::int64_t i = 0; i < parts.spec().num_layers; ++i) {
    add_layer(parts, concat(encoder, ".layer.", i), prefix, layers);
  }
  return module;
}

void add_decoder(Parts& parts, const std::string& name, std::size_t owner, std::size_t bias) {
  const std::size_t decoder = parts.module(name, "Linear", owner);
  parts.share_word_embedding(decoder);
  parts.share(decoder, bias);
}

std::size_t add_root(Parts& parts, const std::string& prefix) {
  const bool masked = parts.spec().task == Task::masked_lm;
  return parts.module_of_numbers(
      "", prefix + (masked ? "ForMaskedLM" : "ForSequenceClassification"), 0);
}

void add_bert_masked_lm(Parts& parts, std::size_t root) {
  const std::size_t cls = parts.module("cls", "BertOnlyMLMHead", root);
  const std::string name = "cls.predictions";
  const std::size_t head = parts.module(name, "BertLMPredictionHead", cls);
  const std::size_t bias = parts.word_bias(head);
  const std::string inner = name + ".transform";
  const std::size_t transform = parts.module(inner, "BertPredictionHeadTransform", head);
  parts.square(inner + ".dense", transform);
  parts.activation(inner + ".transform_act_fn", transform);
  parts.norm(inner + ".LayerNorm", transform);
  add_decoder(parts, name + ".decoder", head, bias);
}

void add_bert_classifier(Parts& parts, std::size_t root, std::size_t body) {
  const std::size_t pooler = parts.module("bert.pooler", "BertPooler", body);
  parts.square("bert.pooler.dense", pooler);
  parts.module("bert.pooler.activation", "Tanh", pooler);
  parts.dropout("dropout", root);
  parts.classifier("classifier", root);
}

void add_roberta_masked_lm(Parts& parts, std::size_t root) {
  const std::size_t head = parts.module("lm_head", "RobertaLMHead", root);
  const std::size_t bias = parts.word_bias(head);
  parts.square("lm_head.dense", head);
  parts.norm("lm_head.layer_norm", head);
  add_decoder(parts, "lm_head.decoder", head, bias);
}

void add_roberta_classifier(Parts& parts, std::size_t root) {
  const std::size_t head = parts.module("classifier", "RobertaClassificationHead", root);
  parts.square("classifier.dense", head);
  parts.dropout("classifier.dropout", head);
  parts.classifier("classifier.out_proj", head);
}

}  // namespace

ModelParameters bert_parameters(const ModelSpec& spec) {
  Parts parts(spec);
  const std::size_t root = add_root(parts, "Bert");
  const std::size_t body = add_body(parts, "bert", "Bert", root);
  if (spec.task == Task::masked_lm) {
    add_bert_masked_lm(parts, root);
  } else {
    add_bert_classifier(parts, root, body);
  }
  return parts.take();
}

ModelParameters roberta_parameters(const ModelSpec& spec) {
  Parts parts(spec);
  const std::size_t root = add_root(parts, "Roberta");
  add_body(parts, "roberta", "Roberta", root);
  if (spec.task == Task::masked_lm) {
    add_roberta_masked_lm(parts, root);
  } else {
    add_roberta_classifier(parts, root);
  }
  return parts.take();
}

ModelParameters parameters(const ModelSpec& spec) {
  switch (kin_of(spec)) {
    case Variant::roberta:
      return roberta_parameters(spec);
    case Variant::distilbert:
      return distilbert_parameters(spec);
    default:
      return bert_parameters(spec);
  }
}

}  // namespace dstune::bert
