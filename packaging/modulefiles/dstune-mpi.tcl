#%Module1.0
# Environment Modules' module of dstune-mpi, as MODULEPATH/dstune-mpi/VERSION. Set the prefix of cmake --install.
set prefix /opt/dstune-mpi

proc ModulesHelp {} {
    puts stderr {Tunes a DeepSpeed configuration: dstune CONFIG.json [-n N] [-hostfile FILE]; see man dstune.}
    puts stderr {The modules that it was built with must be loaded: its MPI, BLAS and Boost, and CUDA with GPUs.}
}
module-whatis "MPI-native tuner of DeepSpeed/ZeRO configurations"

# prereq openmpi; the one that it was built with
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
prepend-path XDG_DATA_DIRS $prefix/share
setenv DSTUNE_ROOT $prefix/share/dstune-mpi
