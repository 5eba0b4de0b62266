# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with script/bench
# Apache Traffic Server as a contender: one net thread, and memory before its disk cache, which it
# cannot do without.
# Read by script/bench, whose variables it uses.

start_trafficserver() {
  started_port=$given_port
  traffic_root=$work/trafficserver
  mkdir -p "$traffic_root/etc" "$traffic_root/run" "$traffic_root/log" "$traffic_root/cache"
  traffic_library=/usr/lib/trafficserver
  if command -v traffic_layout >/dev/null; then
    traffic_library=$(traffic_layout info 2>/dev/null | awk '$1 == "LIBDIR:" { print $2 }')
  fi
  cat >"$traffic_root/runroot.yml" <<TEXT
prefix: $traffic_root
exec_prefix: /usr
bindir: /usr/bin
sbindir: /usr/sbin
sysconfdir: $traffic_root/etc
datadir: $traffic_root/cache
includedir: /usr/include
libdir: $traffic_library
libexecdir: $traffic_library/modules
localstatedir: $traffic_root/run
runtimedir: $traffic_root/run
logdir: $traffic_root/log
cachedir: $traffic_root/cache
TEXT
  # #-1: stays the user that it is.
  cat >"$traffic_root/etc/records.config" <<TEXT
CONFIG proxy.config.http.server_ports STRING $started_port:ip-in=127.0.0.1
CONFIG proxy.config.admin.user_id STRING #-1
CONFIG proxy.config.crash_log_helper STRING NULL
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT 1
CONFIG proxy.config.accept_threads INT 0
CONFIG proxy.config.task_threads INT 1
CONFIG proxy.config.cache.threads_per_disk INT 1
CONFIG proxy.config.cache.ram_cache.size INT 1073741824
CONFIG proxy.config.cache.ram_cache_cutoff INT 4194304
CONFIG proxy.config.cache.ram_cache.use_seen_filter INT 0
CONFIG proxy.config.reverse_proxy.enabled INT 1
CONFIG proxy.config.url_remap.remap_required INT 1
CONFIG proxy.config.url_remap.pristine_host_hdr INT 1
CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT 3600
CONFIG proxy.config.http.keep_alive_no_activity_timeout_out INT 3600
CONFIG proxy.config.net.listen_backlog INT 4096
CONFIG proxy.config.log.logging_enabled INT 0
TEXT
  cat >"$traffic_root/etc/remap.config" <<TEXT
map /pass/ http://127.0.0.1:$origin_port/pass/ @plugin=conf_remap.so @pparam=proxy.config.http.cache.http=0
map / http://127.0.0.1:$origin_port/
TEXT
  echo "$traffic_root/cache 4G" >"$traffic_root/etc/storage.config"
  cat >"$traffic_root/etc/ip_allow.yaml" <<TEXT
ip_allow:
  - apply: in
    ip_addrs: 127.0.0.1
    action: allow
    methods: ALL
TEXT
  for traffic_file in plugin cache hosting volume parent splitdns ssl_multicert socks; do
    : >"$traffic_root/etc/$traffic_file.config"
  done
  launch trafficserver "$server_core" env TS_RUNROOT="$traffic_root/runroot.yml" traffic_server
}
