#include "core/report/tables/fitted_table.hpp"

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

}  // namespace
}  // namespace dstune::fitted_table_test
