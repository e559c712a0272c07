#include "core/train/families/deberta/deberta_attention.hpp"

#include <cmath>
#include <utility>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/relative_positions.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/families/bert/bert_modules.hpp"
#include "core/train/nn/attention/eager_attention.hpp"

namespace dstune::deberta {
namespace {

constexpr std::int64_t kOfQuery = 1;
constexpr std::int64_t kOfKey = -1;

/// transpose_for_scores(), which always makes a copy.
Value by_heads(Tape& on, const AttentionShape& shape, const Value& rows) {
  Value stack = new_stack(on.device(), rows.matrix.dtype, shape.batch * shape.heads, shape.sequence,
                          shape.head_size);
  on.run(StackHeads{.shape = shape,
                    .in = {rows.matrix, shape.head_size},
                    .heads = shape.heads,
                    .out = stack.rows()});
  if (!on.records(rows.needs_gradient())) return stack;
  return on.record(std::move(stack), [shape, node = rows.node](Tape& back, const Value& d) {
    Value d_rows =
        new_value(back.device(), d.matrix.dtype, shape.rows(), shape.heads * shape.head_size);
    back.run(SpreadHeads{.shape = shape,
                         .in = d.rows(),
                         .out = {d_rows.matrix, shape.head_size},
                         .heads = shape.heads});
    back.give(node, std::move(d_rows));
  });
}

/// x.repeat(times, 1, 1)
Value repeat(Tape& on, const Value& x, std::int64_t times) {
  Value out = new_stack(on.device(), x.matrix.dtype, times * x.count, x.matrix.rows, x.matrix.cols);
  Matrix same = as_matrix(x.tensor(), 1, x.numel());
  same.rows = times;
  same.stride = 0;
  on.run(CopyRows{same, as_matrix(out.tensor(), times, x.numel())});
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [count = x.count, times, node = x.node](Tape& back, Value d) {
    if (times > 1) {
      Value sum = new_stack(back.device(), d.matrix.dtype, count, d.matrix.rows, d.matrix.cols);
      back.run(AddBroadcastBackward{d.rows(), sum.rows()});
      d = std::move(sum);
    }
    back.give(node, std::move(d));
  });
}

/// torch.gather() along columns, which saves x and the index.
/// @param transposed  the gradient will come with queries and keys exchanged
Value gather_columns(Tape& on, const Value& x, const Value& index, bool transposed) {
  Value out = new_stack(on.device(), x.matrix.dtype, x.count, x.matrix.rows, index.matrix.cols);
  on.run(GatherColumns{.in = x.rows(), .index = index.tensor(), .out = out.rows()});
  if (!on.records(x.needs_gradient())) return out;
  Saved saved_x = on.save(x);
  Saved saved_index = on.save(index);
  return on.record(std::move(out),
                   [transposed, node = x.node, saved_x = std::move(saved_x),
                    saved_index = std::move(saved_index)](Tape& back, const Value& d) mutable {
                     const Value kept_x = saved_x.take(back);
                     const Value kept_index = saved_index.take(back);
                     Value d_x = new_like(back.device(), kept_x);
                     back.run(GatherColumnsBackward{.d_out = d.rows(),
                                                    .transposed = transposed,
                                                    .index = kept_index.tensor(),
                                                    .d_in = d_x.rows()});
                     back.give(node, std::move(d_x));
                   });
}

/// score += other.transpose(-1, -2): the gradient by `other` has queries and keys exchanged.
Value add_transposed(Tape& on, Value score, const Value& other) {
  on.run(AddTransposed{score.tensor(), other.tensor(), score.matrix.cols});
  const std::size_t first = score.node;
  if (!on.records(score.needs_gradient() || other.needs_gradient())) return score;
  return on.record(std::move(score), [first, second = other.node](Tape& back, Value d) {
    back.give(first, d);
    back.give(second, std::move(d));
  });
}

Value byte_per_pair(const Tape& on, const AttentionShape& shape) {
  Value mask = value_of(Buffer(on.device(), MemoryCategory::activations,
                               static_cast<Bytes>(shape.rows() * shape.sequence)),
                        DType::int8, shape.rows(), shape.sequence);
  on.run(FillZero{mask.tensor()});
  return mask;
}

/// masked_fill() of the scores of hidden keys; it runs although no key is hidden.
Value hide_keys(Tape& on, const AttentionShape& shape, const Value& scores) {
  const Value hidden = byte_per_pair(on, shape);
  Value out = new_like(on.device(), scores);
  on.run(FillMasked{
      .shape = shape, .in = scores.tensor(), .mask = hidden.tensor(), .out = out.tensor()});
  if (!on.records(scores.needs_gradient())) return out;
  return on.record(std::move(out), [shape, node = scores.node, saved = on.save(hidden)](
                                       Tape& back, const Value& d) mutable {
    const Value kept = saved.take(back);
    Value d_scores = new_like(back.device(), d);
    back.run(FillMasked{.shape = shape,
                        .in = d.tensor(),
                        .mask = kept.tensor(),
                        .with_lowest = false,
                        .out = d_scores.tensor()});
    back.give(node, std::move(d_scores));
  });
}

/// The seed of the dropout of the table of relative positions in a layer.
std::uint64_t positions_seed(std::uint64_t seed, std::size_t layer) {
  return seed_of(seed_of(seed), 1 + static_cast<std::uint64_t>(layer));
}

}  // namespace

