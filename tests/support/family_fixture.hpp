// What Hugging Face transformers computes of small models: tests/data/families/*.json, written by
// scripts/make_family_fixture.py, which says what stands there.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/units.hpp"
#include "core/device/dtype.hpp"
#include "core/model/model_spec.hpp"

namespace dstune::test {

struct FamilyFixture {
  struct Parameter {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> values;    ///< made from the indices of tensor and element
    std::vector<float> gradient;  ///< of the loss; empty if it is frozen
  };
  /// Bytes that autograd holds at the end of forward in fp32.
  struct Saved {
    std::string attention;      ///< "sdpa", "eager"
    std::vector<Bytes> layers;  ///< what each adds; 0: not known
    Bytes total = 0;
  };

  /// Likewise on a GPU.
  struct SavedOnCuda {
    std::string attention;
    DType dtype = DType::fp32;
    double dropout = 0;
    std::vector<Bytes> layers;
  };

  std::string name;  ///< of the file
  json::object config;
  Task task = Task::causal_lm;
  json::object fine_tuning;  ///< "trainable" or "lora", if not everything is trained
  std::int64_t micro_batch = 0;
  std::int64_t sequence_length = 0;
  std::int64_t target_length = 0;  ///< 0: none
  std::vector<std::int64_t> tokens;
  double loss = 0;
  std::vector<Parameter> parameters;                         ///< in named_parameters() order
  std::vector<std::pair<std::string, std::string>> modules;  ///< name and class, in order
  std::vector<std::string> calls;                            ///< modules, as forward enters them
  std::vector<std::string> arrival;                          ///< parameters, as gradients complete
  std::vector<Saved> saved;
  std::vector<SavedOnCuda> on_cuda;
  std::vector<std::string> dropout_keys;  ///< of config
};

/// Names of all fixtures, sorted.
std::vector<std::string> family_fixtures();

/// @throws std::exception  if there is none of that name, or it is no fixture
FamilyFixture read_family_fixture(const std::string& name);

/// The model of its config.json. @throws ConfigError  if the reader finds fault with it
/// @param dropout  in place of the 0 of its dropout_keys, and of adapters
ModelSpec model_of(const FamilyFixture& fixture, double dropout = 0);

/// The same, whose experts need not be evenly used: output_router_logits is off.
FamilyFixture without_router_loss(FamilyFixture fixture);

}  // namespace dstune::test
