# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with script/bench
# Processes of script/bench: starting, ending by id, and reading their time and memory.
# Read by script/bench, whose variables it uses.

# launch NAME CORE COMMAND...: starts it pinned, in the background; its id goes to $launched.
launch() {
  launch_name=$1
  launch_core=$2
  shift 2
  # What an earlier one of this name has written must not be taken for this one's.
  rm -f "$work/$launch_name.out"
  taskset -c "$launch_core" "$@" >"$work/$launch_name.out" 2>"$work/$launch_name.log" &
  launched=$!
  echo "$launched" >>"$work/processes"
}

# run_bounded COMMAND...: runs it to its end and returns its status. In the background, so that a
# signal is heard at once, and ended with everything else.
run_bounded() {
  "$@" &
  bounded=$!
  echo "$bounded" >>"$work/processes"
  bounded_status=0
  wait "$bounded" || bounded_status=$?
  sed -i "/^$bounded\$/d" "$work/processes"
  return "$bounded_status"
}

# pause_for SECONDS
pause_for() { run_bounded sleep "$1"; }

# end_process ID: asks it to end, waits, and insists after ten seconds.
end_process() {
  kill -TERM "$1" 2>/dev/null || return 0
  attempt=0
  while kill -0 "$1" 2>/dev/null; do
    attempt=$((attempt + 1))
    if [ "$attempt" -gt 200 ]; then
      kill -KILL "$1" 2>/dev/null || true
      break
    fi
    sleep 0.05
  done
  wait "$1" 2>/dev/null || true
  sed -i "/^$1\$/d" "$work/processes"
}

# A second signal must not leave anything behind either. All are asked at once, and then waited for;
# what watches memory ends when the folder is gone.
end_everything() {
  trap - EXIT
  trap '' INT TERM HUP
  left=$(cat "$work/processes")
  for process in $left; do kill -TERM "$process" 2>/dev/null || true; done
  for process in $left; do end_process "$process"; done
  rm -rf "$work"
}

# fail_with_log NAME MESSAGE
fail_with_log() {
  note "--- the end of $1's log"
  tail -n 20 "$work/$1.log" >&2 || true
  die "$2"
}

# process_tree ID: it and its children (nginx's worker, Varnish's cache process).
process_tree() {
  printf '%s' "$1"
  for children in /proc/"$1"/task/*/children; do
    read -r line <"$children" 2>/dev/null || line=${line:-}
    printf ' %s' "$line"
    line=
  done
}

# own_memory_kib ID...: the sum of RssAnon. Mapped pages of a store or of files do not count.
own_memory_kib() {
  memory_kib=0
  for process in "$@"; do
    [ -r "/proc/$process/status" ] || continue
    while read -r key value _; do
      if [ "$key" = RssAnon: ]; then memory_kib=$((memory_kib + value)); fi
    done <"/proc/$process/status"
  done
  echo "$memory_kib"
}

# processor_ticks ID...: user and system time used so far.
processor_ticks() {
  ticks=0
  for process in "$@"; do
    [ -r "/proc/$process/stat" ] || continue
    # The name, in parentheses, may hold spaces: count fields behind it.
    used=$(sed 's/.*) //' "/proc/$process/stat" | awk '{ print $12 + $13 }')
    ticks=$((ticks + used))
  done
  echo "$ticks"
}

# watch_peak ID: samples the tree's own memory every $watch_interval seconds (0.05 where it is
# empty) until $work/watching is gone; the peak in KiB goes to $work/peak.
watch_peak() {
  watched=$(process_tree "$1")
  peak_kib=0
  while [ -e "$work/watching" ]; do
    # shellcheck disable=SC2086
    current_kib=$(own_memory_kib $watched)
    if [ "$current_kib" -gt "$peak_kib" ]; then peak_kib=$current_kib; fi
    sleep "${watch_interval:-0.05}"
  done
  [ ! -d "$work" ] || echo "$peak_kib" >"$work/peak"
}

# wait_for_line NAME PATTERN: until the process has printed it; false after ten seconds.
wait_for_line() {
  attempt=0
  until grep -q "$2" "$work/$1.out" 2>/dev/null; do
    attempt=$((attempt + 1))
    if [ "$attempt" -gt 1000 ] || ! kill -0 "$launched" 2>/dev/null; then return 1; fi
    sleep 0.01
  done
}

free_port() { "$load_tool" ports --count 1; }
