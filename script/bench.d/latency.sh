# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with script/bench
# Rows of script/bench about waiting and crowds: latency, connections, and Larder's loops.
# Read by script/bench, whose variables it uses.

# begin_row_for ROW CONTENDER: with the bare server started, or the copy of 1 KiB shown.
begin_row_for() {
  if [ "$2" = bare ]; then
    given_port=
    start_bare "$1" 1024
    process_bare=$launched
    port_bare=$started_port
  else
    show_cached "$2" /1k.bin
  fi
}

end_row_for() {
  if [ "$1" = bare ]; then end_process "$process_bare"; fi
}

# capacity CONTENDER: requests a second of hit-1k, to $capacity.
capacity() {
  begin_row_for latency "$1"
  row_seconds=1
  measure_lean latency-capacity "$1" --path /1k.bin
  row_seconds=
  end_row_for "$1"
  capacity=$(awk -v contender="$1" '
    $1 == "latency-capacity" && $2 == contender { found = int($3) }
    END { print found }' "$results")
}

# One rate for all: 70 % of nginx's capacity, or of the slowest contender's. It is measured here,
# because machines drift from minute to minute.
run_latency_row() {
  pace_of=nginx
  if is_in nginx "$contenders"; then
    capacity nginx
    pace_capacity=$capacity
  else
    pace_capacity=
    for contender in $contenders; do
      has_row_for "$contender" latency || continue
      capacity "$contender"
      if [ -z "$pace_capacity" ] || [ "$capacity" -lt "$pace_capacity" ]; then
        pace_capacity=$capacity
        pace_of=$contender
      fi
    done
  fi
  pace=$((pace_capacity * 7 / 10))
  [ "$pace" -gt 0 ] || die "latency: nothing to pace by"
  round=0
  while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    note "latency at $pace requests a second, round $round of $rounds"
    for contender in $contenders; do
      has_row_for "$contender" latency || continue
      begin_row_for latency "$contender"
      keep_pace "$contender"
      end_row_for "$contender"
    done
  done
}

# keep_pace CONTENDER
keep_pace() {
  pace_status=0
  run_bounded "$load_tool" pace --port "$(port_of "$1")" --path /1k.bin --authority "$authority" \
    --rate "$pace" --connections "$connections" --seconds "$seconds" \
    >"$work/pace.out" 2>"$work/pace.log" || pace_status=$?
  case $pace_status in
  0)
    for share in p50 p99; do
      record "latency-$share" "$1" "$(awk -v share="$share" '$1 == share { print $2 }' \
        "$work/pace.out")"
    done
    ;;
  3) note "latency: $1 does not keep up with $pace requests a second" ;;
  *) fail_with_log pace "$1: wrong answers in latency" ;;
  esac
}

# Each number of connections meets a fresh process: memory that a crowd has left behind would hide
# what the next one takes.
run_connections_row() {
  for count in $connection_counts; do
    if [ "$count" -gt $((descriptors - 1024)) ]; then
      note "connections: $count are more than $descriptors open files allow"
      continue
    fi
    round=0
    while [ "$round" -lt "$rounds" ]; do
      round=$((round + 1))
      note "connections: $count, round $round of $rounds"
      for contender in $contenders; do
        has_row_for "$contender" connections || continue
        [ "$contender" = bare ] || renew_contender "$contender"
        begin_row_for connections "$contender"
        connect_many "$count" "$contender"
        end_row_for "$contender"
      done
    done
  done
}

# connect_many COUNT CONTENDER: ten thousand take a while to connect, and a second for a turn each.
connect_many() {
  # shellcheck disable=SC2046
  kib_before=$(own_memory_kib $(process_tree "$(process_of "$2")"))
  row_connections=$1
  if [ "$1" -ge 5000 ]; then row_seconds=$((seconds * 3)); fi
  : >"$work/watching"
  watch_interval=0.2
  watch_peak "$(process_of "$2")" &
  watcher=$!
  measure_lean "connections-$1" "$2" --path /1k.bin
  rm -f "$work/watching"
  wait "$watcher"
  watch_interval=
  row_connections=
  row_seconds=
  record "connection-memory-$1" "$2" "$(awk -v before="$kib_before" -v count="$1" \
    '{ print ($1 > before ? $1 - before : 0) / count }' "$work/peak")"
}

# Larder alone, with both cores to choose from, and so has wrk.
run_loops_row() {
  is_in larder "$contenders" || return 0
  larder_cores=$server_core,$load_core
  row_cores=$larder_cores
  for larder_loops in 1 2; do
    renew_contender larder
    show_cached larder /1k.bin
    round=0
    while [ "$round" -lt "$rounds" ]; do
      round=$((round + 1))
      note "loops: $larder_loops, round $round of $rounds"
      measure_lean "loops-$larder_loops" larder --path /1k.bin
    done
  done
  row_cores=
  usual_larder
  renew_contender larder
}
