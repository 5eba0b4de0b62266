# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with script/bench
# The rows of script/bench: what is measured, and how it is shown to be what it says.
# Read by script/bench, whose variables it uses. Every measurement is one line of $results:
#   ROW CONTENDER VALUE
# Rows named *.cpu are microseconds of processor time a request. Rows with more to them have files
# of their own: latency.sh, herd.sh, soak.sh, entries.sh.

# record ROW CONTENDER VALUE
record() { printf '%s %s %s\n' "$1" "$2" "$3" >>"$results"; }

# row_failed ROW CONTENDER REASON: there is no figure; the others go on, and the script fails.
row_failed() {
  note "failed: $1: $2: $3"
  printf '%s: %s: %s\n' "$1" "$2" "$3" >>"$work/failures"
}

port_of() { eval "printf '%s' \"\$port_$1\""; }
process_of() { eval "printf '%s' \"\$process_$1\""; }

ask_output=$work/body

# ask CONTENDER PATH [CURL-OPTION...]: the body goes to $ask_output; prints the status and the
# origin's mark.
ask() {
  ask_contender=$1
  ask_path=$2
  shift 2
  curl -s --max-time 300 -H "Host: $authority" -o "$ask_output" -D "$work/head" "$@" \
    "http://127.0.0.1:$(port_of "$ask_contender")$ask_path" ||
    die "$ask_contender: no whole answer for $ask_path"
  tr -d '\r' <"$work/head" | awk '
    NR == 1 { status = $2 }
    tolower($1) == "x-origin-request:" { mark = $2 }
    END { print status "/" mark }'
}

# show_cached CONTENDER PATH: waits until two answers in a row are one answer of the origin.
show_cached() {
  [ "$1" != bare ] || return 0
  previous=$(ask "$1" "$2")
  for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    current=$(ask "$1" "$2")
    case $current in
    200/?*)
      if [ "$current" = "$previous" ]; then
        [ ! -e "$work/origin/files$2" ] || cmp -s "$work/body" "$work/origin/files$2" ||
          die "$1: other bytes than the origin's for $2"
        return 0
      fi
      ;;
    *) fail_with_log "$1" "$1: answer $current for $2" ;;
    esac
    previous=$current
    sleep 0.1
  done
  fail_with_log "$1" "$1: does not answer $2 from its cache ($attempt attempts)"
}

# show_passed CONTENDER PATH: two answers in a row are two answers of the origin.
show_passed() {
  first_answer=$(ask "$1" "$2")
  second_answer=$(ask "$1" "$2")
  case $second_answer in
  200/?*) ;;
  *) fail_with_log "$1" "$1: answer $second_answer for $2" ;;
  esac
  [ "$first_answer" != "$second_answer" ] || die "$1: answers $2 from a cache"
}

# measure ROW CONTENDER PATH [WRK-OPTION...]: requests a second and processor time. A row may set
# row_connections, row_seconds and row_cores (wrk's) before, and empties them after.
measure() {
  measure_row=$1
  measure_contender=$2
  measure_path=$3
  shift 3
  measured=$(process_tree "$(process_of "$measure_contender")")
  # shellcheck disable=SC2086
  ticks_before=$(processor_ticks $measured)
  run_bounded taskset -c "${row_cores:-$load_core}" wrk -t1 -c"${row_connections:-$connections}" \
    -d"${row_seconds:-$seconds}s" -H "Host: $authority" "$@" \
    "http://127.0.0.1:$(port_of "$measure_contender")$measure_path" >"$work/wrk.out" ||
    die "wrk failed on $measure_contender"
  # shellcheck disable=SC2086
  ticks_after=$(processor_ticks $measured)
  if grep -Eq 'Non-2xx|Socket errors' "$work/wrk.out"; then
    grep -E 'Non-2xx|Socket errors' "$work/wrk.out" >&2
    fail_with_log "$measure_contender" "$measure_contender: wrong answers in $measure_row"
  fi
  requests=$(awk '/requests in/ { print $1 }' "$work/wrk.out")
  if [ "${requests:-0}" -eq 0 ]; then
    row_failed "$measure_row" "$measure_contender" "no answers in time"
    return 0
  fi
  record "$measure_row" "$measure_contender" \
    "$(awk '/^Requests\/sec:/ { print $2 }' "$work/wrk.out")"
  record_processor_time
}

# record_processor_time: of $measure_contender between $ticks_before and $ticks_after, for $requests.
record_processor_time() {
  record "$measure_row.cpu" "$measure_contender" "$(
    awk -v ticks=$((ticks_after - ticks_before)) -v hertz="$(getconf CLK_TCK)" -v n="$requests" \
      'BEGIN { print ticks / hertz * 1e6 / n }'
  )"
}

