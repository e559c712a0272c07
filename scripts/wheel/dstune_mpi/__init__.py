"""dstune-mpi as a wheel: this folder is a bundle (docs/bundle.md in it), and commands.py starts what lies there."""
