#!/bin/sh
# Make a database where there is none yet, then become the server.
# Reads POSTGRES_USER, POSTGRES_DB and POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE.
set -eu
umask 077

user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
# The only folder that is writable on a read-only root.
sockets=/tmp

make_database() {
  password=$(mktemp)
  if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
    cat "$POSTGRES_PASSWORD_FILE" >"$password"
  else
    printf '%s' "${POSTGRES_PASSWORD:?a password is needed}" >"$password"
  fi
  # Beside its place and renamed when whole: a Pod that dies meanwhile starts anew.
  rm -rf "$PGDATA.new"
  initdb --pgdata="$PGDATA.new" --username="$user" --pwfile="$password" \
    --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --no-locale --no-sync
  rm "$password"
  echo 'host all all all scram-sha-256' >>"$PGDATA.new/pg_hba.conf"
  pg_ctl --pgdata="$PGDATA.new" --options="-c listen_addresses='' -k $sockets" --wait start
  if [ "$database" != postgres ]; then
    createdb --host="$sockets" --username="$user" --maintenance-db=postgres "$database"
  fi
  pg_ctl --pgdata="$PGDATA.new" --mode=fast --wait stop
  mv "$PGDATA.new" "$PGDATA"
}

if [ "${1:-postgres}" != postgres ]; then
  exec "$@"
fi
[ "$#" -eq 0 ] || shift
[ -s "$PGDATA/PG_VERSION" ] || make_database
exec postgres -D "$PGDATA" -k "$sockets" -c listen_addresses='*' "$@"
