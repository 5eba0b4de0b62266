# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with script/bench
# The tables of script/bench: medians, and Larder's ratio to each peer.
# Read by script/bench, whose variables it uses.

# median(VALUES): of numbers in one text.
# shellcheck disable=SC2016
median_function='
  function median(text, n, i, j, held, values) {
    n = split(text, values, " ")
    for (i = 2; i <= n; i++) {
      held = values[i] + 0
      for (j = i - 1; j >= 1 && values[j] + 0 > held; j--) values[j + 1] = values[j]
      values[j + 1] = held
    }
    if (n % 2) return values[(n + 1) / 2] + 0
    return (values[n / 2] + values[n / 2 + 1]) / 2
  }'

# print_table TITLE PATTERN DIGITS: the rows whose names match, in the order they were measured, and
# the contenders that have a figure in any of them.
print_table() {
  grep -Eq "^($2) " "$results" || return 0
  printf '\n%s\n\n' "$1"
  grep -E "^($2) " "$results" | awk -v contenders="$contenders" -v digits="$3" "$median_function"'
    {
      row = $1
      sub(/\.cpu$/, "", row)
      if (!(row in seen)) { seen[row] = 1; order[++rows] = row }
      series[row, $2] = series[row, $2] " " $3
      takesPart[$2] = 1
    }
    END {
      all = split(contenders, candidates, " ")
      for (c = 1; c <= all; c++) if (candidates[c] in takesPart) names[++count] = candidates[c]
      header = sprintf("%-24s", "")
      for (c = 1; c <= count; c++) {
        width[c] = length(names[c]) + 2 > 12 ? length(names[c]) + 2 : 12
        ratioWidth[c] = length(names[c]) + 9 > 16 ? length(names[c]) + 9 : 16
        header = header sprintf("%*s", width[c], names[c])
      }
      for (c = 1; c <= count; c++)
        if (names[c] != "larder" && ("larder" in takesPart))
          header = header sprintf("%*s", ratioWidth[c], "larder/" names[c])
      print header
      for (r = 1; r <= rows; r++) {
        line = sprintf("%-24s", order[r])
        for (c = 1; c <= count; c++) {
          key = order[r] SUBSEP names[c]
          if (key in series) line = line sprintf("%*." digits "f", width[c], median(series[key]))
          else line = line sprintf("%*s", width[c], "-")
        }
        ours = order[r] SUBSEP "larder"
        for (c = 1; c <= count; c++) {
          if (names[c] == "larder" || !("larder" in takesPart)) continue
          key = order[r] SUBSEP names[c]
          if ((key in series) && (ours in series) && median(series[key]) > 0)
            line = line sprintf("%*.2f", ratioWidth[c], median(series[ours]) / median(series[key]))
          else
            line = line sprintf("%*s", ratioWidth[c], "-")
        }
        print line
      }
    }'
}

print_routes() {
  [ -e "$work/routes" ] || return 0
  printf '\nFinding a route (medians; ratio to the first line)\n\n'
  awk '
    NR == 1 { first = $2; print "  routes  nanoseconds   ratio  allocations" }
    { printf "%8d %12d %7.2f %12d\n", $1, $2, $2 / first, $3 }' "$work/routes"
}

# Larder beside itself: both loops, and what they add.
print_loops() {
  grep -q '^loops-' "$results" || return 0
  printf '\nLarder by loops, the load beside it on the same two cores (medians; ratio to one loop)\n\n'
  awk "$median_function"'
    /^loops-/ { series[$1] = series[$1] " " $3 }
    END {
      print "   loops    requests/s   ratio  us of processor/request"
      for (loops = 1; loops <= 2; loops++) {
        rate = median(series["loops-" loops])
        if (loops == 1) first = rate
        printf "%8d %13.0f %7.2f %24.1f\n", loops, rate, (first > 0 ? rate / first : 0),
          median(series["loops-" loops ".cpu"])
      }
    }' "$results"
}

# print_own TITLE FILE: what a program of its own printed.
print_own() {
  [ -e "$work/$2" ] || return 0
  printf '\n%s\n\n' "$1"
  column -t "$work/$2" 2>/dev/null || cat "$work/$2"
}

print_store_entries() {
  [ -e "$work/store-entries" ] || return 0
  printf '\nThe store with %s entries\n\n' "${entries##* }"
  awk '
    NR == 1 { printf "seconds to fill              %s\nown memory an entry, bytes   %s\n", $1, $2 }
    NR == 2 { printf "start to first hit, ms       %.1f\nown memory then, KiB         %s\n", $1, $2 }
  ' "$work/store-entries"
}

print_failures() {
  [ -e "$work/failures" ] || return 0
  printf '\nFailed\n\n'
  cat "$work/failures"
  return 1
}

print_tables() {
  if $needs_servers; then
    printf '\n%s; %s rounds of %s s, %s connections; medians\n' "$(date -u +%Y-%m-%d)" "$rounds" \
      "$seconds" "$connections"
  fi
  # By who takes part, so that no table is wider than it must be.
  load='hit-[0-9a-z-]*|not-modified|miss-1k|pass-1k'
  crowds='connections-[0-9]*|herd-constant'
  churn='soak|entries-few|entries-[0-9]*|entries-[0-9]*-few-asked'
  for some_rows in "$load" "$crowds" "$churn"; do
    print_table "Requests a second (more is better)" "$some_rows" 0
  done
  for some_rows in "$load" "$crowds" "$churn"; do
    print_table "Processor time a request, microseconds (less is better)" "($some_rows)\.cpu" 1
  done
  print_table "Latency, microseconds, at ${pace:-0} requests a second, 70 % of ${pace_of:-} (less is better)" \
    'latency-p[0-9]*' 0
  print_table "Slowest of ${herd_clients} clients at once, milliseconds (less is better)" \
    'herd-cold|herd-expired' 0
  print_table "Start to first answer, milliseconds (less is better)" \
    'restart|entries-restart-[0-9]*' 0
  print_table "Memory of its own (RssAnon), MiB (less is better)" \
    'memory-[0-9a-z]*|entries-memory-[0-9]*|body-1g-[a-z-]*|soak-memory-[a-z]*' 1
  print_table "Memory a connection (growth of RssAnon under load), KiB (less is better)" \
    'connection-memory-[0-9]*' 2
  print_table "The file of a store of 64 MiB after the soak, MiB" 'soak-file-[a-z]*' 1
  print_herd
  print_entries
  print_loops
  print_routes
  print_own "Requests (or bytes) that hit, percent (more is better)" eviction
  print_own "The store under mixed traffic" store-churn
  print_store_entries
}
