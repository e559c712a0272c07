"""The name of this machine's processor."""
import pathlib


def processor(cpuinfo="/proc/cpuinfo"):
    """As the CPU backend names its device (src/kernels/cpu/describe_device.cpp)."""
    try:
        text = pathlib.Path(cpuinfo).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown CPU"
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() in ("model name", "cpu model", "cpu"):
            return value.strip()
    return "unknown CPU"
