# Spack's recipe of dstune-mpi; docs/installing.md says how it is used.
from spack.package import *


class DstuneMpi(CMakePackage, CudaPackage):
    """MPI-native tuner of DeepSpeed/ZeRO configurations."""

    license("Apache-2.0")
    # A checkout: `spack develop --path PATH dstune-mpi@main` builds that on this machine.
    version("main", branch="main", git="file:///path/to/dstune-mpi.git")

    variant("onednn", default=True, description="Multiply bf16 by oneDNN, as PyTorch does")
    variant("tests", default=False, description="Build the tests")

    depends_on("cxx", type="build")
    depends_on("cmake@3.24:", type="build")
    depends_on("ninja", type="build")
    depends_on("python@3.8:", type=("build", "run"))
    depends_on("mpi@3.1:")
    depends_on("boost@1.75:+json+program_options")
    depends_on("blas")
    depends_on("re2")
    depends_on("yaml-cpp")
    depends_on("onednn@2.6:", when="+onednn")
    depends_on("nccl@2.18:", when="+cuda")
    depends_on("cuda@12.2:", when="+cuda")
    depends_on("googletest+gmock", type="build", when="+tests")
    depends_on("boost+context", type="build", when="+tests")

    generator("ninja")

    def cmake_args(self):
        arguments = [
            self.define_from_variant("DSTUNE_ONEDNN", "onednn"),
            self.define_from_variant("DSTUNE_TESTS", "tests"),
            self.define_from_variant("DSTUNE_CUDA", "cuda"),
            self.define("DSTUNE_BENCH", False),
        ]
        if self.spec.satisfies("+cuda"):
            arguments.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return arguments

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_version(self):
        Executable(self.prefix.bin.join("dstune-mpi"))("--version")
