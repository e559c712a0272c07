#include "core/report/files/command_words.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include "core/base/text.hpp"

namespace dstune {

namespace {

bool is_flag(const std::string& word) { return word.size() > 1 && word.compare(0, 2, "--") == 0; }

bool names_json_file(const std::string& word) { return word.find(".json") != std::string::npos; }

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

Words::iterator at(Words& words, std::size_t place) {
  return words.begin() + static_cast<std::ptrdiff_t>(place);
}

/// Replaces in [begin, end); a value that is put in moves what follows.
bool replace_between(Words& words, std::size_t begin, std::size_t end, const std::string& flag,
                     const std::string& value) {
  bool found = false;
  for (std::size_t i = begin; i < end; ++i) {
    if (words[i].compare(0, flag.size() + 1, flag + "=") == 0) {
      words[i] = concat(flag, "=", value);
      found = true;
    } else if (words[i] == flag) {
      const bool has_value = i + 1 < words.size() && !is_flag(words[i + 1]);
      if (!has_value) {
        words.insert(at(words, i + 1), "");
        ++end;
      }
      words[++i] = value;
      found = true;
    }
  }
  return found;
}

/// The place behind "accelerate launch", "accelerate-launch" or "-m accelerate.commands.launch".
std::optional<std::size_t> begin_of_accelerate(const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto name = file_name(words[i]);
    if (name == "accelerate-launch" || name == "accelerate.commands.launch") return i + 1;
    if (name == "accelerate" && i + 1 < words.size() && words[i + 1] == "launch") return i + 2;
  }
  return std::nullopt;
}

/// The place of the training script, or of the switch before a module: what follows is its own.
std::size_t end_of_launcher(const Words& words, std::size_t begin) {
  const auto is_script = [](const std::string& word) {
    return word.ends_with(".py") || word == "-m" || word == "--module";
  };
  const auto found =
      std::find_if(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end(), is_script);
  return static_cast<std::size_t>(found - words.begin());
}

bool is_deepspeeds_launcher(const Words& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    const auto name = file_name(word);
    return name == "deepspeed" || name == "ds" || name == "deepspeed.launcher.runner";
  });
}

}  // namespace

bool replace_value(Words& words, const std::string& flag, const std::string& value) {
  return replace_between(words, 0, words.size(), flag, value);
}

void set_value(Words& words, const std::string& flag, const std::string& value) {
  if (!replace_value(words, flag, value)) words.insert(words.end(), {flag, value});
}

bool replace_deepspeed_file(Words& words, const std::string& path) {
  bool found = false;
  const std::string with_value = "--deepspeed=";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].compare(0, with_value.size(), with_value) == 0 && names_json_file(words[i])) {
      words[i] = with_value + path;
      found = true;
    } else if (words[i] == "--deepspeed" && i + 1 < words.size() && !is_flag(words[i + 1]) &&
               names_json_file(words[i + 1])) {
      words[++i] = path;
      found = true;
    }
  }
  return found;
}

void remove_autotuning(Words& words) {
  if (!is_deepspeeds_launcher(words)) return;
  for (std::size_t i = 0; i < words.size();) {
    std::size_t count = words[i].starts_with("--autotuning=") ? 1 : 0;
    if (words[i] == "--autotuning") {
      const bool has_value =
          i + 1 < words.size() && (words[i + 1] == "run" || words[i + 1] == "tune");
      count = has_value ? 2 : 1;
    }
    if (count == 0) {
      ++i;
    } else {
      words.erase(at(words, i), at(words, i + count));
    }
  }
}

bool set_accelerate_files(Words& words, const AccelerateFiles& files) {
  const auto begin = begin_of_accelerate(words);
  if (!begin) return false;
  const auto end = end_of_launcher(words, *begin);
  const bool has_config = !files.config.empty();
  const std::string flag = has_config ? "--config_file" : "--deepspeed_config_file";
  const std::string& path = has_config ? files.config : files.deepspeed;
  if (replace_between(words, *begin, end, flag, path)) return true;
  Words missing = {flag, path};
  if (!has_config) missing.insert(missing.begin(), "--use_deepspeed");
  words.insert(at(words, *begin), missing.begin(), missing.end());
  return true;
}

}  // namespace dstune
