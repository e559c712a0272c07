#include "core/report/tables/fitted_table.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/line_width.hpp"
#include "core/base/text.hpp"

namespace dstune::fitted_table_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

FittedColumn column(const std::string& title, const std::string& cell,
                    std::optional<int> order = std::nullopt) {
  FittedColumn made{.head = {title}, .cells = {cell}, .order = order};
  made.what = title;
  return made;
}

FittedColumn names(const std::string& name) {
  FittedColumn made{.head = {"name", Table::Align::left}, .cells = {name}};
  made.is_name = true;
  return made;
}

std::size_t width_of(const FittedTable& table) { return split(table.text, '\n').front().size(); }

TEST(FittedTable, WithoutAWidthEverythingIsShownAsItIs) {
  const FittedTable table =
      fitted_table({names(std::string(200, 'n')), column("a", "1", 0)}, std::nullopt);

  EXPECT_THAT(table.text, HasSubstr(std::string(200, 'n') + " |"));
  EXPECT_THAT(table.left_out, IsEmpty());
  EXPECT_FALSE(table.has_cut_names);
}

TEST(FittedTable, TheRoomGoesToTheSmallestOrderAndThenToWhatStillFits) {
  // Of 30: 1 for the bar, 7 + 7 for name and step; 8 more for "first", 11 would be too many for
  // "secondary", and 6 are left for "3rd".
  const FittedTable table =
      fitted_table({names("n123"), column("secondary", "1", 2), column("3rd", "1", 3),
                    column("first", "1", 1), column("step", "400")},
                   30);

  EXPECT_THAT(split(table.text, '\n').front(), "| name | 3rd | first | step |");
  EXPECT_THAT(table.left_out, ElementsAre("secondary"));
  EXPECT_EQ(width_of(table), 29U);
}

TEST(FittedTable, NamesGetWhatIsLeftAndAreCutInTheirMiddle) {
  const std::string name = "z3_tmbspg4_" + std::string(40, 'x') + "_gas1";

  const FittedTable table = fitted_table({names(name), column("step", "123456")}, 60);

  EXPECT_EQ(width_of(table), 60U);
  EXPECT_TRUE(table.has_cut_names);
  EXPECT_THAT(table.text, HasSubstr("| " + cut_in_middle(name, 47) + " | 123456 |"));
}

TEST(FittedTable, NumbersAreNeverCut) {
  const FittedTable table =
      fitted_table({names("z3_tmbspg4_gas1"), column("step", std::string(50, '1'))}, 40);

  EXPECT_THAT(table.text, HasSubstr("| " + std::string(50, '1') + " |"));
  EXPECT_THAT(table.text, HasSubstr("| z3_...as1 |"));
}

TEST(FittedTable, AShortNameIsNotCutForAnotherColumn) {
  const FittedTable table =
      fitted_table({names("z3_tmbspg4_gas1"), column("more", "123456789", 0)}, 25);

  EXPECT_THAT(table.text, HasSubstr("| z3_tmbspg4_gas1 |"));
  EXPECT_THAT(table.text, Not(HasSubstr("more")));
  EXPECT_FALSE(table.has_cut_names);
}

/// The names as they are shown.
std::vector<std::string> shown_names(const FittedTable& table) {
  std::vector<std::string> shown;
  for (const std::string& line : split(table.text, '\n')) {
    if (line.starts_with("| z")) shown.emplace_back(trim(split(line, '|')[1]));
  }
  return shown;
}

FittedColumn setting(const std::string& title, std::vector<std::string> cells, int order) {
  FittedColumn made{.head = {title}, .cells = std::move(cells), .order = order};
  made.is_setting = true;
  made.what = title;
  return made;
}

/// Two names of 60 characters that differ in their middle.
FittedColumn alike_names() {
  FittedColumn made = names("");
  made.cells = {"z1_tmbspg64_rbs50000000_agbs50000000_ocF_cgT_rsT_bs4096_gas1",
                "z1_tmbspg64_rbs50000000_agbs50000000_ocT_cgT_rsT_bs4096_gas1"};
  return made;
}

FittedColumn steps(std::size_t digits) {
  return {.head = {"step"}, .cells = {std::string(digits, '1'), std::string(digits, '2')}};
}

TEST(FittedTable, NamesLoseWhatAllHaveInCommonWhereTheirMiddleTellsThemApart) {
  ASSERT_EQ(alike_names().cells[0].size(), 60U);

  const FittedTable table = fitted_table({alike_names(), steps(50)}, 100);

  EXPECT_THAT(shown_names(table), ElementsAre("z1_tmbspg64...ocF_cgT_rsT_bs4096_gas1",
                                              "z1_tmbspg64...ocT_cgT_rsT_bs4096_gas1"));
  EXPECT_LE(width_of(table), 100U);
  EXPECT_TRUE(table.has_cut_names);
}

TEST(FittedTable, ASettingThatTellsRowsApartLeavesNamesAsTheyWere) {
  const FittedTable table =
      fitted_table({alike_names(), setting("overlap", {"false", "true"}, 0), steps(50)}, 100);

  EXPECT_EQ(shown_names(table)[0], shown_names(table)[1]);
  EXPECT_THAT(table.text, HasSubstr("| overlap |"));
  EXPECT_THAT(table.text, HasSubstr("|   false |"));
}

TEST(FittedTable, NamesMakeRoomForTheSettingThatTellsRowsApart) {
  FittedColumn plain = alike_names();
  for (std::string& name : plain.cells) std::ranges::replace(name, '_', '-');  // has no parts
  // Of 100: 1 for the bar and 63 for the step leave 36, of which names first get 25 + 3, and too
  // few are left for the 10 of the setting.
  const FittedTable table =
      fitted_table({plain, setting("overlap", {"false", "true"}, 0), steps(60)}, 100);

  EXPECT_THAT(table.text, HasSubstr("| overlap |"));
  EXPECT_THAT(table.left_out, IsEmpty());
  EXPECT_LE(width_of(table), 100U);
}

TEST(FittedTable, WithoutSuchASettingNamesGetTheRoomThatTellsThemApart) {
  FittedColumn plain = alike_names();
  for (std::string& name : plain.cells) std::ranges::replace(name, '_', '-');

  const FittedTable table = fitted_table({plain, setting("gas", {"1", "1"}, 0), steps(60)}, 100);

  EXPECT_NE(shown_names(table)[0], shown_names(table)[1]);
}

}  // namespace
}  // namespace dstune::fitted_table_test
