// A head alone: its loss and gradients without a model.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/scalar.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/head.hpp"
#include "core/train/layers/workspace.hpp"
#include "tests/support/recording_engine.hpp"

namespace dstune::test {

struct HeadSizes {
  std::int64_t micro_batch;
  std::int64_t sequence;
  std::int64_t vocab;
  std::int64_t hidden;
};

/// Its tied embedding is the head's weight.
inline ModelSpec model_of(const HeadSizes& sizes) {
  ModelSpec model;
  model.vocab_size = sizes.vocab;
  model.max_positions = 2;
  model.hidden_size = sizes.hidden;
  model.inner_size = 1;
  model.num_layers = 1;
  model.num_heads = 1;
  return model;
}

inline std::vector<float> values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> result(static_cast<std::size_t>(count));
  for (float& value : result) value = uniform(generator);
  return result;
}

/// A head alone, with hidden states, weight and tokens that depend on the sizes only.
class HeadRun {
 public:
  HeadRun(const HeadSizes& sizes, DType dtype, LossSettings settings, Device& on,
          bool is_tied = false)
      : device(on),
        engine(model_of(sizes), dtype, on),
        work({.size = sizes.micro_batch,
              .sequence_length = sizes.sequence,
              .dtype = dtype,
              .loss = settings},
             on),
        names(engine.parameters()),
        head{.module = names.module("lm_head"),
             .weight = names.tensor("transformer.wte.weight"),
             .size = sizes.hidden,
             .vocab_size = sizes.vocab,
             .is_tied = is_tied},
        tokens(on, MemoryCategory::temporaries, static_cast<Bytes>(work.rows()) * 8) {
    if (!on.computes()) return;
    engine.write_parameter(head.weight, values(sizes.vocab * sizes.hidden, 1));
    auto* const words = static_cast<std::int64_t*>(tokens.data());
    for (std::int64_t i = 0; i < work.rows(); ++i) words[i] = (i * i + 3 * i) % sizes.vocab;
  }

  Buffer hidden_states() {
    Buffer x = work.activation(head.size);
    if (device.computes()) {
      device.write(values(work.rows() * head.size, 2), x.tensor(work.dtype));
    }
    return x;
  }

  void forward() { forward(hidden_states()); }
  void forward(Buffer x) {
    loss.set_zero();
    head.forward(work, engine, std::move(x), tokens.tensor(DType::int64), loss.tensor());
  }

  void backward(double factor) {
    const Buffer d_x = head.backward(work, engine, factor, d_tied);
    d_input.resize(static_cast<std::size_t>(work.rows() * head.size));
    device.read(d_x.tensor(work.dtype), d_input);
  }

  Device& device;
  RecordingEngine engine;
  layers::Workspace work;
  ModelNames names;
  layers::Head head;
  Buffer tokens;
  Scalar loss{device};
  Buffer d_tied;
  std::vector<float> d_input;
};

}  // namespace dstune::test
