# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with script/bench
# Squid as a contender: a reverse proxy of one process that keeps copies in memory alone.
# Read by script/bench, whose variables it uses.

start_squid() {
  started_port=$given_port
  cat >"$work/squid/squid.conf" <<TEXT
http_port 127.0.0.1:$started_port accel defaultsite=$authority no-vhost
cache_peer 127.0.0.1 parent $origin_port 0 no-query no-digest no-netdb-exchange originserver name=origin
never_direct allow all
http_access allow all
acl passed urlpath_regex ^/pass/
cache deny passed
cache_mem 1 GB
maximum_object_size_in_memory 4 MB
memory_cache_mode always
access_log none
cache_store_log none
cache_log $work/squid/cache.log
pid_filename $work/squid/squid.pid
coredump_dir $work/squid
netdb_filename none
pinger_enable off
client_idle_pconn_timeout 1 hour
server_idle_pconn_timeout 1 hour
shutdown_lifetime 0 seconds
visible_hostname $authority
TEXT
  # As root it becomes another user, who must be able to write here.
  if [ "$(id -u)" = 0 ]; then
    chmod 711 "$work"
    chown proxy "$work/squid"
  fi
  launch squid "$server_core" squid -N -f "$work/squid/squid.conf"
}
