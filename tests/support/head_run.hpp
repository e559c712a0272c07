// A head alone: its loss and gradients without a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/scalar.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/batch_context.hpp"
#include "core/train/nn/losses/decoder_head.hpp"
#include "tests/support/recording_engine.hpp"

namespace dstune::test {

struct HeadSizes {
  std::int64_t micro_batch;
  std::int64_t sequence;
  std::int64_t vocab;
  std::int64_t hidden;
};

/// Its tied embedding is the head's weight.
inline ModelSpec model_of(const HeadSizes& sizes, bool trains_weight) {
  ModelSpec model;
  if (!trains_weight) model.fine_tuning.trainable = {"transformer.h.*"};
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

/// What is not the same for all.
struct HeadSettings {
  /// The embedding uses the weight, too: its gradient stays until the hidden states have theirs.
  bool is_tied = false;
  bool trains_weight = true;
  bool trains_input = true;
  double softcap = 0;
  nn::LogitsTile tile = {};
};

/// A head alone, with hidden states, weight and tokens that depend on the sizes only.
class HeadRun {
 public:
  HeadRun(const HeadSizes& sizes, DType dtype, LossSettings loss_settings, Device& on,
          HeadSettings head_settings = {})
      : device(on),
        engine(model_of(sizes, head_settings.trains_weight), dtype, on),
        context({.size = sizes.micro_batch,
                 .sequence_length = sizes.sequence,
                 .dtype = dtype,
                 .loss = loss_settings},
                on),
        names(engine.parameters()),
        weight(names.tensor("transformer.wte.weight")),
        settings(head_settings),
        lm_head(names, "lm_head", weight, settings.softcap),
        head(model_of(sizes, settings.trains_weight), names, weight, settings.softcap),
        tokens(on, MemoryCategory::temporaries, static_cast<Bytes>(context.rows()) * 8) {
    if (!on.computes()) return;
    engine.write_parameter(weight, values(sizes.vocab * sizes.hidden, 1));
    auto* const words = static_cast<std::int64_t*>(tokens.data());
    for (std::int64_t i = 0; i < context.rows(); ++i) words[i] = (i * i + 3 * i) % sizes.vocab;
  }

  Buffer hidden_states() {
    Buffer x = make_buffer(device, MemoryCategory::activations, context.rows() * lm_head.size(),
                           context.dtype);
    if (device.computes()) {
      device.write(values(context.rows() * lm_head.size(), 2), x.tensor(context.dtype));
    }
    return x;
  }

  void forward() { forward(hidden_states()); }
  void forward(Buffer x) {
    loss.set_zero();
    tape.emplace(context, engine);
    const NodeParameters embedded = settings.is_tied ? NodeParameters{weight} : NodeParameters{};
    Value hidden = value_of(std::move(x), context.dtype, context.rows(), lm_head.size());
    if (settings.trains_input) {
      hidden = tape->record(std::move(hidden), embedded, [this](Tape&, const Value& d) {
        is_weight_ready_before_input = !engine.gradient(weight).empty();
        d_input.resize(static_cast<std::size_t>(d.numel()));
        device.read(d.tensor(), d_input);
      });
    }
    const nn::StepInput input{.tokens = tokens.tensor(DType::int64), .loss = loss.tensor()};
    loss_node = context.loss.kind == LossKind::tiled
                    ? nn::tiled_loss(*tape, lm_head, hidden, input, factor, settings.tile).node
                    : head(*tape, hidden, input, factor).node;
  }

  void backward(double of) {
    factor = of;
    tape->backward(loss_node, {});
    tape.reset();
  }

  Device& device;
  RecordingEngine engine;
  BatchContext context;
  ModelNames names;
  std::size_t weight;  ///< tensor
  HeadSettings settings;
  nn::LmHead lm_head;
  nn::DecoderHead head;
  Buffer tokens;
  Scalar loss{device};
  std::vector<float> d_input;
  bool is_weight_ready_before_input = false;

 private:
  double factor = 1;
  std::size_t loss_node = Value::kNoNode;
  std::optional<Tape> tape;
};

}  // namespace dstune::test
