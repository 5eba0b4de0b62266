# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with script/bench
# The tables of script/bench: medians, and Larder's ratio to each peer.
# Read by script/bench, whose variables it uses.

# print_table TITLE PATTERN DIGITS: the rows whose names match, in the order they were measured.
print_table() {
  grep -Eq "^($2) " "$results" || return 0
  printf '\n%s\n\n' "$1"
  grep -E "^($2) " "$results" | awk -v contenders="$contenders" -v digits="$3" '
    function median(key, n, i, j, held, values) {
      n = split(series[key], values, " ")
      for (i = 2; i <= n; i++) {
        held = values[i] + 0
        for (j = i - 1; j >= 1 && values[j] + 0 > held; j--) values[j + 1] = values[j]
        values[j + 1] = held
      }
      if (n % 2) return values[(n + 1) / 2] + 0
      return (values[n / 2] + values[n / 2 + 1]) / 2
    }
    {
      row = $1
      sub(/\.cpu$/, "", row)
      if (!(row in seen)) { seen[row] = 1; order[++rows] = row }
      series[row, $2] = series[row, $2] " " $3
    }
    END {
      count = split(contenders, names, " ")
      header = sprintf("%-24s", "")
      for (c = 1; c <= count; c++) header = header sprintf("%12s", names[c])
      for (c = 1; c <= count; c++)
        if (names[c] != "larder" && contenders ~ /larder/)
          header = header sprintf("%16s", "larder/" names[c])
      print header
      for (r = 1; r <= rows; r++) {
        line = sprintf("%-24s", order[r])
        for (c = 1; c <= count; c++) {
          key = order[r] SUBSEP names[c]
          line = line ((key in series) ? sprintf("%12." digits "f", median(key)) : sprintf("%12s", "-"))
        }
        ours = order[r] SUBSEP "larder"
        for (c = 1; c <= count; c++) {
          if (names[c] == "larder" || contenders !~ /larder/) continue
          key = order[r] SUBSEP names[c]
          if ((key in series) && (ours in series) && median(key) > 0)
            line = line sprintf("%16.2f", median(ours) / median(key))
          else
            line = line sprintf("%16s", "-")
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

# print_own TITLE FILE: what a program of its own printed.
print_own() {
  [ -e "$work/$2" ] || return 0
  printf '\n%s\n\n' "$1"
  column -t "$work/$2" 2>/dev/null || cat "$work/$2"
}

print_store_entries() {
  [ -e "$work/store-entries" ] || return 0
  printf '\nThe store with %s entries\n\n' "$entries"
  awk '
    NR == 1 { printf "seconds to fill              %s\nown memory an entry, bytes   %s\n", $1, $2 }
    NR == 2 { printf "start to first hit, ms       %.1f\nown memory then, KiB         %s\n", $1, $2 }
  ' "$work/store-entries"
}

print_tables() {
  load='hit-[0-9a-z-]*|not-modified|miss-1k|pass-1k|entries-few|entries-many|entries-many-few-asked'
  if $needs_servers; then
    printf '\n%s; %s rounds of %s s, %s connections; medians\n' "$(date -u +%Y-%m-%d)" "$rounds" \
      "$seconds" "$connections"
  fi
  print_table "Requests a second (more is better)" "$load" 0
  print_table "Processor time a request, microseconds (less is better)" \
    "(hit-[0-9a-z-]*|not-modified|miss-1k|pass-1k|entries-[a-z-]*)\.cpu" 1
  print_table "Start to first answer, milliseconds (less is better)" 'restart|entries-restart' 0
  print_table "Memory of its own (RssAnon), MiB (less is better)" \
    'memory-[0-9a-z]*|entries-memory|body-1g-[a-z-]*' 1
  print_routes
  print_own "Requests (or bytes) that hit, percent (more is better)" eviction
  print_own "The store under mixed traffic" store-churn
  print_store_entries
}
