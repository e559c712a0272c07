# cmake --install: the program, dstune (scripts/tune.sh), what that needs, documents, manual pages and completions.
include(GNUInstallDirs)
set(share ${CMAKE_INSTALL_DATADIR}/dstune-mpi)

# Included where the program is added: what follows its link must stand there.
# From one folder to another wherever the prefix lies in the end.
file(RELATIVE_PATH DSTUNE_SHARE_FROM_BIN /${CMAKE_INSTALL_BINDIR} /${share})
file(RELATIVE_PATH DSTUNE_BIN_FROM_SHARE /${share} /${CMAKE_INSTALL_BINDIR})
configure_file(${PROJECT_SOURCE_DIR}/cmake/dstune.in ${PROJECT_BINARY_DIR}/install/dstune @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/installed.sh.in ${PROJECT_BINARY_DIR}/install/installed.sh @ONLY)

install(TARGETS dstune-mpi)
install(PROGRAMS ${PROJECT_BINARY_DIR}/install/dstune TYPE BIN)
install(FILES ${PROJECT_BINARY_DIR}/install/installed.sh DESTINATION ${share}/scripts/tune)
foreach(script IN ITEMS compare_step_with_torch.py run_rank.sh supervise.sh tune.sh verify_against_deepspeed.py)
  install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/${script} DESTINATION ${share}/scripts)
endforeach()
foreach(folder IN ITEMS calibration slurm supervise tune verify)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/scripts/${folder} DESTINATION ${share}/scripts
    USE_SOURCE_PERMISSIONS PATTERN __pycache__ EXCLUDE)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples ${PROJECT_SOURCE_DIR}/hostfiles DESTINATION ${share})
foreach(text IN ITEMS LICENSE README.md)
  install(FILES ${PROJECT_SOURCE_DIR}/${text} TYPE DOC)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs TYPE DOC)

# Made of --help, so that no option is forgotten. A sanitizer reports what MPI leaves behind as a failure.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND NOT CMAKE_CROSSCOMPILING AND NOT DSTUNE_SANITIZE)
  set(manual ${PROJECT_BINARY_DIR}/manual)
  add_custom_command(TARGET dstune-mpi POST_BUILD
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/scripts/make_manual.py
            $<TARGET_FILE:dstune-mpi> ${PROJECT_SOURCE_DIR}/scripts/tune.sh ${manual}
    VERBATIM)
  install(FILES ${manual}/dstune-mpi.1 ${manual}/dstune.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  set(bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${manual}/dstune-mpi.bash DESTINATION ${bash} RENAME dstune-mpi)
  install(FILES ${manual}/dstune-mpi.bash DESTINATION ${bash} RENAME dstune)
  install(FILES ${manual}/_dstune-mpi DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
else()
  message(STATUS "No manual pages and completions: they take Python 3 and a program that runs here")
endif()
