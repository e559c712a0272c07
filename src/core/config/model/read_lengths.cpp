#include "core/config/model/read_lengths.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>
#include <system_error>

#include "core/base/text.hpp"
#include "core/config/model/length_file.hpp"
#include "core/config/space/axis_values.hpp"
#include "core/model/llama/llama.hpp"

namespace dstune {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr const char* kLengths = "/dstune/lengths";
constexpr std::int64_t kShortest = 2;  // one token that has a next one
constexpr std::int64_t kLongestLength = 1'000'000'000;

constexpr KeyRule kLengthRules[] = {
    text("file"),
    choice("distribution", "lognormal|uniform"),
    above("mean", 0),
    above("sigma", 0),
    integer("min", kShortest, kLongestLength),
    integer("max", kShortest, kLongestLength),
    choice("batches", "padded|packed"),
    integer("pad_to_multiple_of", 1, kLongestLength),
};
constexpr Section kLengthSection{.rules = kLengthRules};

std::filesystem::path find_file(const std::string& name, const std::string& source) {
  std::error_code ignored;
  const std::filesystem::path beside = std::filesystem::path(source).parent_path() / name;
  return std::filesystem::exists(beside, ignored) ? beside : std::filesystem::path(name);
}

/// Shortens sequences as a trainer cuts those that are too long.
std::vector<LengthCount> cut(std::vector<LengthCount> counts, const LengthSettings& limits) {
  for (LengthCount& each : counts) {
    each.length = std::clamp(each.length, limits.least, limits.most);
  }
  return gathered(std::move(counts));
}

/// Reads one "dstune.lengths" that is no list.
class LengthReader {
 public:
  LengthReader(const std::string& source, Problems& problems)
      : source_(source), problems_(problems) {}

  /// @returns lengths that vary, unless there were problems
  LengthSettings read(const json::value& value) {
    LengthSettings lengths;
    lengths.least = kShortest;
    if (value.is_string()) {
      read_file(json::value_to<std::string>(value), lengths);
      return lengths;
    }
    const SectionReader reader(value, kLengthSection, kLengths, problems_);
    reader.read("min", lengths.least);
    reader.read("max", lengths.most);
    reader.read("pad_to_multiple_of", lengths.pad_to_multiple_of);
    std::string file;
    std::string distribution;
    std::string batches;
    reader.read("batches", batches);
    lengths.is_packed = batches == "packed";
    if (lengths.is_packed && lengths.pad_to_multiple_of > 1) {
      problems_.add(child(kLengths, "pad_to_multiple_of"),
                    "is given, but packed batches have no padding; remove it");
    }
    reader.read("file", file);
    reader.read("distribution", distribution);
    const auto is_given = [&](std::string_view key) {
      return value.is_object() && value.get_object().contains(key);
    };
    if (is_given("file") == is_given("distribution")) {
      problems_.add(kLengths,
                    is_given("file")
                        ? "has both \"file\" and \"distribution\"; accepted: one of the two"
                        : "has neither \"file\" nor \"distribution\"; accepted: one of the two");
    } else if (lengths.most > 0 && lengths.most < lengths.least) {
      problems_.add(child(kLengths, "max"),
                    concat("is ", lengths.most, "; accepted: at least \"min\", ", lengths.least));
    } else if (!file.empty()) {
      read_file(file, lengths);
    } else if (!distribution.empty()) {
      read_distribution(reader, distribution, lengths);
    }
    return lengths;
  }

 private:
  void read_file(const std::string& name, LengthSettings& lengths) {
    auto counts = read_length_file(find_file(name, source_), problems_);
    if (counts.empty()) return;
    if (lengths.most == 0) lengths.most = std::max(lengths.least, counts.back().length);
    lengths.counts = cut(std::move(counts), lengths);
    lengths.least = lengths.counts.front().length;
    lengths.most = lengths.counts.back().length;
    lengths.law = LengthLaw::histogram;
  }

  void read_distribution(const SectionReader& reader, const std::string& name,
                         LengthSettings& lengths) {
    const bool is_lognormal = name == "lognormal";
    bool is_complete = require(reader, "max", "an integer of tokens");
    if (is_lognormal) {
      is_complete = require(reader, "mean", "the mean length in tokens") && is_complete;
      is_complete = require(reader, "sigma", "the standard deviation of the lengths' logarithms") &&
                    is_complete;
    }
    for (const char* key : {"mean", "sigma"}) {
      if (is_lognormal || reader.find(key) == nullptr) continue;
      problems_.add(child(kLengths, key), "belongs to a \"lognormal\" distribution; remove it");
    }
    reader.read("mean", lengths.mean);
    reader.read("sigma", lengths.sigma);
    if (is_complete) lengths.law = is_lognormal ? LengthLaw::lognormal : LengthLaw::uniform;
  }

  bool require(const SectionReader& reader, const char* key, const char* accepted) {
    if (reader.find(key) != nullptr) return true;
    problems_.add(child(kLengths, key), concat("is missing; accepted: ", accepted));
    return false;
  }

