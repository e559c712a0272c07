#include "tests/support/gpt2_fixture.hpp"

#include <bit>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>

#include "core/base/json.hpp"

namespace dstune::test {

namespace {

std::uint32_t sextet(char letter) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto position = kAlphabet.find(letter);
  if (position == std::string_view::npos) throw std::invalid_argument("no base64");
  return static_cast<std::uint32_t>(position);
}

std::vector<std::uint32_t> bytes_of(std::string_view base64) {
  std::vector<std::uint32_t> bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char letter : base64) {
    if (letter == '=') break;
    bits = (bits << 6U) | sextet(letter);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back((bits >> static_cast<unsigned>(held)) & 0xffU);
  }
  return bytes;
}

// Little-endian fp32.
std::vector<float> floats_of(const json::value& base64) {
  const auto bytes = bytes_of(base64.as_string());
  std::vector<float> values;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    values.push_back(std::bit_cast<float>(bytes[i] | (bytes[i + 1] << 8U) | (bytes[i + 2] << 16U) |
                                          (bytes[i + 3] << 24U)));
  }
  return values;
}

ModelSpec model_of(const json::value& config) {
  const auto integer = [&](const char* key) { return config.at(key).as_int64(); };
  ModelSpec model;
  model.vocab_size = integer("vocab_size");
  model.max_positions = integer("n_positions");
  model.hidden_size = integer("n_embd");
  model.num_layers = integer("n_layer");
  model.num_heads = integer("n_head");
  model.inner_size = 4 * model.hidden_size;
  model.layer_norm_epsilon = config.at("layer_norm_epsilon").as_double();
  return model;
}

}  // namespace

Gpt2Fixture read_gpt2_fixture(const std::string& path) {
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const json::value root = json::parse(text);
  Gpt2Fixture fixture;
  fixture.model = model_of(root.at("config"));
  fixture.micro_batch = root.at("micro_batch").as_int64();
  fixture.sequence_length = root.at("sequence_length").as_int64();
  fixture.tokens = json::value_to<std::vector<std::int64_t>>(root.at("tokens"));
  fixture.loss = root.at("loss").as_double();
  for (const auto& tensor : root.at("tensors").as_array()) {
    fixture.names.push_back(json::value_to<std::string>(tensor.at("name")));
    fixture.values.push_back(floats_of(tensor.at("value")));
    fixture.gradients.push_back(floats_of(tensor.at("gradient")));
  }
  return fixture;
}

}  // namespace dstune::test
