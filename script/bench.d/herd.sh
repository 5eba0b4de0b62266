# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with script/bench
# The row `herd` of script/bench: many clients want one answer that must be fetched.
# Read by script/bench, whose variables it uses. What counts is how often the origin is asked: it
# logs the requests for /herd/ and takes 200 ms for each. Its answers hold for a second, or for an
# hour while $work/origin/long is there.

herd_contenders="larder nginx varnish haproxy"

# origin_requests PATH: how many have reached the origin, refreshes behind an answer too.
origin_requests() {
  sleep 0.6
  grep -cxF "$1" "$work/origin/herd.log" || true
}

# send_herd ROW CONTENDER PATH: true where all had the same whole answer, and then what it took.
send_herd() {
  if ! run_bounded "$load_tool" herd --port "$(port_of "$2")" --authority "$authority" --path "$3" \
    --count "$herd_clients" --seconds 60 >"$work/herd.out" 2>&1; then
    row_failed "$1" "$2" "$(tr '\n' ';' <"$work/herd.out")"
    return 1
  fi
  if [ "$(awk '$1 == "bytes" { print $2 }' "$work/herd.out")" != 8192 ]; then
    row_failed "$1" "$2" "other bytes than the origin's"
    return 1
  fi
  record "$1" "$2" "$(awk '$1 == "milliseconds" { print $2 }' "$work/herd.out")"
}

# herd_cold CONTENDER: nobody has asked before.
herd_cold() {
  touch "$work/origin/long"
  herd_path=/herd/cold-$(date +%s%N)
  send_herd herd-cold "$1" "$herd_path" || return 0
  record herd-cold-origin "$1" "$(origin_requests "$herd_path")"
  ask "$1" "$herd_path" >/dev/null
  cmp -s "$work/body" "$work/origin/files/herd.bin" || die "$1: other bytes than the origin's"
}

# herd_expired CONTENDER: there is a copy, which has expired. The one that replaces it holds for an
# hour, so that one request is enough however long the herd takes.
herd_expired() {
  rm -f "$work/origin/long"
  herd_path=/herd/expired-$(date +%s%N)
  ask "$1" "$herd_path" >/dev/null
  touch "$work/origin/long"
  sleep 2.5
  herd_before=$(origin_requests "$herd_path")
  send_herd herd-expired "$1" "$herd_path" || return 0
  record herd-expired-origin "$1" "$(($(origin_requests "$herd_path") - herd_before))"
}

# herd_constant CONTENDER: a load on a key that expires every second.
herd_constant() {
  rm -f "$work/origin/long"
  herd_path=/herd/constant-$(date +%s%N)
  row_connections=32
  row_seconds=$herd_seconds
  measure herd-constant "$1" "$herd_path"
  row_connections=
  row_seconds=
  record herd-constant-origin "$1" "$(origin_requests "$herd_path")"
}

run_herd_row() {
  if [ "$herd_clients" -gt $((descriptors / 2)) ]; then
    herd_clients=$((descriptors / 2))
    note "herd: $herd_clients clients, as $descriptors open files allow"
  fi
  round=0
  while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    for contender in $herd_contenders; do
      is_in "$contender" "$contenders" || continue
      note "herd: $contender, round $round of $rounds"
      herd_cold "$contender"
      herd_expired "$contender"
      herd_constant "$contender"
    done
  done
}

# Of all rounds the greatest counts: that a herd is held back most times is not what is promised.
print_herd() {
  grep -q '^herd-.*-origin ' "$results" || return 0
  printf '\nOrigin requests of %s clients at once, and of a load of %s s; the greatest of all rounds\n\n' \
    "$herd_clients" "$herd_seconds"
  awk -v contenders="$herd_contenders" -v constant="$((herd_seconds + 1))" '
    BEGIN {
      expected["herd-cold"] = 1
      expected["herd-expired"] = 1
      expected["herd-constant"] = constant
    }
    $1 ~ /^herd-.*-origin$/ {
      row = substr($1, 1, length($1) - 7)
      if (!(row in seen)) { seen[row] = 1; order[++rows] = row }
      if (!((row, $2) in greatest) || $3 > greatest[row, $2]) greatest[row, $2] = $3
      takesPart[$2] = 1
    }
    END {
      count = split(contenders, names, " ")
      line = sprintf("%-24s%12s", "", "expected")
      for (c = 1; c <= count; c++) if (names[c] in takesPart) line = line sprintf("%12s", names[c])
      print line
      for (r = 1; r <= rows; r++) {
        line = sprintf("%-24s%12s", order[r], "<= " expected[order[r]])
        for (c = 1; c <= count; c++) {
          if (!(names[c] in takesPart)) continue
          key = order[r] SUBSEP names[c]
          line = line sprintf("%12s", (key in greatest) ? greatest[key] : "-")
        }
        print line
      }
    }' "$results"
}
