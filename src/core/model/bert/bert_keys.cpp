#include "core/model/bert/bert_keys.hpp"

#include "core/base/text.hpp"

namespace dstune::bert {

void read_common(const json::object& config, const SectionReader& reader, ModelSpec& spec,
                 Settings& settings) {
  reader.read("vocab_size", spec.vocab_size);
  reader.read("max_position_embeddings", spec.max_positions);
  reader.read("initializer_range", spec.initializer_range);
  reader.read("pad_token_id", settings.pad_token);
  if (const auto* token = config.if_contains("pad_token_id");
      token != nullptr && token->is_null()) {
    settings.pad_token.reset();
  }
  if (const auto* labels = reader.find("id2label")) {
    settings.num_labels = static_cast<std::int64_t>(labels->get_object().size());
  } else {
    reader.read("num_labels", settings.num_labels);
  }
}

void check_common(const json::object& config, const ModelSpec& spec, const Settings& settings,
                  std::string_view heads, std::string_view size, std::string_view pointer,
                  Problems& problems) {
  if (spec.hidden_size % spec.num_heads != 0) {
    problems.add(child(pointer, heads), concat("is ", spec.num_heads, ", which does not divide ",
                                               size, " ", spec.hidden_size));
  }
  if (settings.pad_token && *settings.pad_token >= spec.vocab_size) {
    problems.add(child(pointer, "pad_token_id"),
                 concat("is ", *settings.pad_token, "; accepted: an integer below vocab_size ",
                        spec.vocab_size));
  }
  const auto* given = config.if_contains("num_labels");
  if (settings.num_labels < 2) {
    problems.add(child(pointer, "id2label"), concat("has ", settings.num_labels,
                                                    " labels; accepted: 2 or more; a single label "
                                                    "is a regression"));
  } else if (given != nullptr && as_integer(*given) != settings.num_labels) {
    problems.add(child(pointer, "num_labels"),
                 concat("is ", describe(*given), ", but id2label has ", settings.num_labels));
  }
}

std::optional<ModelSpec> read(Variant kin, const json::object& config, std::string_view pointer,
                              Problems& problems, std::vector<std::string>& warnings) {
  return kin == Variant::distilbert ? read_distilbert(config, pointer, problems, warnings)
                                    : read_bert(kin, config, pointer, problems, warnings);
}

}  // namespace dstune::bert
