#include <algorithm>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>

#include "core/base/json.hpp"
#include "core/model/deberta/deberta.hpp"

namespace dstune::deberta {

std::string to_own(const DebertaSettings& settings) {
  json::object own = json::parse(bert::to_own(settings.common)).as_object();
  own["embedding_size"] = settings.embedding_size;
  own["position_biased_input"] = settings.position_biased_input;
  own["relative_attention"] = settings.relative_attention;
  own["c2p"] = settings.c2p;
  own["p2c"] = settings.p2c;
  own["share_att_key"] = settings.share_att_key;
  own["position_buckets"] = settings.position_buckets;
  own["max_relative_positions"] = settings.most_distance;
  own["norm_rel_ebd"] = settings.norm_rel_ebd;
  own["conv_kernel_size"] = settings.conv_kernel_size;
  own["conv_act"] = settings.conv_activation;
  own["pooler_hidden_act"] = settings.pooler_activation;
  own["loss_in_fp32"] = settings.loss_in_fp32;
  return json::serialize(own);
}

DebertaSettings settings_of(const ModelSpec& spec) {
  const json::value own = json::parse(spec.own);
  const auto flag = [&](const char* key) { return own.at(key).as_bool(); };
  const auto integer = [&](const char* key) { return own.at(key).as_int64(); };
  const auto text = [&](const char* key) { return json::value_to<std::string>(own.at(key)); };
  return {.common = bert::settings_of(spec),
          .embedding_size = integer("embedding_size"),
          .position_biased_input = flag("position_biased_input"),
          .relative_attention = flag("relative_attention"),
          .c2p = flag("c2p"),
          .p2c = flag("p2c"),
          .share_att_key = flag("share_att_key"),
          .position_buckets = integer("position_buckets"),
          .most_distance = integer("max_relative_positions"),
          .norm_rel_ebd = flag("norm_rel_ebd"),
          .conv_kernel_size = integer("conv_kernel_size"),
          .conv_activation = text("conv_act"),
          .pooler_activation = text("pooler_hidden_act"),
          .loss_in_fp32 = flag("loss_in_fp32")};
}

std::int64_t mask_token(const ModelSpec& spec) {
  constexpr std::int64_t kPublished = 128000;
  return std::min(kPublished, spec.vocab_size - 1);
}

double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length) {
  const DebertaSettings settings = settings_of(spec);
  const auto h = static_cast<double>(spec.hidden_size);
  const auto f = static_cast<double>(spec.inner_size);
  const auto e = static_cast<double>(settings.embedding_size);
  const auto layers = static_cast<double>(spec.num_layers);
  const auto length = static_cast<double>(sequence_length);
  const bool is_masked = spec.task == Task::masked_lm;
  const double head = is_masked
                          ? h * e + static_cast<double>(spec.vocab_size) * e
                          : (h * h + static_cast<double>(settings.common.num_labels) * h) / length;
  const double projection = settings.embedding_size == spec.hidden_size ? 0 : e * h;
  const double convolution = static_cast<double>(settings.conv_kernel_size) * h * h;
  const double matmul_weights = layers * (4 * h * h + 2 * h * f) + head + projection + convolution;
  const double positions = settings.relative_attention ? 2.0 * (settings.scores() - 1) *
                                                             static_cast<double>(settings.span())
                                                       : 0;
  return static_cast<double>(tokens) *
         (6 * matmul_weights + layers * h * (12 * length + 6 * positions));
}

}  // namespace dstune::deberta
