#include "core/train/nn/router.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/routing.hpp"
#include "core/device/operations/softmax.hpp"
#include "core/train/nn/elementwise.hpp"
#include "core/train/nn/views.hpp"

namespace dstune::nn {
namespace {

/// The k largest of each row and their columns.
struct Chosen {
  Value values;   ///< fp32 (M, k)
  Value columns;  ///< int64 (M, k)
};

Chosen top_k(Tape& on, const Value& scores, std::int64_t k, std::optional<ExpertDraw> draw) {
  const std::int64_t rows = scores.matrix.rows;
  Value values = new_value(on.device(), DType::fp32, rows, k);
  const Value columns = new_value(on.device(), DType::int64, rows, k);
  on.run(TopK{
      .scores = scores.matrix, .values = values.matrix, .columns = columns.tensor(), .draw = draw});
  if (!on.records(scores.needs_gradient())) return {std::move(values), columns};
  return {
      on.record(std::move(values),
                [node = scores.node, rows, experts = scores.matrix.cols, saved = on.save(columns)](
                    Tape& back, const Value& d) mutable {
                  const Value kept = saved.take(back);
                  Value d_scores = new_value(back.device(), DType::fp32, rows, experts);
                  back.run(TopKBackward{
                      .d_values = d.matrix, .columns = kept.tensor(), .d_scores = d_scores.matrix});
                  back.give(node, std::move(d_scores));
                }),
      columns};
}

/// weights / weights.sum(dim=-1, keepdim=True)
Value divide_by_sum(Tape& on, const Value& x) {
  const Value sums = new_value(on.device(), DType::fp32, x.matrix.rows, 1);
  Value out = new_like(on.device(), x);
  on.run(DivideBySum{.in = x.matrix, .sums = sums.tensor(), .out = out.matrix});
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [node = x.node, saved_x = on.save(x),
                                    saved_sums = on.save(sums)](Tape& back,
                                                                const Value& d) mutable {
    const Value kept_x = saved_x.take(back);
    const Value kept_sums = saved_sums.take(back);
    Value d_x = new_like(back.device(), d);
    back.run(DivideBySumBackward{
        .d_out = d.matrix, .in = kept_x.matrix, .sums = kept_sums.tensor(), .d_in = d_x.matrix});
    back.give(node, std::move(d_x));
  });
}

Value zeros(const Tape& on, std::int64_t count) {
  Value out = new_value(on.device(), DType::fp32, 1, count);
  on.run(FillZero{out.tensor()});
  return out;
}

}  // namespace

Router::Router(const ModelNames& names, const std::string& name, const RouterSettings& settings)
    : settings_(settings), linear_(names, name) {}

Routes Router::operator()(Tape& on, const Value& x, std::uint64_t seed) const {
  Value logits = linear_(on, x);
  const Value probs = softmax(on, logits, DType::fp32);
  std::optional<ExpertDraw> draw;
  if (settings_.imbalance) draw = ExpertDraw{seed, *settings_.imbalance};
  Chosen chosen = top_k(on, probs, settings_.chosen, draw);
  if (settings_.normalised) chosen.values = divide_by_sum(on, chosen.values);
  if (!settings_.weights_in_fp32) chosen.values = cast(on, chosen.values, on.context().dtype);
  return {std::move(logits), std::move(chosen.values), std::move(chosen.columns)};
}

// The logits are a part of the model's output, which lives until the loss has been computed.
Value balance_loss(Tape& on, const std::vector<Routes>& routes, double weight, Tensor loss,
                   const double& factor) {
  const std::int64_t experts = routes.front().logits.matrix.cols;
  const std::int64_t rows =
      routes.front().logits.matrix.rows * static_cast<std::int64_t>(routes.size());
  const Value counts = zeros(on, experts);
  const Value sums = zeros(on, experts);
  bool needs_gradient = false;
  std::vector<Saved> saved;
  std::vector<std::size_t> nodes;
  for (const Routes& own : routes) {
    const Value probs = new_like(on.device(), own.logits);
    on.run(Softmax{own.logits.matrix, probs.matrix});
    on.run(AddRouting{.probs = probs.matrix,
                      .experts = own.experts.tensor(),
                      .counts = counts.tensor(),
                      .sums = sums.tensor()});
    saved.push_back(on.save(probs));
    nodes.push_back(own.logits.node);
    needs_gradient = needs_gradient || own.logits.needs_gradient();
  }
  on.run(BalanceLoss{.counts = counts.tensor(),
                     .sums = sums.tensor(),
                     .rows = rows,
                     .factor = weight,
                     .loss = loss});
  if (!on.records(needs_gradient)) return {};
  return on.record({}, [nodes, rows, weight, &factor, saved = std::move(saved),
                        saved_counts = on.save(counts)](Tape& back, const Value&) mutable {
    const Value kept_counts = saved_counts.take(back);
    for (std::size_t layer = nodes.size(); layer-- > 0;) {
      const Value probs = saved[layer].take(back);
      if (nodes[layer] == Value::kNoNode) continue;
      Value d_logits = new_like(back.device(), probs);
      back.run(BalanceLossBackward{.counts = kept_counts.tensor(),
                                   .rows = rows,
                                   .factor = factor * weight,
                                   .d_probs = d_logits.matrix});
      back.run(SoftmaxBackward{
          .d_probs = d_logits.matrix, .probs = probs.matrix, .d_scores = d_logits.matrix});
      back.give(nodes[layer], std::move(d_logits));
    }
  });
}

}  // namespace dstune::nn
