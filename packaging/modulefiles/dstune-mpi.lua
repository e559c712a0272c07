-- Lmod's module of dstune-mpi, as MODULEPATH/dstune-mpi/VERSION.lua. Set the prefix of cmake --install.
local prefix = "/opt/dstune-mpi"

whatis("Name: dstune-mpi")
whatis("Description: MPI-native tuner of DeepSpeed/ZeRO configurations")
help([[Tunes a DeepSpeed configuration: dstune CONFIG.json [-n N] [-hostfile FILE]; see man dstune.
The modules that it was built with must be loaded: its MPI, BLAS and Boost, and CUDA with GPUs.]])

-- depends_on("openmpi")  -- the one that it was built with

prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
prepend_path("XDG_DATA_DIRS", pathJoin(prefix, "share")) -- completions
setenv("DSTUNE_ROOT", pathJoin(prefix, "share/dstune-mpi")) -- for its job scripts of Slurm
