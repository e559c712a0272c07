#include "core/config/read_model_spec.hpp"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "core/base/printable.hpp"
#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"
#include "core/input/read_json.hpp"

namespace dstune {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

// The limits keep every product of dimensions, and so the number of parameters, within 64 bits.
constexpr std::int64_t kMostTokens = 100'000'000;
constexpr std::int64_t kWidest = 1'000'000;
constexpr std::int64_t kDeepest = 1000;  // a plan walks every layer

constexpr KeyRule kGpt2Rules[] = {
    integer("vocab_size", 1, kMostTokens),
    integer("n_positions", 2, kMostTokens).also("max_position_embeddings"),
    integer("n_embd", 1, kWidest).also("hidden_size"),
    integer("n_layer", 1, kDeepest).also("num_hidden_layers"),
    integer("n_head", 1, kWidest).also("num_attention_heads"),
    integer("n_inner", 1, 10 * kWidest).or_null(),
    above("layer_norm_epsilon", 0),
    at_least("initializer_range", 0),
    choice("activation_function", "gelu_new|gelu_accurate")
        .because("; others keep other tensors for the backward pass, and are not modelled"),
    fraction_below_one("embd_pdrop"),
    fraction_below_one("attn_pdrop"),
    fraction_below_one("resid_pdrop"),
    only("scale_attn_weights", true),
    only("scale_attn_by_inverse_layer_idx", false),
    only("reorder_and_upcast_attn", false),
    only("add_cross_attention", false),
    only("tie_word_embeddings", true),
};
constexpr Section kGpt2{.rules = kGpt2Rules, .other_keys = true};

// Keys of Hugging Face's GPT2Config and PretrainedConfig that do not change a training step.
constexpr std::string_view kWithoutEffect[] = {
    "_attn_implementation",
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "auto_map",
    "bos_token_id",
    "chunk_size_feed_forward",
    "decoder_start_token_id",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "model_type",
    "n_ctx",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pad_token_id",
    "predict_special_tokens",
    "prefix",
    "problem_type",
    "pruned_heads",
    "return_dict",
    "sep_token_id",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "tokenizer_class",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "use_bfloat16",
    "use_cache",
};

// A misspelt dimension would otherwise be Hugging Face's default in silence.
void warn_of_unknown(const json::object& object, std::string_view pointer,
                     std::vector<std::string>& warnings) {
  const auto read = known_keys(kGpt2);
  Problems unknown("model");
  for (const auto& member : object) {
    const std::string_view key(member.key());
    if (std::find(read.begin(), read.end(), key) != read.end()) continue;
    if (std::find(std::begin(kWithoutEffect), std::end(kWithoutEffect), key) !=
        std::end(kWithoutEffect)) {
      continue;
    }
    unknown.warn(child(pointer, key),
                 concat("is no key of GPT-2 and has no effect", suggestion(key, read)));
  }
  for (auto& warning : unknown.warnings()) warnings.push_back(std::move(warning));
}

// What Hugging Face takes for a key that config.json does not have.
ModelSpec default_spec() {
  ModelSpec spec;
  spec.embedding_dropout = 0.1;
  spec.attention_dropout = 0.1;
  spec.residual_dropout = 0.1;
  return spec;
}

struct Preset {
  const char* name;
  std::int64_t hidden_size;
  std::int64_t num_layers;
  std::int64_t num_heads;
};

constexpr std::array<Preset, 4> kPresets = {{{"gpt2", 768, 12, 12},
                                             {"gpt2-medium", 1024, 24, 16},
                                             {"gpt2-large", 1280, 36, 20},
                                             {"gpt2-xl", 1600, 48, 25}}};

std::optional<ModelSpec> preset(std::string_view name) {
  for (const auto& entry : kPresets) {
    if (name != entry.name) continue;
    ModelSpec spec = default_spec();
    spec.name = entry.name;
    spec.hidden_size = entry.hidden_size;
    spec.num_layers = entry.num_layers;
    spec.num_heads = entry.num_heads;
    spec.inner_size = 4 * entry.hidden_size;
    return spec;
  }
  return std::nullopt;
}

ModelSpec spec_from_checked(const json::object& object, const std::string& name) {
  ModelSpec spec = default_spec();
  spec.name = name;
  const auto read = [&](const char* key, auto& member) {
    const auto* value = object.if_contains(key);
    if (value == nullptr || value->is_null()) return;
    member = value->to_number<std::remove_reference_t<decltype(member)>>();
  };
  read("vocab_size", spec.vocab_size);
  read("n_positions", spec.max_positions);
  read("n_embd", spec.hidden_size);
  read("n_layer", spec.num_layers);
  read("n_head", spec.num_heads);
  spec.inner_size = 4 * spec.hidden_size;
  read("n_inner", spec.inner_size);
  read("layer_norm_epsilon", spec.layer_norm_epsilon);
  read("initializer_range", spec.initializer_range);
  read("embd_pdrop", spec.embedding_dropout);
  read("attn_pdrop", spec.attention_dropout);
  read("resid_pdrop", spec.residual_dropout);
  return spec;
}

std::filesystem::path find_file(const std::string& name,
                                const std::vector<std::filesystem::path>& folders) {
  std::error_code ignored;
  for (const auto& folder : folders) {
    auto path = (folder / name).lexically_normal();
    if (std::filesystem::is_directory(path, ignored)) {
      if (std::filesystem::exists(path / "config.json", ignored)) return path / "config.json";
    } else if (std::filesystem::exists(path, ignored)) {
      return path;
    }
  }
  return {};
}

// Most of these files are called config.json: then the folder says which model it is.
std::string display_name(const std::filesystem::path& path) {
  const auto stem = path.stem();
  const auto folder = std::filesystem::absolute(path).lexically_normal().parent_path().filename();
  return printable(stem == "config" && !folder.empty() ? folder.string() : stem.string());
}

std::string presets_text() {
  auto names = model_presets();
  for (auto& name : names) name = in_quotes(name);
  return join(names, ", ");
}

}  // namespace

