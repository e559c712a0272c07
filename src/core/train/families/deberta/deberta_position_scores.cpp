#include "core/train/families/deberta/deberta_position_scores.hpp"

#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/add.hpp"
#include "core/device/operations/fill.hpp"
#include "core/device/operations/relative_positions.hpp"
#include "core/device/operations/relative_scores.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/families/deberta/deberta_position_products.hpp"
#include "core/train/families/deberta/deberta_seeds.hpp"
#include "core/train/layers/stacked_heads.hpp"

namespace dstune::deberta {

namespace {

using layers::Workspace;

layers::Linear projection(const ModelSpec& spec, const ModelNames& names, const std::string& name) {
  return {names, name, spec.hidden_size, spec.hidden_size, layers::WeightOrder::out_in};
}

}  // namespace

PositionScores::PositionScores(const ModelSpec& spec, const DebertaSettings& settings,
                               const ModelNames& names, std::int64_t index, const std::string& self)
    : index_(index),
      heads_(spec.num_heads),
      size_(spec.hidden_size),
      shares_(settings.share_att_key),
      dropout_{.module = names.module(self + ".pos_dropout"),
               .probability = spec.residual_dropout} {
  const auto side = [&](const char* shared, const char* own, std::int64_t sign) {
    return Side{.projection = projection(spec, names, self + (shares_ ? shared : own)),
                .sign = sign};
  };
  if (settings.c2p) c2p_ = side(".key_proj", ".pos_key_proj", kOfQuery);
  if (settings.p2c) p2c_ = side(".query_proj", ".pos_query_proj", kOfKey);
}

AttentionShape PositionScores::table_shape(const RelativeTable& table) const {
  return {.batch = 1,
          .sequence = table.rows(),
          .heads = heads_,
          .kv_heads = heads_,
          .head_size = size_ / heads_};
}

Buffer PositionScores::forward(const Workspace& work, ModuleHooks& hooks,
                               const AttentionShape& shape, const Buffer& q, const Buffer& k,
                               const RelativeTable& table, std::uint64_t seed) {
  dropped_ = dropout_.forward_beside(table.workspace(work), hooks, positions_seed(seed, index_),
                                     table.values());
  if (shares_) project(work, hooks, *p2c_, table);
  if (c2p_) project(work, hooks, *c2p_, table);
  if (p2c_ && !shares_) project(work, hooks, *p2c_, table);
  const auto keeps = [&](const std::optional<Side>& side) {
    return side && side->projection.keeps_input(work, hooks);
  };
  if (!keeps(c2p_) && !keeps(p2c_)) dropped_.reset();
  // Locals of PyTorch's function, which live until it returns.
  const Buffer of_queries = c2p_ ? gather(work, shape, *c2p_, q, table) : Buffer();
  // The sum begins as the number 0, to which the first tensor is added.
  Buffer scores;
  if (c2p_) {
    scores = layers::scaled(work, times(work, of_queries, shape.scale), 1);
  } else {
    scores = layers::new_scores(work, shape, work.dtype);
    work.device->run(FillZero{scores.tensor(work.dtype)});
  }
  if (!p2c_) return scores;
  const Buffer of_keys = gather(work, shape, *p2c_, k, table);
  const Buffer scaled = times(work, of_keys, shape.scale);
  work.device->run(
      AddTransposed{scores.tensor(work.dtype), scaled.tensor(work.dtype), shape.sequence});
  return scores;
}

void PositionScores::project(const Workspace& work, ModuleHooks& hooks, Side& side,
                             const RelativeTable& table) {
  const Workspace of_table = table.workspace(work);
  const AttentionShape shape = table_shape(table);
  Buffer once;
  {
    const Buffer projected =
        side.projection.forward(of_table, hooks, dropped_ ? dropped_ : table.values());
    once = layers::stacked(of_table, shape, {of_table.matrix(projected, size_), shape.head_size},
                           heads_);
  }
  const std::int64_t count = table.rows() * size_;
  side.rows = new_buffer(work, work.micro_batch * count);
  Matrix same = as_matrix(once.tensor(work.dtype), 1, count);
  same.rows = work.micro_batch;
  same.stride = 0;
  work.device->run(
      CopyRows{same, as_matrix(side.rows.tensor(work.dtype), work.micro_batch, count)});
}

Buffer PositionScores::gather(const Workspace& work, const AttentionShape& shape, Side& side,
                              const Buffer& heads, const RelativeTable& table) const {
  const std::int64_t s = shape.sequence;
  side.index = make_buffer(*work.device, MemoryCategory::activations, s * s, DType::int64);
  const Tensor index = side.index.tensor(DType::int64);
  work.device->run(ShiftDistances{
      .in = table.distances(), .sign = side.sign, .span = table.span(), .out = index});
  side.products = new_buffer(work, shape.rows() * shape.heads * table.rows());
  layers::multiply(work, shape.batch * shape.heads, layers::heads_of(work, shape, heads),
                   Transpose::no, layers::stack_of(work, side.rows, table.rows(), shape.head_size),
                   Transpose::yes, layers::stack_of(work, side.products, s, table.rows()));
  Buffer gathered = layers::new_scores(work, shape, work.dtype);
  work.device->run(GatherColumns{.in = product_rows(work, shape, table, side.products),
                                 .index = index,
                                 .out = layers::score_rows(shape, gathered, work.dtype)});
  return gathered;
}

}  // namespace dstune::deberta
