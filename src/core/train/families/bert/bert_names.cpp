#include "core/train/families/bert/bert_names.hpp"

namespace dstune::bert {

namespace {

using layers::Scope;

constexpr bool kNumbersOnly = false;
constexpr bool kByKeywordOnly = false;  // DeepSpeed's hook behind backward needs a positional input
constexpr int kBefore = -1;

constexpr Scope kBertBlock[] = {
    {"", kProject, kLastNorm},
    {".attention", kProject, kNorm},
    {".attention.self", kProject, kProject},
    {".attention.output", kOut, kNorm},
    {".intermediate", kInner, kInner},
    {".output", kOuter, kLastNorm},
};
constexpr Scope kDistilbertBlock[] = {
    {"", kProject, kLastNorm},
    {".attention", kProject, kOut},
    {".ffn", kInner, kOuter},
};

constexpr Scope kBertMasked[] = {
    {"cls", kTransform, kDecode},
    {"cls.predictions", kTransform, kDecode},
    {"cls.predictions.transform", kTransform, kTransformNorm},
};
constexpr Scope kRobertaMasked[] = {{"lm_head", kTransform, kDecode}};

// The pooler is inside of BertModel.
constexpr Scope kBertClassifier[] = {
    {"bert", kBefore, kActivate, kNumbersOnly},
    {"bert.pooler", kPool, kActivate},
};
constexpr Scope kRobertaClassifier[] = {{"classifier", kPool, kClassify}};

constexpr Scope kBertForMaskedLm[] = {
    {"", kEmbed, kHead, kNumbersOnly},
    {"bert", kEmbed, kEncode, kNumbersOnly},
    {"bert.embeddings", kEmbed, kEmbed, kNumbersOnly},
    {"bert.encoder", kEncode, kEncode},
};
constexpr Scope kBertForClassification[] = {
    {"", kEmbed, kHead, kNumbersOnly},
    {"bert", kEmbed, kInsideHead, kNumbersOnly},
    {"bert.embeddings", kEmbed, kEmbed, kNumbersOnly},
    {"bert.encoder", kEncode, kEncode},
};
constexpr Scope kRobertaModel[] = {
    {"", kEmbed, kHead, kNumbersOnly},
    {"roberta", kEmbed, kEncode, kNumbersOnly},
    {"roberta.embeddings", kEmbed, kEmbed, kNumbersOnly},
    {"roberta.encoder", kEncode, kEncode},
};
constexpr Scope kDistilbertModel[] = {
    {"", kEmbed, kHead, kNumbersOnly},
    {"distilbert", kEmbed, kEncode, kNumbersOnly},
    {"distilbert.embeddings", kEmbed, kEmbed, kNumbersOnly},
    {"distilbert.transformer", kEncode, kEncode, kByKeywordOnly},
};

constexpr BlockNames block_of_bert(std::string_view stem) {
  return {
      .stem = stem,
      .query_key_value = {".attention.self.query", ".attention.self.key", ".attention.self.value"},
      .out = ".attention.output.dense",
      .out_dropout = ".attention.output.dropout",
      .norm = ".attention.output.LayerNorm",
      .inner = ".intermediate.dense",
      .activation = ".intermediate.intermediate_act_fn",
      .outer = ".output.dense",
      .dropout = ".output.dropout",
      .last_norm = ".output.LayerNorm",
      .scopes = kBertBlock};
}

constexpr Names kBert{.embeddings = "bert.embeddings",
                      .block = block_of_bert("bert.encoder.layer."),
                      .masked = {.dense = "cls.predictions.transform.dense",
                                 .activation = "cls.predictions.transform.transform_act_fn",
                                 .norm = "cls.predictions.transform.LayerNorm",
                                 .decoder = "cls.predictions.decoder",
                                 .bias = "cls.predictions.bias",
                                 .loss = "",
                                 .scopes = kBertMasked},
                      .classifier = {.input_dropout = "",
                                     .dense = "bert.pooler.dense",
                                     .activation = "bert.pooler.activation",
                                     .dropout = "dropout",
                                     .out = "classifier",
                                     .scopes = kBertClassifier},
                      .of_masked_lm = kBertForMaskedLm,
                      .of_classification = kBertForClassification};

constexpr Names kRoberta{.embeddings = "roberta.embeddings",
                         .block = block_of_bert("roberta.encoder.layer."),
                         .masked = {.dense = "lm_head.dense",
                                    .activation = "",
                                    .norm = "lm_head.layer_norm",
                                    .decoder = "lm_head.decoder",
                                    .bias = "lm_head.bias",
                                    .loss = "",
                                    .scopes = kRobertaMasked},
                         .classifier = {.input_dropout = "classifier.dropout",
                                        .dense = "classifier.dense",
                                        .activation = "",
                                        .dropout = "classifier.dropout",
                                        .out = "classifier.out_proj",
                                        .scopes = kRobertaClassifier},
                         .of_masked_lm = kRobertaModel,
                         .of_classification = kRobertaModel};

constexpr Names kDistilbert{
    .embeddings = "distilbert.embeddings",
    .block = {.stem = "distilbert.transformer.layer.",
              .query_key_value = {".attention.q_lin", ".attention.k_lin", ".attention.v_lin"},
              .out = ".attention.out_lin",
              .out_dropout = "",
              .norm = ".sa_layer_norm",
              .inner = ".ffn.lin1",
              .activation = ".ffn.activation",
              .outer = ".ffn.lin2",
              .dropout = ".ffn.dropout",
              .last_norm = ".output_layer_norm",
              .scopes = kDistilbertBlock},
    .masked = {.dense = "vocab_transform",
               .activation = "activation",
               .norm = "vocab_layer_norm",
               .decoder = "vocab_projector",
               .bias = "vocab_projector.bias",
               .loss = "mlm_loss_fct",
               .scopes = {}},
    .classifier = {.input_dropout = "",
                   .dense = "pre_classifier",
                   .activation = "",
                   .dropout = "dropout",
                   .out = "classifier",
                   .scopes = {}},
    .of_masked_lm = kDistilbertModel,
    .of_classification = kDistilbertModel};

}  // namespace

const Names& names_of(Variant kin) {
  switch (kin) {
    case Variant::roberta:
      return kRoberta;
    case Variant::distilbert:
      return kDistilbert;
    default:
      return kBert;
  }
}

}  // namespace dstune::bert
