#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/relative_scores.hpp"
#include "core/train/families/deberta/deberta_position_products.hpp"
#include "core/train/families/deberta/deberta_position_scores.hpp"
#include "core/train/layers/stacked_heads.hpp"

namespace dstune::deberta {

using layers::Workspace;

// In the order of autograd: what forward did last comes first.
PositionScores::Gradients PositionScores::backward(const Workspace& work, ModuleHooks& hooks,
                                                   ModuleHooks& of_projections,
                                                   const AttentionShape& shape,
                                                   const Buffer& d_scores, const Buffer& q,
                                                   const Buffer& k, RelativeTable& table) {
  Gradients gradients;
  if (p2c_) gradients.k = gather_backward(work, shape, *p2c_, d_scores, k, table);
  if (c2p_) gradients.q = gather_backward(work, shape, *c2p_, d_scores, q, table);
  Buffer d_table;
  const auto add = [&](Side& side) {
    Buffer d = project_backward(work, of_projections, side, table);
    if (!d_table) {
      d_table = std::move(d);
    } else {
      work.device->run(Add{d_table.tensor(work.dtype), d.tensor(work.dtype)});
    }
  };
  if (p2c_ && !shares_) add(*p2c_);
  if (c2p_) add(*c2p_);
  if (shares_) add(*p2c_);
  dropped_.reset();
  Buffer d_whole = dropout_.backward(table.workspace(work), hooks, d_table);
  if (d_whole) d_table = std::move(d_whole);
  table.add_gradient(work, hooks, std::move(d_table));
  return gradients;
}

Buffer PositionScores::gather_backward(const Workspace& work, const AttentionShape& shape,
                                       Side& side, const Buffer& d_scores, const Buffer& heads,
                                       const RelativeTable& table) const {
  Buffer d_products;
  {
    const Buffer d_gathered = times(work, d_scores, shape.scale);
    d_products = new_buffer(work, shape.rows() * shape.heads * table.rows());
    work.device->run(
        GatherColumnsBackward{.d_out = layers::score_rows(shape, d_gathered, work.dtype),
                              .transposed = side.sign == kOfKey,
                              .index = side.index.tensor(DType::int64),
                              .d_in = product_rows(work, shape, table, d_products)});
  }
  side.index.reset();
  side.products.reset();
  const std::int64_t count = shape.batch * shape.heads;
  const layers::Stack d = layers::stack_of(work, d_products, shape.sequence, table.rows());
  const auto rows_of = [&](const Buffer& rows) {
    return layers::stack_of(work, rows, table.rows(), shape.head_size);
  };
  Buffer d_heads = layers::new_stack(work, shape);
  layers::multiply(work, count, d, Transpose::no, rows_of(side.rows), Transpose::no,
                   layers::heads_of(work, shape, d_heads));
  side.d_rows = new_buffer(work, work.micro_batch * table.rows() * size_);
  layers::multiply(work, count, d, Transpose::yes, layers::heads_of(work, shape, heads),
                   Transpose::no, rows_of(side.d_rows));
  side.rows.reset();
  return d_heads;
}

Buffer PositionScores::project_backward(const Workspace& work, ModuleHooks& hooks, Side& side,
                                        const RelativeTable& table) {
  Buffer d_rows = std::move(side.d_rows);
  const Workspace of_table = table.workspace(work);
  const AttentionShape shape = table_shape(table);
  if (work.micro_batch > 1) {
    Buffer d_once = new_buffer(work, table.rows() * size_);
    const std::int64_t heads_rows = heads_ * table.rows();
    work.device->run(AddBroadcastBackward{
        as_matrix(d_rows.tensor(work.dtype), work.micro_batch * heads_rows, shape.head_size),
        as_matrix(d_once.tensor(work.dtype), heads_rows, shape.head_size)});
    d_rows = std::move(d_once);
  }
  const Buffer d_projected = of_table.activation(size_);
  layers::spread(of_table, shape, d_rows, {of_table.matrix(d_projected, size_), shape.head_size},
                 heads_);
  d_rows.reset();
  return side.projection.backward(of_table, hooks, d_projected,
                                  dropped_ ? dropped_ : table.values());
}

}  // namespace dstune::deberta
