#include "core/train/families/deberta/deberta_names.hpp"

namespace dstune::deberta {

namespace {

using layers::Scope;

constexpr bool kNumbersOnly = false;

constexpr Scope kBlockScopes[] = {
    {"", bert::kProject, bert::kLastNorm},
    {".attention", bert::kProject, bert::kNorm},
    {".attention.self", bert::kProject, bert::kProject},
    {".attention.output", bert::kOut, bert::kNorm},
    {".intermediate", bert::kInner, bert::kInner},
    {".output", bert::kOuter, bert::kLastNorm},
};
constexpr Scope kHeadScopes[] = {
    {"cls", bert::kTransform, bert::kDecode},
    {"cls.predictions", bert::kTransform, bert::kDecode},
    {"cls.predictions.transform", bert::kTransform, bert::kTransformNorm},
};
constexpr Scope kPoolerScopes[] = {{"pooler", bert::kPool, bert::kActivate}};
constexpr Scope kModelScopes[] = {
    {"", bert::kEmbed, bert::kHead, kNumbersOnly},
    {"deberta", bert::kEmbed, bert::kEncode, kNumbersOnly},
    {"deberta.embeddings", bert::kEmbed, bert::kEmbed, kNumbersOnly},
    {"deberta.encoder", bert::kEncode, bert::kEncode},
};

}  // namespace

const bert::BlockNames kBlock{
    .stem = "deberta.encoder.layer.",
    .query_key_value = {".attention.self.query_proj", ".attention.self.key_proj",
                        ".attention.self.value_proj"},
    .out = ".attention.output.dense",
    .out_dropout = ".attention.output.dropout",
    .norm = ".attention.output.LayerNorm",
    .inner = ".intermediate.dense",
    .activation = ".intermediate.intermediate_act_fn",
    .outer = ".output.dense",
    .dropout = ".output.dropout",
    .last_norm = ".output.LayerNorm",
    .scopes = kBlockScopes,
};
const bert::MaskedHeadNames kLegacyHead{
    .dense = "cls.predictions.transform.dense",
    .activation = "cls.predictions.transform.transform_act_fn",
    .norm = "cls.predictions.transform.LayerNorm",
    .decoder = "cls.predictions.decoder",
    .bias = "cls.predictions.bias",
    .loss = "",
    .scopes = kHeadScopes,
};
const bert::ClassifierNames kClassifier{
    .input_dropout = "pooler.dropout",
    .dense = "pooler.dense",
    .activation = "",
    .dropout = "dropout",
    .out = "classifier",
    .scopes = kPoolerScopes,
};

std::span<const Scope> model_scopes() { return kModelScopes; }

}  // namespace dstune::deberta
