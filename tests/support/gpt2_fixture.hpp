// The numbers of Hugging Face transformers in tests/data/gpt2_fixture.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/model_spec.hpp"

namespace dstune::test {

struct Gpt2Fixture {
  ModelSpec model;
  std::int64_t micro_batch = 0;
  std::int64_t sequence_length = 0;
  std::vector<std::int64_t> tokens;
  double loss = 0;
  std::vector<std::string> names;             ///< of the tensors, in named_parameters() order
  std::vector<std::vector<float>> values;     ///< by tensor
  std::vector<std::vector<float>> gradients;  ///< of the loss, by tensor
};

/// @throws std::exception  if the file is missing or no fixture
Gpt2Fixture read_gpt2_fixture(const std::string& path);

}  // namespace dstune::test
