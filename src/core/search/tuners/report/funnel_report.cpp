#include "core/search/tuners/report/funnel_report.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/report/tables/table.hpp"

namespace dstune {
namespace {

StageFunnel sum(const std::vector<StageFunnel>& stages) {
  StageFunnel all;
  for (const StageFunnel& stage : stages) {
    all.generated += stage.generated;
    all.same_effect += stage.same_effect;
    all.does_not_fit += stage.does_not_fit;
    all.dominated += stage.dominated;
    for (const auto& [rule, count] : stage.invalid) all.invalid[rule] += count;
  }
  return all;
}

std::vector<std::string> row(const std::string& title, const StageFunnel& funnel,
                             bool with_dominated) {
  std::vector<std::string> cells = {title, concat(funnel.generated), concat(funnel.valid()),
                                    concat(funnel.distinct()), concat(funnel.fitting())};
  if (with_dominated) cells.push_back(concat(funnel.dominated));
  cells.push_back(concat(funnel.left()));
  return cells;
}

json::object to_json(const StageFunnel& funnel) {
  json::object invalid;
  for (const auto& [rule, count] : funnel.invalid) invalid[rule] = count;
  return {{"stage", funnel.stage},         {"generated", funnel.generated},
          {"invalid", std::move(invalid)}, {"valid", funnel.valid()},
          {"distinct", funnel.distinct()}, {"fitting", funnel.fitting()},
          {"dominated", funnel.dominated}, {"to_be_tried", funnel.left()}};
}

json::object configuration(const Pool& pool, std::size_t place, std::uint64_t index) {
  const Space& space = pool.spaces[place].space;
  const Point point = space.point(index);
  const Fate fate = pool.fate(place, index);
  const Verdict& verdict = pool.verdicts[pool.spaces[place].verdicts[index]];
  const bool is_first = fate.kind != FateKind::invalid && fate.kind != FateKind::same_effect;
  json::object object = {{"name", is_first ? verdict.first : space.name(index)},
                         {"space", name_of(space.origin())},
                         {"stage", point.stage},
                         {"micro_batch", point.micro_batch},
                         {"accumulation_steps", point.accumulation_steps},
                         {"fate", name_of(fate.kind)}};
  if (fate.kind == FateKind::same_effect) {
    object["same_as"] = fate.reason;
  } else if (!fate.reason.empty()) {
    object["reason"] = fate.reason;
  }
  return object;
}

}  // namespace

std::string format_funnel(const Pool& pool) {
  const StageFunnel all = sum(pool.funnel);
  const bool with_dominated = all.dominated > 0;
  std::vector<Table::Column> columns = {
      {"stage"}, {"generated"}, {"valid"}, {"distinct"}, {"fitting"}};
  if (with_dominated) columns.push_back({"dominated"});
  columns.push_back({"to be tried"});
  Table table(columns);
  std::string rules;
  for (const StageFunnel& funnel : pool.funnel) {
    table.add_row(row(concat(funnel.stage), funnel, with_dominated));
    for (const auto& [rule, count] : funnel.invalid) {
      rules += concat("stage ", funnel.stage, ": ", count, " invalid: ", rule, '\n');
    }
  }
  if (pool.funnel.size() > 1) table.add_row(row("all", all, with_dominated));
  return table.to_string() + rules;
}

void add_funnel(json::object& plan, const Pool& pool) {
  json::array& funnel = plan["funnel"].emplace_array();
  for (const StageFunnel& stage : pool.funnel) funnel.push_back(to_json(stage));
  json::array& configurations = plan["configurations"].emplace_array();
  for (std::size_t space = 0; space < pool.spaces.size(); ++space) {
    for (std::uint64_t i = 0; i < pool.spaces[space].space.size(); ++i) {
      configurations.push_back(configuration(pool, space, i));
    }
  }
}

}  // namespace dstune
