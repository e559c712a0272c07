#include <string>

#include "core/base/text.hpp"
#include "core/model/bert/bert.hpp"
#include "core/model/bert/bert_parts.hpp"

namespace dstune::bert {

namespace {

void add_embeddings(Parts& parts, const std::string& name, std::size_t parent) {
  const std::size_t module = parts.module_of_numbers(name, "Embeddings", parent);
  parts.embedding(name + ".word_embeddings", module, parts.spec().vocab_size);
  parts.embedding(name + ".position_embeddings", module, parts.spec().max_positions);
  parts.norm(name + ".LayerNorm", module);
  parts.dropout(name + ".dropout", module);
}

void add_layer(Parts& parts, const std::string& name, std::size_t parent) {
  const std::int64_t h = parts.spec().hidden_size;
  const std::int64_t f = parts.spec().inner_size;
  const std::size_t layer = parts.module(name, "TransformerBlock", parent);
  const std::string self = name + ".attention";
  const std::size_t attention = parts.module(self, "DistilBertSelfAttention", layer);
  for (const char* each : {".q_lin", ".k_lin", ".v_lin", ".out_lin"}) {
    parts.square(self + each, attention);
  }
  parts.norm(name + ".sa_layer_norm", layer);
  const std::size_t ffn = parts.module(name + ".ffn", "FFN", layer);
  parts.dropout(name + ".ffn.dropout", ffn);
  parts.linear(name + ".ffn.lin1", ffn, h, f);
  parts.linear(name + ".ffn.lin2", ffn, f, h);
  parts.activation(name + ".ffn.activation", ffn);
  parts.norm(name + ".output_layer_norm", layer);
}

void add_body(Parts& parts, std::size_t root) {
  const std::size_t body = parts.module_of_numbers("distilbert", "DistilBertModel", root);
  add_embeddings(parts, "distilbert.embeddings", body);
  // All its inputs are keyword arguments.
  const std::size_t layers = parts.module_of_numbers("distilbert.transformer", "Transformer", body);
  for (std::int64_t i = 0; i < parts.spec().num_layers; ++i) {
    add_layer(parts, concat("distilbert.transformer.layer.", i), layers);
  }
}

void add_masked_lm(Parts& parts) {
  const std::size_t root = parts.module_of_numbers("", "DistilBertForMaskedLM", 0);
  parts.activation("activation", root);
  add_body(parts, root);
  parts.square("vocab_transform", root);
  parts.norm("vocab_layer_norm", root);
  const std::size_t decoder = parts.module("vocab_projector", "Linear", root);
  parts.share_word_embedding(decoder);
  parts.word_bias(decoder);
  parts.module("mlm_loss_fct", "CrossEntropyLoss", root);
}

void add_classification(Parts& parts) {
  const std::size_t root = parts.module_of_numbers("", "DistilBertForSequenceClassification", 0);
  add_body(parts, root);
  parts.square("pre_classifier", root);
  parts.classifier("classifier", root);
  parts.dropout("dropout", root);
}

}  // namespace

ModelParameters distilbert_parameters(const ModelSpec& spec) {
  Parts parts(spec);
  if (spec.task == Task::masked_lm) {
    add_masked_lm(parts);
  } else {
    add_classification(parts);
  }
  return parts.take();
}

}  // namespace dstune::bert
