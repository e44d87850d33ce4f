# What a host does on a device: functions for any POSIX shell with the tools of coreutils, busybox
# or toybox. `on_device.py` sends this text with one call behind it.
#
# Under the cache folder:
#   payloads/SHA256/   an agent, unpacked; its file `complete` is written last
#   incoming/NAME...   what is on its way there; begins with the name of its host's process
#   runs/NAME/         a started agent: pid, token, log, ready, payload; the same kind of name
#   models/            the agents' model store
#   .edgeflare         says that the folder is one of these
# Every function that prints says only lines that the host reads, on stdout.

umask 077

# survey FOLDER: the machine, the cache folder, and what is in it. FOLDER may begin with "~/".
survey() {
  cache=$1
  case $cache in "~/"*) cache=$HOME/${cache#??} ;; esac
  echo "machine $(uname -m)"
  echo "cache $cache"
  [ -f "$cache/.edgeflare" ] || return 0
  echo "used"
  for folder in "$cache"/payloads/*/; do
    [ -f "$folder/complete" ] && basename "$folder" | sed 's/^/payload /'
  done
  for folder in "$cache"/runs/*/ "$cache"/incoming/*; do
    [ -e "$folder" ] && basename "$folder" | sed 's/^/trace /'
  done
  return 0
}

# prepare CACHE: make the folder, and in it the one that files are pushed to; a folder that holds
# other things is left alone.
prepare() {
  if [ ! -f "$1/.edgeflare" ]; then
    if [ -n "$(ls -A "$1" 2> /dev/null)" ]; then
      echo "foreign"
      return
    fi
    mkdir -p "$1" && : > "$1/.edgeflare" || return
  fi
  mkdir -p "$1/incoming"
}

# unpack CACHE SHA256 NAME: check and unpack what was pushed to incoming/NAME.
unpack() {
  cd "$1" || return
  set -- "$2" "incoming/$3"
  # Not on one line: a tool that fails within a pipe or a substitution would go unnoticed.
  sha256sum "$2" > "$2.sum" || return
  read -r sum _ < "$2.sum"
  if [ "$sum" != "$1" ]; then
    echo "arrived as sha256 $sum"
    rm -rf "$2" "$2.sum"
    return 1
  fi
  mkdir -p payloads "$2.tree" && tar -xzf "$2" -C "$2.tree" && : > "$2.tree/complete" || return
  rm -rf "payloads/$1"
  mv "$2.tree" "payloads/$1" && rm -f "$2" "$2.sum"
}

# prune CACHE SHA256 COUNT: of the payloads that no agent runs, keep that one and the COUNT that
# were used last.
prune() {
  cd "$1/payloads" || return
  used=$(cat ../runs/*/payload 2> /dev/null)
  kept=0
  for name in $(ls -t); do
    case "$2 $used" in *"$name"*) continue ;; esac
    kept=$((kept + 1))
    [ "$kept" -le "$3" ] || rm -rf "$name"
  done
}

# launch CACHE SHA256 NAME SECONDS OPTION...: start an agent that outlives this shell; print its
# ready line and its token, or `failed` and what it said.
launch() {
  folder=$1/payloads/$2
  run=$1/runs/$3
  patience=$4
  store=$1/models
  payload=$2
  shift 4
  mkdir -p "$run" && touch "$folder" && cd "$run" || return
  echo "$payload" > payload
  head -c 16 /dev/urandom | od -An -v -tx1 | sed 's/ //g' > token
  TMPDIR=$run
  export TMPDIR
  setsid "$folder/agent" --host 127.0.0.1 --port 0 --store "$store" --token-file "$run/token" \
    "$@" < /dev/null > ready 2> log &
  pid=$!
  echo "$pid" > pid
  began=$(date +%s)
  until [ -s ready ]; do
    if ! kill -0 "$pid" 2> /dev/null; then
      wait "$pid"
      echo "failed with exit code $?"
      last_line
      return
    fi
    if [ $(($(date +%s) - began)) -gt "$patience" ]; then
      echo "failed to be ready within $patience s"
      last_line
      return
    fi
    sleep 0.05 2> /dev/null || sleep 1
  done
  echo "ready $(cat ready)"
  echo "token $(cat token)"
}

last_line() {
  grep -v '^[[:space:]]*$' log | tail -n 1 | sed 's/^/said /'
}

# alive RUN: whether its agent runs; a process of that number that is not at home in RUN is another.
alive() {
  [ -s "$1/pid" ] && [ "/proc/$(cat "$1/pid")/cwd" -ef "$1" ]
}

# halt CACHE NAME: end a run's agent, and remove what it and its host left; say if it was gone.
halt() {
  run=$1/runs/$2
  if [ -d "$run" ]; then
    if alive "$run"; then
      pid=$(cat "$run/pid")
      kill "$pid"
      tries=0
      while alive "$run"; do
        tries=$((tries + 1))
        [ "$tries" -le 60 ] || kill -9 "$pid" 2> /dev/null
        sleep 0.05 2> /dev/null || sleep 1
      done
    else
      echo "gone"
      (cd "$run" && last_line)
    fi
  fi
  rm -rf "$run" "$1/incoming/$2" "$1/incoming/$2".*
}

# running CACHE: the runs whose agents run.
running() {
  for folder in "$1"/runs/*/; do
    alive "${folder%/}" && basename "$folder" | sed 's/^/trace /'
  done
  return 0
}

# remove CACHE: remove what was put there, and the folder if nothing else is in it.
remove() {
  [ -f "$1/.edgeflare" ] && cd "$1" || return
  rm -rf payloads incoming runs models .edgeflare || return
  cd / && rmdir "$1" 2> /dev/null
  return 0
}
