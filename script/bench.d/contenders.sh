# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared with script/bench
# The origin and the contenders of script/bench: their configurations, start and end.
# Read by script/bench, whose variables it uses. Each is tuned as one would for one core; where
# a choice is not obvious, a comment says why. Every one listens on a free port of 127.0.0.1.
# Squid and Traffic Server have files of their own.

# All requests carry this Host: a cache that keys by it must not care for ports.
authority=bench.test

# nginx refuses `user` without root, and as root its workers could not read a private folder.
nginx_user() {
  if [ "$(id -u)" = 0 ]; then echo "user root;"; fi
}

write_origin_files() {
  mkdir -p "$work/origin/files/pass"
  for size in 1k:1024 16k:16384 64k:65536 1m:1048576; do
    head -c "${size#*:}" /dev/urandom >"$work/origin/files/${size%%:*}.bin"
  done
  cp "$work/origin/files/1k.bin" "$work/origin/files/pass/1k.bin"
  head -c 8192 /dev/urandom >"$work/origin/files/herd.bin"
  if is_in body-1g "$rows"; then
    # Sparse: they cost the origin no disk.
    for name in stored-fast stored-slow pass/1g; do
      truncate -s "$body_bytes" "$work/origin/files/$name.bin"
    done
  fi
}

start_origin() {
  write_origin_files
  origin_port=$(free_port)
  # X-Origin-Request differs in every answer of the origin: a copy is known by its old value.
  cat >"$work/origin/nginx.conf" <<TEXT
$(nginx_user)
daemon off;
worker_processes 1;
pid $work/origin/nginx.pid;
error_log $work/origin.log warn;
worker_rlimit_nofile $descriptors;
events { worker_connections $((descriptors - 500)); }
http {
  log_format herd '\$request_uri';
  access_log off;
  sendfile on;
  tcp_nodelay on;
  open_file_cache max=1000 inactive=1h;
  open_file_cache_valid 1h;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  client_body_temp_path $work/origin/body;
  proxy_temp_path $work/origin/proxy;
  fastcgi_temp_path $work/origin/fastcgi;
  uwsgi_temp_path $work/origin/uwsgi;
  scgi_temp_path $work/origin/scgi;
  default_type application/octet-stream;
  server {
    listen 127.0.0.1:$origin_port backlog=4096;
    root $work/origin/files;
    add_header Cache-Control max-age=86400;
    add_header X-Origin-Request \$connection-\$connection_requests;
    etag on;
    location /r/ { rewrite ^ /1k.bin break; }
    location /soak/ { rewrite ^ /16k.bin break; }
    # The rate makes a body of two pages take 200 ms, and each request for it is logged. Nothing
    # here is validated: a 304 has no body to wait for.
    location /herd/ {
      access_log $work/origin/herd.log herd;
      limit_rate 22k;
      sendfile_max_chunk 4k;
      etag off;
      if_modified_since off;
      open_file_cache off;
      set \$herd_age 1;
      if (-f $work/origin/long) { set \$herd_age 3600; }
      add_header Cache-Control max-age=\$herd_age;
      add_header X-Origin-Request \$connection-\$connection_requests;
      rewrite ^ /herd.bin break;
    }
    location /k/ { return 200 "entry \$uri: 64 bytes or so of text, as a small JSON answer has it\n"; }
  }
}
TEXT
  launch origin "$load_core" nginx -p "$work/origin" -c "$work/origin/nginx.conf"
  await_answer origin "$origin_port"
}

# await_answer NAME PORT
await_answer() {
  answers_soon "$2" || fail_with_log "$1" "$1 does not answer on port $2"
}

answers_soon() {
  "$load_tool" first --port "$1" --path /1k.bin --authority "$authority" --seconds 15 >/dev/null
}

# start_contender NAME [PORT]: sets process_NAME and port_NAME, and waits until it answers unless
# a port was given: then the caller measures how long that takes.
start_contender() {
  given_port=${2:-}
  mkdir -p "$work/$1"
  case $1 in
  larder) start_larder ;;
  bare) start_bare 1k 1024 ;;
  nginx) start_nginx ;;
  haproxy) start_haproxy ;;
  varnish) start_varnish ;;
  squid) start_squid ;;
  trafficserver) start_trafficserver ;;
  esac
  eval "process_$1=\$launched"
  eval "port_$1=\$started_port"
  [ -n "$given_port" ] || await_answer "$1" "$started_port"
}

end_contender() {
  eval "end_process \"\$process_$1\""
}

# start_if_possible NAME: Squid and Traffic Server differ more from system to system than the
# others: where one does not start, it is left out of the tables.
start_if_possible() {
  start_contender "$1" "$(free_port)"
  given_port=
  if answers_soon "$(port_of "$1")"; then return 0; fi
  note "left out: $1 does not answer; the end of its log:"
  tail -n 5 "$work/$1.log" "$work/$1.out" >&2 || true
  end_contender "$1"
  contenders=$(printf '%s' "$contenders" | tr ' ' '\n' | grep -vx "$1" | tr '\n' ' ')
  contenders=${contenders% }
}

# renew_contender NAME: ends it and starts it anew, without its copies.
renew_contender() {
  end_contender "$1"
  forget_copies "$1"
  start_contender "$1"
}

# forget_copies NAME: empties a contender's store, while it does not run.
forget_copies() {
  rm -rf "${work:?}/$1"
}

# What a row of Larder's own changes for a while: cores, loops and the store's sizes.
usual_larder() {
  larder_cores=$server_core
  larder_loops=1
  larder_store_size=8GiB
  larder_entry_size=2GiB
}

