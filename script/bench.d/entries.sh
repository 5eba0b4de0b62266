# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with script/bench
# The row `entries` of script/bench: what many entries cost, beside a cache of a thousand.
# Read by script/bench, whose variables it uses.

# fill_keys CONTENDER COUNT PREFIX [DIGITS]: keys have eight digits, so that all answers have one
# length, unless it is said how many.
fill_keys() {
  run_bounded "$load_tool" keys --port "$(port_of "$1")" --authority "$authority" --count "$2" \
    --prefix "$3" --digits "${4:-8}" --connections 32 --seconds 3600 >"$work/keys.out" 2>&1 ||
    die "$1: filling failed: $(cat "$work/keys.out")"
  show_cached "$1" "$3$(printf "%0${4:-8}d" $(($2 - 1)))"
}

# measure_random ROW CONTENDER COUNT: hits spread over the first COUNT keys.
measure_random() {
  round=0
  while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    measure_lean "$1" "$2" --prefix /k/ --keys "$3" --digits 8
  done
}

# has_disk_for CONTENDER COUNT: nginx has a file for each entry.
has_disk_for() {
  entry_kib=2
  if [ "$1" = nginx ]; then entry_kib=5; fi
  free_kib=$(df -Pk "$work" | awk 'NR == 2 { print $4 }')
  [ "$free_kib" -gt $(($2 * entry_kib + 1048576)) ]
}

run_entries_row() {
  # The store is as large as it becomes: the size only must not be in the way.
  larder_store_size=64GiB
  for contender in $(long_contenders); do
    note "entries: $contender, 1000"
    renew_contender "$contender"
    fill_keys "$contender" 1000 /k/
    measure_random entries-few "$contender" 1000
    for count in $entries; do
      if has_disk_for "$contender" "$count"; then
        measure_entries "$contender" "$count"
      else
        note "entries: left out: the disk has too little space for $count of $contender"
      fi
    done
  done
  usual_larder
}

# measure_entries CONTENDER COUNT: smaller counts were filled before, and are a part of these.
measure_entries() {
  note "entries: $1, filling $2"
  fill_keys "$1" "$2" /k/
  measure_random "entries-$2-few-asked" "$1" 1000
  measure_random "entries-$2" "$1" "$2"
  record_memory "entries-memory-$2" "$1"
  mark=$(ask "$1" /k/00000007)
  end_contender "$1"
  restart_once "entries-restart-$2" "$1" /k/00000007
  [ "$(ask "$1" /k/00000007)" = "$mark" ] || row_failed entries "$1" "/k/00000007 lost at the restart"
}

print_entries() {
  grep -q '^entries-few ' "$results" || return 0
  printf '\nHits over random keys, beside 1,000 entries (ratios of medians)\n\n'
  printf '%-24s%12s%12s%16s\n' '' '' requests/s 'processor time'
  awk "$median_function"'
    /^entries-(few|[0-9]+)(\.cpu)? / {
      if (!(($1, $2) in series)) order[++pairs] = $1 SUBSEP $2
      series[$1, $2] = series[$1, $2] " " $3
    }
    END {
      for (p = 1; p <= pairs; p++) {
        split(order[p], names, SUBSEP)
        if (names[1] ~ /^entries-few/ || names[1] ~ /cpu$/) continue
        processor = names[1] ".cpu" SUBSEP names[2]
        printf "%-24s%12s%12.2f%16.2f\n", names[1], names[2],
          median(series[order[p]]) / median(series["entries-few", names[2]]),
          median(series[processor]) / median(series["entries-few.cpu", names[2]])
      }
    }' "$results"
}
