// A fixture's micro-batch with activation checkpointing, for tests of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/device/device.hpp"
#include "core/device/scalar.hpp"
#include "core/experiment/activation_checkpointing.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"
#include "tests/support/family_fixture.hpp"
#include "tests/support/recording_engine.hpp"

namespace dstune::test {

inline constexpr Bytes kRoom = Bytes{1} << 30U;

/// How a fixture's micro-batch runs.
struct Way {
  json::value checkpointing = false;
  double dropout = 0;
  DType dtype = DType::fp32;
  AttentionKind attention = AttentionKind::sdpa;
  LinearLayers linear = LinearLayers::torch;
};

inline MicroBatch micro_batch_of(const FamilyFixture& fixture, const Way& way) {
  return {.size = fixture.micro_batch,
          .sequence_length = fixture.sequence_length,
          .dtype = way.dtype,
          .linear = way.linear,
          .attention = way.attention,
          .checkpointing = activation_checkpointing_from_json(way.checkpointing)};
}

class CheckpointedRun {
 public:
  CheckpointedRun(const FamilyFixture& fixture, Device& device, const Way& way)
      : spec_(model_of(fixture, way.dropout)),
        engine(spec_, way.dtype, device),
        model_(family_of(spec_).make_model(spec_, engine.parameters(), micro_batch_of(fixture, way),
                                           device)),
        tokens_(device, MemoryCategory::temporaries, fixture.tokens.size() * 8),
        loss_(device) {
    loss_.set_zero();
    if (!device.computes()) return;
    std::memcpy(tokens_.data(), fixture.tokens.data(), tokens_.size());
    for (std::size_t i = 0; i < fixture.parameters.size(); ++i) {
      engine.write_parameter(i, fixture.parameters[i].values);
    }
  }

  void forward() {
    constexpr std::uint64_t kSeed = 5;
    model_->forward(engine, tokens_.tensor(DType::int64), kSeed, loss_.tensor());
  }
  void backward() { model_->backward(engine, 1); }

  std::vector<std::vector<float>> gradients() {
    forward();
    backward();
    std::vector<std::vector<float>> all;
    for (std::size_t i = 0; i < engine.parameters().tensors.size(); ++i) {
      all.push_back(engine.gradient(i));
    }
    return all;
  }

 private:
  ModelSpec spec_;

 public:
  RecordingEngine engine;

 private:
  std::unique_ptr<Model> model_;
  Buffer tokens_;
  Scalar loss_;
};

/// Modules whose name ends with its only number: "transformer.h.1".
inline std::vector<std::size_t> layers_of(const ModelParameters& parameters) {
  constexpr const char* kDigits = "0123456789";
  std::vector<std::size_t> layers;
  for (std::size_t module = 0; module < parameters.modules.size(); ++module) {
    const std::string& name = parameters.modules[module].name;
    const std::size_t number = name.find_first_of(kDigits);
    const bool has_number = number != std::string::npos;
    if (has_number && name.find_first_not_of(kDigits, number) == std::string::npos) {
      layers.push_back(module);
    }
  }
  return layers;
}

}  // namespace dstune::test
