# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with script/bench
# The row `soak` of script/bench: a small store under churn, to see memory or the file grow.
# Read by script/bench, whose variables it uses.

# Of 200,000 URLs of 16 KiB the store holds one in fifty. The power makes the n-th URL as likely as
# 1/n (Zipf). One request of 20 passes the cache, one of 100 ends its connection.
write_soak_script() {
  cat >"$work/soak.lua" <<'TEXT'
local closing = {}
init = function()
  for name, value in pairs(wrk.headers) do closing[name] = value end
  closing["Connection"] = "close"
end
request = function()
  local path = "/soak/" .. math.floor(200000 ^ math.random())
  if math.random(20) == 1 then path = "/pass/1k.bin" end
  if math.random(100) == 1 then return wrk.format("GET", path, closing) end
  return wrk.format("GET", path)
end
TEXT
}

# sample_memory ID: "MILLISECONDS KIB" each half second, until $work/watching is gone.
sample_memory() {
  sampled=$(process_tree "$1")
  sampled_from=$(date +%s%N)
  while [ -e "$work/watching" ]; do
    # shellcheck disable=SC2086
    echo "$((($(date +%s%N) - sampled_from) / 1000000)) $(own_memory_kib $sampled)"
    sleep 0.5
  done >"$work/samples"
}

run_soak_row() {
  is_in larder "$contenders" || return 0
  note "soak: $soak_seconds seconds, and $soak_idle_seconds without a request"
  larder_store_size=64MiB
  larder_entry_size=8MiB
  renew_contender larder
  write_soak_script
  record_memory soak-memory-start larder
  : >"$work/watching"
  sample_memory "$(process_of larder)" &
  watcher=$!
  row_seconds=$soak_seconds
  measure soak larder / -s "$work/soak.lua" --timeout 10s
  row_seconds=
  rm -f "$work/watching"
  wait "$watcher"
  pause_for "$soak_idle_seconds"
  record_memory soak-memory-idle larder
  ask larder /soak/1 >/dev/null
  cmp -s "$work/body" "$work/origin/files/16k.bin" || die "soak: other bytes than the origin's"
  awk -v seconds="$soak_seconds" '
    $1 >= seconds * 100 && early == "" { early = $2 }
    $2 > greatest { greatest = $2 }
    { last = $2 }
    END {
      print "soak-memory-tenth larder", early / 1024
      print "soak-memory-end larder", last / 1024
      print "soak-memory-greatest larder", greatest / 1024
    }' "$work/samples" >>"$results"
  # The file is kept longer than what is used of it; what it takes of the disk are its blocks.
  soak_store=$work/larder/store/data.mdb
  record soak-file-length larder "$(stat -c %s "$soak_store" | awk '{ print $1 / 1048576 }')"
  record soak-file-disk larder "$(stat -c '%b %B' "$soak_store" |
    awk '{ print $1 * $2 / 1048576 }')"
  usual_larder
  renew_contender larder
}
