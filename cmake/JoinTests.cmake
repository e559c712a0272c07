# cmake -DROOT=folder -DOUT=file -DSOURCES=a,b -P JoinTests.cmake: writes the sources into one.
#
# Each file's unnamed namespace gets a name of its own: two files may use the same one for a helper.
string(REPLACE "," ";" sources "${SOURCES}")
set(joined)
foreach(source IN LISTS sources)
  file(READ ${source} text)
  file(RELATIVE_PATH name ${ROOT} ${source})
  string(MAKE_C_IDENTIFIER "of_${name}" own)
  string(REPLACE "\nnamespace {\n" "\nnamespace ${own} {} using namespace ${own}; namespace ${own} {\n"
    text "${text}")
  string(APPEND joined "#line 1 \"${name}\"\n${text}")
endforeach()
file(WRITE ${OUT} "${joined}")