start_larder() {
  listen_port=${given_port:-0}
  cat >"$work/larder/policies.json" <<TEXT
{
  "version": 1,
  "listen": "127.0.0.1:$listen_port",
  "loops": $larder_loops,
  "admin": { "listen": "127.0.0.1:0" },
  "store": { "path": "$work/larder/store", "maxSize": "$larder_store_size",
    "maxEntrySize": "$larder_entry_size" },
  "limits": { "connections": $((descriptors - 1024)) },
  "upstreams": { "origin": { "url": "http://127.0.0.1:$origin_port" } },
  "defaults": { "upstream": "origin", "strategy": "network-only" },
  "routes": [
    { "name": "pass", "match": "/pass/**", "strategy": "network-only" },
    { "name": "herd", "match": "/herd/**", "strategy": "cache-first",
      "staleWhileRevalidate": "10s" },
    { "name": "soak", "match": "/soak/**", "strategy": "cache-first", "ttl": "3s" },
    { "name": "cached", "match": "/**", "strategy": "cache-first", "ttl": "1d" }
  ]
}
TEXT
  launch larder "$larder_cores" "$binaries/larder" serve --config "$work/larder/policies.json"
  if [ -n "$given_port" ]; then
    started_port=$given_port
    return 0
  fi
  wait_for_line larder ' ready: http' || fail_with_log larder "larder does not become ready"
  started_port=$(sed -n 's/.* ready: http:\/\/127\.0\.0\.1:\([0-9]*\).*/\1/p' "$work/larder.out")
}

# start_bare NAME BYTES: one process for each body size; none: a 304.
start_bare() {
  launch "bare-$1" "$server_core" "$binaries/BareServer" --bytes "$2" --port "${given_port:-0}"
  wait_for_line "bare-$1" '^ready ' || fail_with_log "bare-$1" "BareServer does not become ready"
  started_port=$(sed -n 's/^ready //p' "$work/bare-$1.out")
}

start_nginx() {
  started_port=${given_port:-$(free_port)}
  # Some 8,000 keys take a MiB of the zone, which all entries must fit into.
  nginx_zone_mebibytes=256
  for zone_keys in $entries; do
    if [ $((zone_keys / 7000)) -gt "$nginx_zone_mebibytes" ]; then
      nginx_zone_mebibytes=$((zone_keys / 7000))
    fi
  done
  # No tcp_nopush: it holds a head back until the body's sendfile, for nothing at these sizes.
  cat >"$work/nginx/nginx.conf" <<TEXT
$(nginx_user)
daemon off;
worker_processes 1;
pid $work/nginx/nginx.pid;
error_log $work/nginx.log warn;
worker_rlimit_nofile $descriptors;
events { worker_connections $((descriptors - 500)); multi_accept on; }
http {
  access_log off;
  sendfile on;
  tcp_nodelay on;
  open_file_cache max=10000 inactive=1h;
  open_file_cache_valid 1h;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  client_body_temp_path $work/nginx/body;
  proxy_temp_path $work/nginx/proxy;
  fastcgi_temp_path $work/nginx/fastcgi;
  uwsgi_temp_path $work/nginx/uwsgi;
  scgi_temp_path $work/nginx/scgi;
  proxy_cache_path $work/nginx/cache levels=1:2 keys_zone=bench:${nginx_zone_mebibytes}m max_size=16g inactive=1d
    use_temp_path=off;
  upstream origin {
    server 127.0.0.1:$origin_port;
    keepalive 64;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:$started_port backlog=4096;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    location /pass/ { proxy_pass http://origin; }
    location / {
      proxy_pass http://origin;
      proxy_cache bench;
      proxy_cache_lock on;
      proxy_cache_use_stale updating;
      proxy_cache_background_update on;
    }
  }
}
TEXT
  launch nginx "$server_core" nginx -p "$work/nginx" -c "$work/nginx/nginx.conf"
}

start_haproxy() {
  started_port=${given_port:-$(free_port)}
  # HAProxy wants two descriptors a connection. A hit takes one, and the limit of connections to
  # the origin leaves enough of them; so it is told not to insist.
  cat >"$work/haproxy/haproxy.cfg" <<TEXT
global
  nbthread 1
  maxconn $((descriptors - 500))
  no strict-limits
cache bench
  total-max-size 1024
  max-object-size 4194304
  max-age 86400
defaults
  mode http
  timeout client 1h
  timeout http-keep-alive 1h
  timeout server 1h
  timeout connect 5s
  timeout queue 1m
  option http-keep-alive
  http-reuse always
frontend public
  bind 127.0.0.1:$started_port backlog 4096
  default_backend origin
backend origin
  acl is_passed path_beg /pass/
  http-request cache-use bench unless is_passed
  http-response cache-store bench
  server origin 127.0.0.1:$origin_port maxconn 4096
TEXT
  launch haproxy "$server_core" haproxy -db -f "$work/haproxy/haproxy.cfg"
}

start_varnish() {
  started_port=${given_port:-$(free_port)}
  cat >"$work/varnish/bench.vcl" <<TEXT
vcl 4.1;
backend origin { .host = "127.0.0.1"; .port = "$origin_port"; }
sub vcl_recv {
  if (req.url ~ "^/pass/") { return (pass); }
}
TEXT
  # No jail: the working folder is private to whoever runs this. One pool: one core. The queue
  # for threads, short by default, takes a whole herd.
  launch varnish "$server_core" varnishd -j none -F -n "$work/varnish/run" \
    -f "$work/varnish/bench.vcl" -a "127.0.0.1:$started_port" -T none -s malloc,2G \
    -p thread_pools=1 -p thread_pool_min=100 -p thread_pool_max=1000 -p timeout_idle=3600 \
    -p listen_depth=4096 -p thread_queue_limit=20000
}
