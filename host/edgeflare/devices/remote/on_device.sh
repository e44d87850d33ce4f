# What a host does on a device: functions for any POSIX shell with the tools of coreutils, busybox
# or toybox. `on_device.py` sends this text with one call behind it.
#
# Under the cache folder:
#   payloads/SHA256/   an agent, unpacked; its file `complete` is written last
#   incoming/NAME...   what is on its way there; begins with the name of its host's process
#   runs/NAME/         a started agent: pid, token, log, ready, payload, and who began it when; the
#                      same kind of name
#   models/            the agents' model store
#   .edgeflare         says that the folder is one of these
# Every function that prints says only lines that the host reads, on stdout. Names that may have a
# backslash go through printf: many an echo reads it as the beginning of another character.

umask 077

# survey FOLDER: the machine, the cache folder, whether others could write to it, and what is in it. FOLDER may begin with "~/".
survey() {
  cache=$1
  case $cache in "~/"*) cache=$HOME/${cache#??} ;; esac
  echo "machine $(uname -m)"
  echo "bits $(getconf LONG_BIT 2> /dev/null)"
  printf 'cache %s\n' "$cache"
  [ ! -e "$cache" ] || own "$cache" || echo "unsafe"
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

# own FOLDER: whether it is a folder of this user, to which not every user may write: others could put
# a link or an agent of theirs there.
own() {
  set -- $(ls -ldn "$1/.")
  case $1 in ????????w*) return 1 ;; esac
  [ "$3" = "$(id -u)" ]
}

# prepare CACHE: make the folder, and in it the one that files are pushed to; a folder that holds
# other things is left alone. What is a day old and belongs to nothing that runs is removed.
prepare() {
  if [ ! -f "$1/.edgeflare" ]; then
    # Another host may just have made it.
    if [ -n "$(ls -A "$1" 2> /dev/null)" ] && [ ! -f "$1/.edgeflare" ]; then
      echo "foreign"
      return
    fi
    mkdir -p "$1" && own "$1" && : > "$1/.edgeflare" || return
  fi
  mkdir -p "$1/incoming" && cd "$1" || return
  for name in $(find incoming runs -mindepth 1 -maxdepth 1 -mtime +0 2> /dev/null); do
    case $name in runs/*) alive "$1/$name" && continue ;; esac
    rm -rf "$name"
  done
  return 0
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
  # Another host may have been faster, and its agent be running from there.
  if [ ! -f "payloads/$1/complete" ]; then
    rm -rf "payloads/$1"
    mv "$2.tree" "payloads/$1" || return
  fi
  rm -rf "$2" "$2.sum" "$2.tree"
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

# launch CACHE SHA256 NAME HOST SECONDS OPTION...: start an agent that outlives this shell, for the
# host that people call HOST; print its ready line and its token, or `failed` and what it said.
launch() {
  folder=$1/payloads/$2
  run=$1/runs/$3
  host=$4
  patience=$5
  store=$1/models
  payload=$2
  shift 5
  mkdir -p "$run" && touch "$folder" && cd "$run" || return
  echo "$payload" > payload
  began=$(date +%s)
  printf '%s %s\n' "$began" "$host" > began
  head -c 16 /dev/urandom | od -An -v -tx1 | sed 's/ //g' > token
  TMPDIR=$run
  export TMPDIR
  # By the shell of the PATH: an old Android has no /bin, which the script begins with.
  setsid sh "$folder/agent" --host 127.0.0.1 --port 0 --store "$store" --token-file "$run/token" \
    "$@" < /dev/null > ready 2> log &
  pid=$!
  echo "$pid" > pid
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

# alive RUN: whether its agent runs. A process of that number that is at home elsewhere is another.
# Of one whose home is hidden the words tell, and where these are hidden too it counts as the agent:
# one that is taken for gone would run on with nobody to end it.
alive() {
  [ -s "$1/pid" ] || return
  pid=$(cat "$1/pid")
  kill -0 "$pid" 2> /dev/null || return
  if [ -e "/proc/$pid/cwd" ]; then
    [ "/proc/$pid/cwd" -ef "$1" ]
    return
  fi
  case $(cat "/proc/$pid/stat" 2> /dev/null) in *") Z "* | *") X "*) return 1 ;; esac
  case $(tr '\0' '\n' 2> /dev/null < "/proc/$pid/cmdline") in
    "" | *"$1/token"*) return 0 ;;
  esac
  return 1
}

# halt CACHE NAME: end a run's agent, and remove what it and its host left; say if it was gone, or if
# it does not end.
halt() {
  run=$1/runs/$2
  if [ -d "$run" ]; then
    if alive "$run"; then
      pid=$(cat "$run/pid")
      kill "$pid"
      since=$(date +%s)
      while alive "$run"; do
        waited=$(($(date +%s) - since))
        if [ "$waited" -gt 20 ]; then
          echo "stuck $pid"
          return
        fi
        [ "$waited" -lt 5 ] || kill -9 "$pid" 2> /dev/null
        sleep 0.05 2> /dev/null || sleep 1
      done
    else
      echo "gone"
      (cd "$run" && last_line)
    fi
  fi
  rm -rf "$run" "$1/incoming/$2" "$1/incoming/$2".*
}

# running CACHE: the runs whose agents run: name, process, seconds, and the host that began it.
running() {
  now=$(date +%s)
  for folder in "$1"/runs/*/; do
    folder=${folder%/}
    alive "$folder" || continue
    began=$now
    host=
    [ -s "$folder/began" ] && read -r began host < "$folder/began"
    printf 'run %s %s %s %s\n' "${folder##*/}" "$pid" "$((now - began))" "$host"
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