const std::vector<std::string>& model_presets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    list.reserve(kPresets.size());
    for (const auto& entry : kPresets) list.emplace_back(entry.name);
    return list;
  }();
  return names;
}

std::optional<ModelSpec> read_model_object(const json::object& object, const std::string& name,
                                           std::string_view pointer, Problems& problems,
                                           std::vector<std::string>& warnings) {
  const auto* type = object.if_contains("model_type");
  if (type == nullptr || *type != "gpt2") {
    problems.add(child(pointer, "model_type"),
                 concat("is ", type == nullptr ? "missing" : describe(*type),
                        "; accepted: \"gpt2\" (the only family so far)"));
    return std::nullopt;
  }
  warn_of_unknown(object, pointer, warnings);
  const auto faults = problems.count();
  const auto checked = check_section(object, kGpt2, pointer, problems);
  ModelSpec spec = spec_from_checked(checked, name);
  if (problems.count() == faults && spec.hidden_size % spec.num_heads != 0) {
    problems.add(
        child(pointer, "n_head"),
        concat("is ", spec.num_heads, ", which does not divide n_embd ", spec.hidden_size));
  }
  if (problems.count() > faults) return std::nullopt;
  return spec;
}

std::optional<ModelSpec> read_model_name(const std::string& name,
                                         const std::vector<std::filesystem::path>& folders,
                                         std::string_view where, Problems& problems,
                                         std::vector<std::string>& warnings) {
  if (auto spec = preset(name)) return spec;
  const auto path = find_file(name, folders);
  if (path.empty()) {
    const auto near = suggestion(name, model_presets());
    problems.add(std::string(where),
                 concat("is ", in_quotes(name), ", no preset and no file", near,
                        near.empty() ? "; accepted: " : " accepted: ", presets_text(),
                        ", or the path of a Hugging Face config.json"));
    return std::nullopt;
  }
  Problems file_problems(path.string());
  const auto value = read_json_file(path, "", file_problems);
  std::optional<ModelSpec> spec;
  if (value && !value->is_object()) {
    file_problems.add("file", concat("is ", describe(*value), "; accepted: an object"));
  } else if (value) {
    std::vector<std::string> file_warnings;
    spec = read_model_object(value->get_object(), display_name(path), "", file_problems,
                             file_warnings);
    for (const auto& warning : file_warnings) {
      warnings.push_back(concat(path.string(), "#", warning));
    }
  }
  problems.add_all(file_problems);
  if (!file_problems.empty()) return std::nullopt;
  return spec;
}

}  // namespace dstune
