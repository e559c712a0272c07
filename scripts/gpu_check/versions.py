"""Prints, as one line of JSON, the versions of what the checks beside PyTorch need, null for what is not here, and
whether torch has a GPU ("cuda"). Run by the Python that trains."""
import importlib.metadata
import json


def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def main():
    found = {name: version(name) for name in ("torch", "transformers", "deepspeed")}
    found["cuda"] = False
    if found["torch"]:
        try:
            import torch
            found.update(cuda=torch.cuda.is_available(), cuda_of_torch=torch.version.cuda,
                         cudnn_of_torch=torch.backends.cudnn.version())
        except (ImportError, OSError) as fault:  # it is installed and does not load
            found.update(torch=None, fault=str(fault))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
