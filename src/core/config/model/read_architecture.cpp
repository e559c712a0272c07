#include "core/config/model/read_architecture.hpp"

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"
#include "core/config/model/model_names.hpp"

namespace dstune {

namespace {

std::string type_of(const json::object& config) {
  const auto* const type = config.if_contains("model_type");
  return type != nullptr && type->is_string() ? json::value_to<std::string>(*type) : "";
}

// A model_type that looks like another is mostly that of another model: "bart" is no slip for
// "bert".
std::string same_type(std::string_view name) {
  for (const Family& family : families()) {
    if (family.model_type != name &&
        without_separators(family.model_type) == without_separators(name)) {
      return concat("; did you mean ", in_quotes(family.model_type), "?");
    }
  }
  return "";
}

// The end of a class's name in transformers: "BertForSequenceClassification".
constexpr std::pair<std::string_view, Task> kHeads[] = {
    {"ForCausalLM", Task::causal_lm},
    {"LMHeadModel", Task::causal_lm},
    {"ForMaskedLM", Task::masked_lm},
    {"ForSequenceClassification", Task::sequence_classification},
    {"ForConditionalGeneration", Task::seq2seq_lm},
};

std::optional<Task> task_of_class(std::string_view name) {
  for (const auto& [end, task] : kHeads) {
    if (name.ends_with(end)) return task;
  }
  return std::nullopt;
}

// The class whose weights the file is of, if it says so.
std::string class_of(const json::object& config) {
  const auto* const list = config.if_contains("architectures");
  if (list == nullptr || !list->is_array() || list->get_array().empty()) return "";
  const json::value& first = list->get_array().front();
  return first.is_string() ? json::value_to<std::string>(first) : "";
}

/// Which "tie_word_embeddings" ties the head to the embedding: that beside "text_config", either,
/// or that beside it where it stands and else the one inside, with which such models are published.
enum class Tie { beside, either, beside_if_given };

/// A model of transformers that reads with a language model of its "text_config".
struct WithText {
  std::string_view model_type;
  Tie tie;
};

// Of these transformers gives the same parameters in the same order, and from text alone the same
// logits, as of the language model by itself.
constexpr WithText kWithText[] = {
    {"gemma3", Tie::beside_if_given},
    {"got_ocr2", Tie::beside_if_given},
    {"idefics3", Tie::beside},
    {"internvl", Tie::beside_if_given},
    {"lighton_ocr", Tie::beside_if_given},
    {"llava", Tie::either},
    {"llava_next", Tie::beside},
    {"llava_next_video", Tie::either},
    {"llava_onevision", Tie::either},
    {"mistral3", Tie::beside_if_given},
    {"qwen2_5_vl", Tie::either},
    {"qwen2_vl", Tie::either},
    {"qwen3_vl", Tie::beside},
    {"video_llama_3", Tie::either},
    {"video_llava", Tie::beside},
    {"vipllava", Tie::beside},
};

/// Language models that are a family's, but for their name.
constexpr std::pair<std::string_view, std::string_view> kTextTypes[] = {
    {"qwen2_5_vl_text", "qwen2"},
    {"qwen2_vl_text", "qwen2"},
    {"qwen3_vl_text", "qwen3"},
};

/// What such a language model must say, since its defaults are not the family's.
constexpr std::string_view kSizes[] = {"hidden_size",         "intermediate_size",
                                       "num_hidden_layers",   "num_attention_heads",
                                       "num_key_value_heads", "vocab_size"};

// The rotary angles of pictures count three positions, those of text are one.
void drop_angles_of_pictures(json::object& text) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    auto* const angles = text.if_contains(key);
    if (angles == nullptr || !angles->is_object()) continue;
    json::object& kinds = angles->get_object();
    if (!kinds.contains("mrope_section")) continue;
    kinds.erase("mrope_section");
    kinds.erase("mrope_interleaved");
    for (const char* kind : {"type", "rope_type"}) {
      auto* const name = kinds.if_contains(kind);
      if (name != nullptr && *name == "mrope") *name = "default";
    }
  }
}

bool is_true(const json::object& object, std::string_view key) {
  const auto* const value = object.if_contains(key);
  return value != nullptr && *value == true;
}

void set_tie(const json::object& config, const WithText& model, json::object& text) {
  constexpr std::string_view kKey = "tie_word_embeddings";
  if (model.tie == Tie::beside_if_given && !config.contains(kKey)) return;
  const bool by_text = model.tie == Tie::either && is_true(text, kKey);
  text[kKey] = is_true(config, kKey) || by_text;
}

