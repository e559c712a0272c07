#include "core/train/families/deberta/deberta_block.hpp"

#include <utility>

#include "core/base/text.hpp"
#include "core/train/families/deberta/deberta_names.hpp"

namespace dstune::deberta {

DebertaBlock::DebertaBlock(const ModelSpec& spec, const DebertaSettings& settings,
                           const ModelNames& names, std::int64_t index)
    : DebertaBlock(spec, settings, names, index, concat(kBlock.stem, index)) {}

DebertaBlock::DebertaBlock(const ModelSpec& spec, const DebertaSettings& settings,
                           const ModelNames& names, std::int64_t index, const std::string& name)
    : scopes_(names, name, kBlock.scopes),
      attention_(spec, settings, names, index, name),
      tail_(spec, names, index, kBlock, name, settings.common.activation) {}

Buffer DebertaBlock::forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x,
                             const RelativeTable* table, std::uint64_t seed) {
  input_ = std::move(x);
  scopes_.forward(hooks, bert::kProject,
                  [&] { attention_.forward(work, hooks, input_, table, seed); });
  saves_input_ = attention_.keeps_input(work, hooks);
  constexpr bool kIsReadAgain = false;
  return tail_.forward(work, hooks, attention_.out, kIsReadAgain, input_, seed);
}

Buffer DebertaBlock::backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_out,
                              RelativeTable* table) {
  bert::BlockTail::Gradients d = tail_.backward(work, hooks, std::move(d_out), attention_.out);
  scopes_.backward(hooks, bert::kProject, [&] {
    attention_.backward(work, hooks, std::move(d.attended), input_, d.input, table);
    input_.reset();
  });
  return std::move(d.input);
}

}  // namespace dstune::deberta
