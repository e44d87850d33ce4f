#!/bin/sh
# Starts the agent of this bundle, with Python, libraries and loader of its own, from wherever it
# lies; takes the options of `python -m edgeflare_agent`.
# EDGEFLARE_AGENT_EMULATOR: command before the loader, quoted for a shell, as in
# "qemu-aarch64-static -cpu cortex-a72", where this machine cannot run the bundle's programs itself.
set -eu

self=$(readlink -f -- "$0" 2>/dev/null) || self=$0
here=$(CDPATH='' cd -- "$(dirname -- "$self")" && pwd -P)
case $here in
    *[\"\\\$\`]*)
        echo "edgeflare-agent: $here: a bundle cannot lie in a folder of that name" >&2
        exit 2
        ;;
esac

if [ -z "${TMPDIR:-}" ]; then
    for TMPDIR in /tmp /data/local/tmp "$here"; do
        [ -d "$TMPDIR" ] && [ -w "$TMPDIR" ] && break
    done
    export TMPDIR
fi

# What is set for the device's own programs is not for these.
unset LD_PRELOAD LD_LIBRARY_PATH PYTHONSTARTUP PYTHONPLATLIBDIR
export PYTHONHOME="$here/python" PYTHONPATH="$here/packages"
export PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1 PYTHONSAFEPATH=1 PYTHONUTF8=1

python="\"$here/lib/@LOADER@\" --inhibit-cache --library-path \"$here/lib\""
python="${EDGEFLARE_AGENT_EMULATOR-} $python \"$here/python/bin/python\" -S"
export EDGEFLARE_AGENT_LAUNCHER="$python"
eval "exec $python -m edgeflare_agent \"\$@\""
