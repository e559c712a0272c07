"""Counts the bytes of torch's CPU tensors, for compare_memory_with_deepspeed.py."""
import ctypes
import os
import pathlib
import subprocess
import tempfile


class AllocationCounter:
    """What count_allocations.cpp says, of this process and its forks."""

    def __init__(self, torch):
        folder = pathlib.Path(torch.__file__).parent
        source = pathlib.Path(__file__).with_name("count_allocations.cpp")
        with tempfile.TemporaryDirectory() as build:
            library = f"{build}/count_allocations.so"
            subprocess.run([os.environ.get("CXX", "c++"), "-O1", "-shared", "-fPIC", "-std=c++20", str(source),
                            f"-I{folder}/include", f"-L{folder}/lib", "-lc10", "-o", library], check=True)
            self.library = ctypes.CDLL(library)
        self.library.take_peak.restype = ctypes.c_int64

    def begin(self):
        self.library.count_allocations()

    def take_peak(self):
        return self.library.take_peak()

    def leave_out(self, module, name):
        """What a call of this function allocates is not counted."""
        original = getattr(module, name)

        def uncounted(*arguments, **options):
            self.library.pause_counting(1)
            try:
                return original(*arguments, **options)
            finally:
                self.library.pause_counting(0)

        setattr(module, name, uncounted)
