// The launcher that started this process.
#pragma once

#include <string>

#include "core/base/units.hpp"

namespace dstune {

/// The content of /proc/`pid`/`name`; "" if there is none.
std::string read_proc(int pid, const char* name);

/// The id of the process of Open MPI that started this one, perhaps through a script; 0 if there is
/// none.
int find_launcher();

/// Why the launcher, if it is on this host, could not write `size` more bytes to its standard
/// output, to which it passes on what its ranks print; "" if it can, or if that is not known. The
/// launcher itself does not report a disk that is full.
std::string why_launcher_cannot_print(Bytes size);

/// The folder in which Open MPI keeps its files while it runs, and which an mpirun that is killed
/// leaves behind: ".../ompi.HOST.USER/pid.<process id of mpirun>"; "" under another launcher.
std::string launcher_folder();

}  // namespace dstune
