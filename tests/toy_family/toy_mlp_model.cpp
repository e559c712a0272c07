#include <utility>

#include "core/train/layers/embedding_table.hpp"
#include "core/train/layers/head.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/new_gelu.hpp"
#include "core/train/layers/workspace.hpp"
#include "tests/toy_family/toy_mlp.hpp"

namespace dstune::toy_mlp {

namespace {

class ToyMlp final : public Model {
 public:
  ToyMlp(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device)
      : work_(batch, device),
        root_(names.module("")),
        embed_(names, "embed", spec.vocab_size, spec.hidden_size),
        mlp_(names.module("mlp")),
        fc_in_(names, "mlp.fc_in", spec.hidden_size, spec.inner_size),
        act_{.module = names.module("mlp.act"), .size = spec.inner_size},
        fc_out_(names, "mlp.fc_out", spec.inner_size, spec.hidden_size),
        head_{.module = names.module("head"),
              .weight = names.tensor("head.weight"),
              .size = spec.hidden_size,
              .vocab_size = spec.vocab_size,
              .is_tied = false} {}

  void set_lengths(const RowLengths& lengths) override { work_.take(lengths); }

  void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t /*seed*/, Tensor loss) override {
    tokens_ = tokens;
    hooks.fetch(root_);
    embedded_ = embed_.forward(work_, hooks, tokens);
    hooks.fetch(mlp_);
    activated_ = act_.forward(work_, hooks, fc_in_.forward(work_, hooks, embedded_));
    Buffer out = fc_out_.forward(work_, hooks, activated_);
    hooks.release(mlp_);
    head_.forward(work_, hooks, std::move(out), tokens, loss);
    hooks.release(root_);
  }

  void backward(ModuleHooks& hooks, double factor) override {
    hooks.fetch(root_);
    Buffer nothing_tied;
    const Buffer d_out = head_.backward(work_, hooks, factor, nothing_tied);
    hooks.fetch(mlp_);
    Buffer d_activated = fc_out_.backward(work_, hooks, d_out, activated_);
    activated_.reset();
    const Buffer d_inner = act_.backward(work_, hooks, std::move(d_activated));
    const Buffer d_embedded = fc_in_.backward(work_, hooks, d_inner, embedded_);
    embedded_.reset();
    hooks.release(mlp_);
    hooks.fetch(embed_.module);
    hooks.gradient_ready(embed_.weight, embed_.gradient(work_, d_embedded, tokens_));
  }

 private:
  layers::Workspace work_;
  std::size_t root_;
  layers::EmbeddingTable embed_;
  std::size_t mlp_;
  layers::Linear fc_in_;
  layers::NewGelu act_;
  layers::Linear fc_out_;
  layers::Head head_;

  Tensor tokens_;     // int64 (M)
  Buffer embedded_;   // (M, h), saved by fc_in
  Buffer activated_;  // (M, f), saved by fc_out
};

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<ToyMlp>(spec, ModelNames(parameters), batch, device);
}

}  // namespace dstune::toy_mlp
