#include "core/train/layers/embedding_table.hpp"

#include "core/device/operations/embedding.hpp"
#include "core/device/operations/fill.hpp"

namespace dstune::layers {

EmbeddingTable::EmbeddingTable(const ModelNames& names, const std::string& name,
                               std::int64_t table_rows, std::int64_t columns)
    : module(names.module(name)),
      weight(names.tensor(name + ".weight")),
      rows(table_rows),
      size(columns),
      is_trainable(names.is_trainable(weight)) {}

Buffer EmbeddingTable::forward(const Workspace& work, ModuleHooks& hooks, Tensor tokens) const {
  return inside(hooks, module, [&] {
    Buffer out =
        make_buffer(*work.device, MemoryCategory::activations, tokens.numel * size, work.dtype);
    work.device->run(Embedding{.tokens = tokens,
                               .table = as_matrix(hooks.parameter(weight), rows, size),
                               .out = as_matrix(out.tensor(work.dtype), tokens.numel, size)});
    return out;
  });
}

Buffer EmbeddingTable::gradient(const Workspace& work, const Buffer& d_out, Tensor tokens) const {
  if (!is_trainable) return {};
  Buffer result = work.gradient(rows * size);
  const Tensor table = result.tensor(work.dtype);
  work.device->run(FillZero{table});
  work.device->run(
      EmbeddingBackward{.d_out = as_matrix(d_out.tensor(work.dtype), tokens.numel, size),
                        .tokens = tokens,
                        .d_table = as_matrix(table, rows, size)});
  return result;
}

void fill_positions(const Workspace& work, Tensor positions, std::int64_t first) {
  if (!work.is_packed) {
    work.device->run(
        FillPositions{.out = positions, .first = first, .period = work.sequence_length});
    return;
  }
  for (const TokenSpan& sequence : work.sequences) {
    const Tensor own = positions.slice(sequence.begin, sequence.length);
    work.device->run(FillPositions{.out = own, .first = first});
  }
}

}  // namespace dstune::layers