DisentangledAttention::DisentangledAttention(const ModelSpec& spec, const DebertaSettings& settings,
                                             const ModelNames& names, const RelativeTable* table,
                                             std::size_t index, const std::string& name)
    : table_(table),
      index_(index),
      heads_(spec.num_heads),
      head_size_(spec.head_size()),
      scale_(1 / std::sqrt(static_cast<double>(spec.head_size() * settings.scores()))),
      shares_(settings.share_att_key),
      query_(names, name + ".query_proj"),
      key_(names, name + ".key_proj"),
      value_(names, name + ".value_proj"),
      dropout_{names.module(name + ".dropout"), spec.attention_dropout},
      position_dropout_{names.find_module(name + ".pos_dropout"), spec.residual_dropout} {
  if (table_ == nullptr) return;
  const auto side = [&](const char* shared, const char* own, std::int64_t sign) {
    return Side{nn::Linear(names, name + (shares_ ? shared : own)), sign};
  };
  if (settings.c2p) c2p_ = side(".key_proj", ".pos_key_proj", kOfQuery);
  if (settings.p2c) p2c_ = side(".query_proj", ".pos_query_proj", kOfKey);
}

AttentionShape DisentangledAttention::shape(const Tape& on) const {
  return {.batch = on.context().size,
          .sequence = on.context().sequence_length,
          .heads = heads_,
          .kv_heads = heads_,
          .head_size = head_size_,
          .causal = false,
          .scale = scale_};
}

// The locals of both functions live until they return, also where nothing reads them any more.
Value DisentangledAttention::operator()(Tape& on, const Value& x, const Value& table,
                                        const Value& distances, std::uint64_t seed) const {
  const AttentionShape own = shape(on);
  const Value q = by_heads(on, own, query_(on, x));
  const Value k = by_heads(on, own, key_(on, x));
  const Value v = by_heads(on, own, value_(on, x));
  Value scores = nn::multiply_stacks(on, q, nn::scale(on, k, scale_), Transpose::yes);
  Value dropped;
  Value of_positions;
  if (table_ != nullptr) {
    dropped = position_dropout_(on, table_->for_layer(on, table), positions_seed(seed, index_));
    of_positions = position_scores(on, q, k, dropped, distances);
    scores = nn::add(on, scores, of_positions);
  }
  const Value visible = byte_per_pair(on, own);
  scores = hide_keys(on, own, scores);
  Value probs = nn::softmax(on, scores, scores.matrix.dtype);
  probs = dropout_(on, probs, bert::seed_at(seed, index_, bert::Dropped::attention));
  const Value context = nn::multiply_stacks(on, probs, v, Transpose::no);
  return nn::spread_heads(on, own, context);
}

// The sum begins as the number 0, to which the first tensor is added.
Value DisentangledAttention::position_scores(Tape& on, const Value& q, const Value& k,
                                             const Value& table, const Value& distances) const {
  Value of_keys;
  Value of_queries;
  if (shares_) of_keys = project(on, *p2c_, table);
  if (c2p_) of_queries = project(on, *c2p_, table);
  if (p2c_ && !shares_) of_keys = project(on, *p2c_, table);
  Value score;
  Value c2p;
  if (c2p_) {
    c2p = gather(on, *c2p_, q, of_queries, distances);
    score = nn::affine(on, nn::scale(on, c2p, scale_), 1);
  }
  if (!p2c_) return score;
  const Value p2c = gather(on, *p2c_, k, of_keys, distances);
  if (!score) {
    score = new_like(on.device(), p2c);
    on.run(FillZero{score.tensor()});
  }
  return add_transposed(on, std::move(score), nn::scale(on, p2c, scale_));
}

/// The projected table as heads, made once for every sequence.
Value DisentangledAttention::project(Tape& on, const Side& side, const Value& table) const {
  const AttentionShape of_table{.batch = 1,
                                .sequence = table.matrix.rows,
                                .heads = heads_,
                                .kv_heads = heads_,
                                .head_size = head_size_};
  return repeat(on, by_heads(on, of_table, side.projection(on, table)), on.context().size);
}

/// The product of each query and key with the row of the table for their distance.
Value DisentangledAttention::gather(Tape& on, const Side& side, const Value& heads,
                                    const Value& rows, const Value& distances) const {
  const std::int64_t length = on.context().sequence_length;
  const Value index = new_value(on.device(), DType::int64, length, length);
  on.run(ShiftDistances{.in = distances.tensor(),
                        .sign = side.sign,
                        .span = rows.matrix.rows / 2,
                        .out = index.tensor()});
  const Value products = nn::multiply_stacks(on, heads, rows, Transpose::yes);
  return gather_columns(on, products, index, side.sign == kOfKey);
}

}  // namespace dstune::deberta