// Files older than transformers 5 have the language model's keys beside "vision_config".
json::object text_among(const json::object& config) {
  json::object text;
  for (const auto& member : config) {
    const std::string_view key(member.key());
    const bool is_of_pictures =
        key.starts_with("vision_") || key.starts_with("image_") || key.starts_with("video_");
    if (!is_of_pictures) text.insert(member);
  }
  text["model_type"] = concat(type_of(config), "_text");
  return text;
}

// The family of a language model; empty if there is none, or if it has other defaults that count.
std::string family_of_text(const json::object& text) {
  std::string type = type_of(text);
  if (find_family(type) != nullptr) return type;
  const bool is_complete =
      std::ranges::all_of(kSizes, [&](std::string_view key) { return text.contains(key); });
  for (const auto& [other, family] : kTextTypes) {
    if (type == other && is_complete) return std::string(family);
  }
  return "";
}

std::optional<ReadAs> read_text(const json::object& config, const WithText& model) {
  const auto* const part = config.if_contains("text_config");
  const bool is_object = part != nullptr && part->is_object();
  ReadAs text{is_object ? part->get_object() : text_among(config), is_object, ""};
  const std::string text_type = family_of_text(text.config);
  if (text_type.empty()) return std::nullopt;
  text.config["model_type"] = text_type;
  text.config.erase("architectures");
  drop_angles_of_pictures(text.config);
  set_tie(config, model, text.config);
  text.note = language_model_note(model.model_type, text_type);
  return text;
}

/// A model with a family's tensors, forward and gradients under another name.
struct Twin {
  std::string_view model_type;
  std::string_view family;
  std::int64_t vocab_size;  ///< where the file has none
};

constexpr Twin kTwins[] = {{"camembert", "roberta", 30522}, {"xlm-roberta", "roberta", 30522}};

ReadAs read_as_twin(const json::object& config, const Twin& twin) {
  ReadAs known{config, false, ""};
  known.config["model_type"] = twin.family;
  if (!config.contains("vocab_size")) known.config["vocab_size"] = twin.vocab_size;
  known.note = concat(twin.model_type, " is trained as ", twin.family,
                      ", which has the same tensors and computes the same; there the head is "
                      "registered first, here last, so that buckets hold other tensors together");
  return known;
}

}  // namespace

std::string language_model_note(std::string_view model, std::string_view text_family) {
  return concat("only the language model of ", in_quotes(model), " is trained, a ",
                in_quotes(text_family),
                " on text: the vision parts, and what joins them to it, are not counted, nor "
                "are image masks");
}

const Family* read_family(const json::object& config, std::string_view pointer,
                          Problems& problems) {
  const auto* type = config.if_contains("model_type");
  const std::string name = type_of(config);
  if (const Family* family = find_family(name)) return family;
  std::vector<std::string> accepted;
  for (const Family& family : families()) accepted.push_back(in_quotes(family.model_type));
  const std::string near = name.empty() ? "" : same_type(name);
  problems.add(child(pointer, "model_type"),
               concat("is ", type == nullptr ? "missing" : describe(*type), near,
                      near.empty() ? "; accepted: " : " accepted: ", join(accepted, ", ")));
  return nullptr;
}

std::optional<ReadAs> read_as(const json::object& config) {
  const std::string type = type_of(config);
  const auto* const twin = std::ranges::find(kTwins, type, &Twin::model_type);
  if (twin != std::end(kTwins)) return read_as_twin(config, *twin);
  const auto* const model = std::ranges::find(kWithText, type, &WithText::model_type);
  return model == std::end(kWithText) ? std::nullopt : read_text(config, *model);
}

Task read_architecture(const json::object& config, const Family& family, std::string_view pointer,
                       std::vector<std::string>& warnings, std::string& note) {
  const Task usual = family.tasks.front();
  const std::string name = class_of(config);
  const auto task = task_of_class(name);
  const bool is_modelled = task && std::ranges::count(family.tasks, *task) > 0;
  if (is_modelled && *task != usual) {
    note = concat("trained for ", name_of(*task), ", since the model's architectures say ", name,
                  "; dstune.task sets another task");
  }
  if (is_modelled) return *task;
  if (task || name.find("For") != std::string::npos) {
    Problems said("model");
    said.warn(child(pointer, "architectures"),
              concat("has ", in_quotes(name), ", whose head is not modelled for ",
                     family.model_type, ": trained for ", name_of(usual), " instead"));
    for (auto& warning : said.warnings()) warnings.push_back(std::move(warning));
  }
  return usual;
}

}  // namespace dstune