# measure_lean ROW CONTENDER [LOADTOOL-OPTION...]: the same by a client that costs a fifth less than
# wrk, for rows where wrk would be the limit. It checks status and length of each answer.
measure_lean() {
  measure_row=$1
  measure_contender=$2
  shift 2
  measured=$(process_tree "$(process_of "$measure_contender")")
  # shellcheck disable=SC2086
  ticks_before=$(processor_ticks $measured)
  run_bounded taskset -c "${row_cores:-$load_core}" "$load_tool" load --authority "$authority" \
    --port "$(port_of "$measure_contender")" --connections "${row_connections:-$connections}" \
    --seconds "${row_seconds:-$seconds}" "$@" >"$work/load.out" 2>"$work/load.log" || {
    cat "$work/load.log" >&2
    fail_with_log "$measure_contender" "$measure_contender: wrong answers in $measure_row"
  }
  # shellcheck disable=SC2086
  ticks_after=$(processor_ticks $measured)
  requests=$(load_figure answers)
  record "$measure_row" "$measure_contender" "$(load_figure requests-per-second)"
  record_processor_time
}

# load_figure NAME: what the load tool printed.
load_figure() { awk -v name="$1" '$1 == name { print $2 }' "$work/load.out"; }

# run_libcurl_row ROW: a client alone, on the servers' core, against the origin.
run_libcurl_row() {
  case $1 in
  miss-1k) set -- "$1" --prefix /r/ ;;
  *) set -- "$1" --path "$(path_of "$1")" ;;
  esac
  libcurl_row=$1
  shift
  run_bounded taskset -c "$server_core" "$load_tool" transfers --authority "$authority" \
    --port "$origin_port" --connections "$connections" --seconds "$seconds" "$@" \
    >"$work/load.out" || die "libcurl: wrong answers in $libcurl_row"
  record "$libcurl_row" libcurl "$(load_figure transfers-per-second)"
  record "$libcurl_row.cpu" libcurl "$(load_figure processor-nanoseconds-per-transfer |
    awk '{ print $1 / 1000 }')"
}

# path_of ROW
path_of() {
  case $1 in
  hit-1k-*) echo /1k.bin ;;
  hit-*) echo "/${1#hit-}.bin" ;;
  not-modified) echo /1k.bin ;;
  pass-1k) echo /pass/1k.bin ;;
  esac
}

# write_script ROW: what wrk runs for it, to $work/script.lua; false where there is nothing to run.
#
# hit-1k-pipelined: 16 requests in one write. miss-1k: never the
# same key twice, over all rounds and contenders.
write_script() {
  case $1 in
  hit-1k-pipelined)
    echo 'init = function()
  local one = {}
  for i = 1, 16 do one[i] = wrk.format("GET") end
  batch = table.concat(one)
end
request = function() return batch end'
    ;;
  miss-1k)
    echo "local number = 0
request = function()
  number = number + 1
  return wrk.format('GET', '/r/$(date +%s%N)-' .. number)
end"
    ;;
  *) return 1 ;;
  esac >"$work/script.lua"
}