  const std::string& source_;
  Problems& problems_;
};

void check_longest(std::int64_t length, const std::string& pointer, const ModelSpec& model,
                   Problems& problems) {
  if (length >= kShortest && length <= model.max_positions) return;
  problems.add(pointer, concat("is ", length, "; accepted: an integer from 2 to ",
                               model.max_positions, ", the model's n_positions"));
}

void read_list(const json::array& list, TuningConfig& config, Problems& problems) {
  if (list.empty() || list.size() > kLongestAxis) {
    problems.add(kLengths, concat("has ", list.size(), " lengths; accepted: 1 to ", kLongestAxis));
    return;
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    constexpr KeyRule kRule = integer("", kShortest, kLongestLength);
    const auto length = check_value(list[i], kRule, child(kLengths, i), problems);
    if (!length) continue;
    const std::int64_t tokens = length->get_int64();
    check_longest(tokens, child(kLengths, i), config.settings.model, problems);
    if (std::ranges::count(config.sequence_lengths, tokens) == 0) {
      config.sequence_lengths.push_back(tokens);
    }
  }
  if (config.sequence_lengths.empty()) return;
  config.settings.sequence_length = config.sequence_lengths.front();
  if (config.sequence_lengths.size() == 1) config.sequence_lengths.clear();
}

void check_attention(const RunSettings& settings, Problems& problems) {
  const bool is_flash = settings.attention == AttentionKind::flash;
  if (settings.lengths.is_packed == is_flash) return;
  problems.add("/dstune/attention",
               is_flash ? "is \"flash\", which takes padding out of every batch: not modelled; "
                          "accepted with padded lengths: sdpa|eager"
                        : concat("is ", in_quotes(name_of(settings.attention)),
                                 ", which scores all pairs of a packed row's tokens: not modelled; "
                                 "accepted with packed lengths: flash"));
}

/// A classifier that reads a sequence's last token must find it.
bool takes_padding(const ModelSpec& model) {
  constexpr std::string_view kReadFirstToken[] = {"bert", "roberta", "distilbert"};
  return model.task == Task::causal_lm ||
         std::ranges::count(kReadFirstToken, std::string_view(model.family)) > 0;
}

bool has_router_loss(const ModelSpec& model) {
  constexpr std::string_view kHaveRouters[] = {"mixtral", "qwen2_moe", "qwen3_moe"};
  return std::ranges::count(kHaveRouters, std::string_view(model.family)) > 0 &&
         llama::settings_of(model).experts.balance > 0;
}

void check_varying(const RunSettings& settings, Problems& problems) {
  const bool is_causal = settings.model.task == Task::causal_lm;
  const std::int64_t most = settings.sequence_length;
  if (most > settings.model.max_positions) {
    problems.add(kLengths, concat("makes rows of up to ", most, " tokens; accepted: at most ",
                                  settings.model.max_positions,
                                  ", the model's n_positions (\"max\" cuts what is longer)"));
  }
  if (!takes_padding(settings.model) || (settings.lengths.is_packed && !is_causal)) {
    problems.add(
        kLengths,
        concat("varies, which is not modelled for ", name_of(settings.model.task), " with ",
               settings.lengths.is_packed ? "packed" : "padded", " batches of models of type ",
               in_quotes(settings.model.family), "; accepted: one length, or a list"));
  }
  if (has_router_loss(settings.model)) {
    problems.add(kLengths, concat("varies, which is not modelled for models of type ",
                                  in_quotes(settings.model.family),
                                  " with \"output_router_logits\", whose loss leaves padding out; "
                                  "accepted: one length, or a list"));
  }
  check_attention(settings, problems);
}

/// Rows of packed sequences are as long as "sequence_length" says, those of padded ones as their
/// longest.
void settle_rows(RunSettings& settings) {
  LengthSettings& lengths = settings.lengths;
  if (!lengths.is_packed) {
    settings.sequence_length = lengths.padded(lengths.most);
    return;
  }
  lengths.most = std::min(lengths.most, settings.sequence_length);
  lengths.least = std::min(lengths.least, lengths.most);
}

}  // namespace

void read_lengths(const SectionReader& dstune, TuningConfig& config, Problems& problems) {
  constexpr std::int64_t kUsual = 1024;
  RunSettings& settings = config.settings;
  settings.sequence_length = std::min(kUsual, settings.model.max_positions);
  dstune.read("sequence_length", settings.sequence_length);
  check_longest(settings.sequence_length, "/dstune/sequence_length", settings.model, problems);
  const json::value* const lengths = dstune.find("lengths");
  if (lengths == nullptr) return;
  bool is_row_length = false;
  if (lengths->is_array()) {
    read_list(lengths->get_array(), config, problems);
  } else if (lengths->is_number()) {
    read_list({*lengths}, config, problems);
  } else if (lengths->is_object() || lengths->is_string()) {
    settings.lengths = LengthReader(config.source, problems).read(*lengths);
    if (!settings.lengths.varies()) return;
    settle_rows(settings);
    check_varying(settings, problems);
    is_row_length = settings.lengths.is_packed;
  } else {
    problems.add(kLengths, concat("is ", describe(*lengths),
                                  "; accepted: a length, a list of lengths to tune over, the path "
                                  "of a histogram, or {\"file\"} or {\"distribution\"} with more"));
  }
  if (dstune.find("sequence_length") != nullptr && !is_row_length) {
    problems.add(
        kLengths,
        "and /dstune/sequence_length are both given; accepted: one of the two, or both with "
        "\"batches\": \"packed\", whose rows are that long");
  }
}

}  // namespace dstune
