#include <utility>

#include "core/train/nn/elementwise.hpp"
#include "core/train/nn/embedding.hpp"
#include "core/train/nn/linear.hpp"
#include "core/train/nn/losses/decoder_head.hpp"
#include "core/train/nn/tape_model.hpp"
#include "tests/toy_family/toy_mlp.hpp"

namespace dstune::toy_mlp {
namespace {

class ToyMlp final : public nn::TapeModel {
 public:
  ToyMlp(const ModelNames& names, const MicroBatch& batch, Device& device)
      : TapeModel(names, batch, device),
        root_(names.module("")),
        embed_(names, "embed"),
        mlp_(names.module("mlp")),
        fc_in_(names, "mlp.fc_in"),
        act_(names.module("mlp.act"), "gelu_new"),
        fc_out_(names, "mlp.fc_out"),
        head_(names, "head") {}

 private:
  Value run(Tape& on, const nn::StepInput& input) override {
    return run_module(on, root_, [&] {
      Value x = embed_(on, nn::tokens_of(input.tokens));
      x = run_module(on, mlp_, std::move(x),
                     [&](const Value& in) { return fc_out_(on, act_(on, fc_in_(on, in))); });
      return head_(on, x, input, loss_factor());
    });
  }

  std::size_t root_;
  nn::Embedding embed_;
  std::size_t mlp_;
  nn::Linear fc_in_;
  nn::ActivationFunction act_;
  nn::Linear fc_out_;
  nn::DecoderHead head_;
};

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& /*spec*/, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<ToyMlp>(ModelNames(parameters), batch, device);
}

}  // namespace dstune::toy_mlp