# has_row_for CONTENDER ROW: the bare server only knows plain answers, libcurl only fetches, and what Squid and Traffic
# Server are beside the others, the rows of requests a second tell.
has_row_for() {
  case $1/$2 in
  bare/hit-* | bare/not-modified | bare/latency | bare/connections) return 0 ;;
  bare/*) return 1 ;;
  libcurl/miss-1k | libcurl/pass-1k) return 0 ;;
  libcurl/*) return 1 ;;
  squid/hit-* | squid/not-modified | squid/miss-1k | squid/pass-1k) return 0 ;;
  trafficserver/hit-* | trafficserver/not-modified) return 0 ;;
  trafficserver/miss-1k | trafficserver/pass-1k) return 0 ;;
  squid/* | trafficserver/*) return 1 ;;
  *) return 0 ;;
  esac
}

run_load_row() {
  row=$1
  path=$(path_of "$row")
  row_connections=
  if [ "$row" = hit-1k-256 ]; then row_connections=256; fi
  for contender in $contenders; do
    has_row_for "$contender" "$row" || continue
    [ "$contender" != libcurl ] || continue
    case $row in
    miss-1k) ;;
    hit-1k-keys) [ "$contender" = bare ] || fill_keys "$contender" 10000 /r/ 1 ;;
    pass-1k) show_passed "$contender" "$path" ;;
    *) show_cached "$contender" "$path" ;;
    esac
  done
  round=0
  while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    note "$row, round $round of $rounds"
    for contender in $contenders; do
      has_row_for "$contender" "$row" || continue
      if [ "$contender" = bare ]; then
        run_bare_row "$row"
      elif [ "$contender" = libcurl ]; then
        run_libcurl_row "$row"
      elif [ "$row" = not-modified ]; then
        etag=$(curl -sI "http://127.0.0.1:$origin_port$path" | tr -d '\r' |
          awk 'tolower($1) == "etag:" { print $2 }')
        answer=$(ask "$contender" "$path" -H "If-None-Match: $etag")
        case $answer in
        304/*)
          measure_lean "$row" "$contender" --path "$path" --status 304 \
            --field "If-None-Match: $etag"
          ;;
        *)
          [ "$round" -gt 1 ] || note "$contender answers $answer, not 304: left out"
          ;;
        esac
      else
        measure_load_row "$row" "$contender" "$path"
        [ "$row" != miss-1k ] || show_missed "$contender"
      fi
    done
  done
  row_connections=
}

# measure_load_row ROW CONTENDER PATH: small hits by the leaner client, what it cannot do by wrk.
measure_load_row() {
  case $1 in
  hit-1k | hit-1k-256) measure_lean "$1" "$2" --path "$3" ;;
  hit-1k-keys) measure_lean "$1" "$2" --prefix /r/ --keys 10000 ;;
  *)
    if write_script "$1"; then
      measure "$1" "$2" "$3" -s "$work/script.lua"
    else
      measure "$1" "$2" "$3"
    fi
    ;;
  esac
}

# show_missed CONTENDER: what the row asked for last is in the cache now, and was not before.
show_missed() {
  missed=/r/after-$(date +%s%N)
  first_answer=$(ask "$1" "$missed")
  show_cached "$1" "$missed"
  [ "$first_answer" != "$(ask "$1" "$missed-other")" ] || die "$1: one answer for two keys"
}

run_bare_row() {
  given_port=
  bare_file=$(path_of "$1")
  bare_bytes=$(wc -c <"$work/origin/files$bare_file")
  [ "$1" != not-modified ] || bare_bytes=none
  start_bare "$1" "$bare_bytes"
  process_bare=$launched
  port_bare=$started_port
  if [ "$1" = not-modified ]; then
    measure_lean "$1" bare --path / --status 304
  else
    measure_load_row "$1" bare /
  fi
  end_process "$process_bare"
}

# Starts over what was filled before; a copy is known by the origin's mark.
run_restart_row() {
  for contender in $contenders; do
    has_row_for "$contender" restart || continue
    show_cached "$contender" /1k.bin
    kept=$(ask "$contender" /1k.bin)
    restart_kept=true
    round=0
    while [ "$round" -lt "$rounds" ]; do
      round=$((round + 1))
      # Group commits take their time; what is killed here is not a writer.
      end_contender "$contender"
      restart_once restart "$contender" /1k.bin
      [ "$(ask "$contender" /1k.bin)" = "$kept" ] || restart_kept=false
    done
    $restart_kept || note "restart: $contender keeps no copies; its figure is the first answer's"
  done
}

# restart_once ROW CONTENDER PATH: from the start of the process to its first whole answer.
restart_once() {
  restart_port=$(free_port)
  started_at=$(date +%s%N)
  start_contender "$2" "$restart_port"
  "$load_tool" first --port "$restart_port" --path "$3" --authority "$authority" --seconds 30 \
    >/dev/null || fail_with_log "$2" "$2 does not answer after its restart"
  record "$1" "$2" "$((($(date +%s%N) - started_at) / 1000000))"
}

record_memory() {
  # shellcheck disable=SC2046
  record "$1" "$2" "$(own_memory_kib $(process_tree "$(process_of "$2")") | awk '{ print $1 / 1024 }')"
}

run_idle_connections_row() {
  for contender in $contenders; do
    has_row_for "$contender" memory-10k || continue
    note "memory-10k: $contender"
    show_cached "$contender" /1k.bin
    launch idle "$load_core" "$load_tool" idle --port "$(port_of "$contender")" --path /1k.bin \
      --authority "$authority" --count "$idle_connections" --seconds 600
    attempt=0
    until grep -q '^holding ' "$work/idle.out"; do
      attempt=$((attempt + 1))
      [ "$attempt" -lt 600 ] || die "$contender: the idle connections do not come up"
      sleep 0.1
    done
    held=$(sed -n 's/^holding //p' "$work/idle.out")
    [ "$held" = "$idle_connections" ] ||
      note "memory-10k: $contender holds only $held of $idle_connections connections"
    record_memory memory-10k "$contender"
    end_process "$launched"
  done
}

# watched ROW CONTENDER COMMAND...: the command's output goes to $work/watched.
watched() {
  watched_row=$1
  watched_contender=$2
  shift 2
  : >"$work/watching"
  watch_peak "$(process_of "$watched_contender")" &
  watcher=$!
  "$@" >"$work/watched" 2>&1 || note "$watched_row: $watched_contender: $(cat "$work/watched")"
  rm -f "$work/watching"
  wait "$watcher"
  record "$watched_row" "$watched_contender" "$(awk '{ print $1 / 1024 }' "$work/peak")"
}

read_fast() {
  run_bounded curl -s --max-time 600 -H "Host: $authority" -o /dev/null -w '%{size_download}\n' \
    "http://127.0.0.1:$(port_of "$1")$2" >"$work/downloaded" || true
  [ "$(cat "$work/downloaded")" = "$body_bytes" ] || note "body-1g: $1: $2 came to $(
    cat "$work/downloaded"
  ) bytes, not $body_bytes"
}

read_slowly() {
  run_bounded "$load_tool" slow --port "$(port_of "$1")" --path "$2" --authority "$authority" \
    --bytes-per-second 4194304 --seconds "$slow_seconds"
}

# The long rows run for Larder, and for nginx where it was asked for by name.
long_contenders() {
  for contender in $contenders; do
    if [ "$contender" = larder ] || { [ "$contender" = nginx ] && is_in nginx "$named"; }; then
      printf '%s ' "$contender"
    fi
  done
}

run_body_row() {
  for contender in $(long_contenders); do
    note "body-1g: $contender"
    watched body-1g-pass-fast "$contender" read_fast "$contender" /pass/1g.bin
    watched body-1g-pass-slow "$contender" read_slowly "$contender" /pass/1g.bin
    watched body-1g-fill-slow "$contender" read_slowly "$contender" /stored-slow.bin
    watched body-1g-fill-fast "$contender" read_fast "$contender" /stored-fast.bin
    ask_output=/dev/null
    mark=$(ask "$contender" /stored-fast.bin)
    watched body-1g-hit-fast "$contender" read_fast "$contender" /stored-fast.bin
    watched body-1g-hit-slow "$contender" read_slowly "$contender" /stored-fast.bin
    [ "$(ask "$contender" /stored-fast.bin)" = "$mark" ] ||
      note "body-1g: $contender did not store the body"
    ask_output=$work/body
  done
}

# No server takes part: the program prints the number of routes, nanoseconds and allocations.
run_routes_row() {
  note "routes"
  run_bounded taskset -c "$server_core" "$binaries/RouteBench" >"$work/routes"
}

run_eviction_row() {
  note "eviction"
  run_bounded taskset -c "$server_core" "$binaries/EvictionBench" >"$work/eviction"
}

run_churn_row() {
  note "store-churn, $churn_seconds s"
  run_bounded "$binaries/StoreStress" churn "$work/churn" "$churn_seconds" >"$work/store-churn" ||
    note "store-churn: the file is larger than it may be"
  rm -rf "$work/churn"
}

run_store_entries_row() {
  note "store-entries, ${entries##* } entries"
  run_bounded "$binaries/StoreStress" fill "$work/entries" "${entries##* }" >"$work/store-entries" ||
    die "store-entries: filling failed"
  run_bounded "$binaries/StoreStress" first-hit "$work/entries" "${entries##* }" >>"$work/store-entries" ||
    die "store-entries: no hit after the start"
  rm -rf "$work/entries"
}

run_rows() {
  if is_in routes "$rows"; then run_routes_row; fi
  if is_in eviction "$rows"; then run_eviction_row; fi
  if is_in store-churn "$rows"; then run_churn_row; fi
  if is_in store-entries "$rows"; then run_store_entries_row; fi
  $needs_servers || return 0
  start_origin
  usual_larder
  for contender in $contenders; do
    case $contender in
    bare | libcurl) ;;
    squid | trafficserver) start_if_possible "$contender" ;;
    *)
      start_contender "$contender"
      if is_in memory-idle "$rows"; then record_memory memory-idle "$contender"; fi
      ;;
    esac
  done
  # Memory first: pools that load has grown are not what an idle server needs.
  if is_in memory-10k "$rows"; then run_idle_connections_row; fi
  for row_name in $load_rows; do
    if is_in "$row_name" "$rows"; then run_load_row "$row_name"; fi
  done
  for contender in $contenders; do
    # They have no other rows, and their timers would cost the others a little.
    case $contender in squid | trafficserver) end_contender "$contender" ;; esac
  done
  if is_in latency "$rows"; then run_latency_row; fi
  if is_in connections "$rows"; then run_connections_row; fi
  if is_in restart "$rows"; then run_restart_row; fi
  if is_in herd "$rows"; then run_herd_row; fi
  if is_in loops "$rows"; then run_loops_row; fi
  if is_in soak "$rows"; then run_soak_row; fi
  if is_in body-1g "$rows"; then run_body_row; fi
  if is_in entries "$rows"; then run_entries_row; fi
}
