// Feeds broken copies of the corpus to the readers: the same ones every time, with any compiler.
// scripts/fuzz.sh looks further, for as long as one likes.
//
// usage: broken_inputs FOLDER COUNT
//   FOLDER  tests/fuzz
//   COUNT   broken copies of each file of FOLDER/corpus
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "core/experiment/knobs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// libFuzzer's form: "word" a line, \xAB a byte.
std::vector<std::string> read_words(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string line; std::getline(file, line);) {
    if (line.size() < 2 || line.front() != '"') continue;
    std::string word;
    for (std::size_t i = 1; i + 1 < line.size(); ++i) {
      if (line.compare(i, 2, "\\x") == 0) {
        word += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
        i += 3;
      } else {
        if (line[i] == '\\') ++i;
        word += line[i];
      }
    }
    words.push_back(word);
  }
  return words;
}

/// A string, number or word of a text.
struct Token {
  std::size_t first;
  std::size_t length;
};

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+' || c == '.' ||
         c == '_';
}

std::vector<Token> tokens_of(const std::string& text) {
  std::vector<Token> tokens;
  for (std::size_t at = 1; at < text.size();) {
    const std::size_t first = at++;
    if (text[first] == '"') {
      at = std::min(text.find('"', at), text.size() - 1) + 1;
    } else if (is_of_word(text[first])) {
      while (at < text.size() && is_of_word(text[at])) ++at;
    } else {
      continue;
    }
    tokens.push_back({first, at - first});
  }
  return tokens;
}

/// Breaks texts as crashes and hands do.
class Breaker {
 public:
  Breaker(const std::vector<std::string>& texts, const std::vector<std::string>& words)
      : texts_(texts), words_(words) {}

  /// All but the first byte, which names the reader.
  std::string broken(std::string text) {
    for (std::size_t left = 1 + below(4); left > 0; --left) {
      if (text.size() < 2) break;
      if (below(2) == 0) {
        exchange_token(text);
        continue;
      }
      const std::size_t at = 1 + below(text.size() - 1);
      const std::size_t length = std::min(1 + below(1 + below(40)), text.size() - at);
      change(text, at, length);
    }
    return text;
  }

 private:
  void change(std::string& text, std::size_t at, std::size_t length) {
    switch (below(6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.replace(at, length, one_of(words_));
        break;
      case 2:
        text.insert(at, one_of(words_));
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      case 4: {
        const std::string& other = one_of(texts_);
        text.replace(at, length, other.substr(below(other.size()), below(60)));
        break;
      }
      default:
        text[at] = static_cast<char>(below(256));
    }
  }

  /// For one of this text or another: what stays JSON gets further.
  void exchange_token(std::string& text) {
    const std::vector<Token> tokens = tokens_of(text);
    if (tokens.empty()) return;
    const Token& token = tokens[below(tokens.size())];
    const std::string other = below(2) == 0 ? text : one_of(texts_);
    const std::vector<Token> others = tokens_of(other);
    if (others.empty()) return;
    const Token& taken = others[below(others.size())];
    text.replace(token.first, token.length, other.substr(taken.first, taken.length));
  }

  std::size_t below(std::size_t end) { return random_() % end; }
  const std::string& one_of(const std::vector<std::string>& list) {
    return list[below(list.size())];
  }

  const std::vector<std::string>& texts_;
  const std::vector<std::string>& words_;
  std::mt19937_64 random_{1};
};

void feed(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

int run(const std::filesystem::path& folder, int count) {
  std::vector<std::filesystem::path> files{std::filesystem::directory_iterator(folder / "corpus"),
                                           {}};
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const auto& file : files) texts.push_back(read(file));
  std::vector<std::string> words = read_words(folder / "readers.dict");
  for (const dstune::Knob& knob : dstune::kKnobs) {
    words.push_back('"' + std::string(knob.rule.key) + "\":");
  }
  Breaker breaker(texts, words);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::printf("%s\n", files[i].filename().c_str());
    feed(texts[i]);
    for (int copy = 0; copy < count; ++copy) {
      const std::string input = breaker.broken(texts[i]);
      try {
        feed(input);
      } catch (const std::exception& error) {
        std::printf("fault: %s of\n%s\n", error.what(), input.c_str());
        return EXIT_FAILURE;
      }
    }
  }
  std::printf("%zu files, %zu broken copies: no fault\n", texts.size(),
              texts.size() * static_cast<std::size_t>(count));
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return EXIT_FAILURE;
  return run(argv[1], std::atoi(argv[2]));
}
