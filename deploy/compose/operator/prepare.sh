#!/bin/sh
# prepare.sh [ENV]: writes the folder CONSILIUM_SETTINGS that compose.yaml mounts, from .env beside it: passwords, the
# settings that name them, the proxy's servers, copies of keys and certificates. Each is readable by the user of the one
# container that reads it, and by nobody else. As root. What is there already stays as it is.
set -eu
umask 077
here=$(dirname "$(realpath "$0")")
set -a
. "$(realpath "${1:-$here/.env}")"
set +a
settings=${CONSILIUM_SETTINGS:?folder to write}
secrets=$settings/secrets
mkdir -p "$secrets" "$settings/conf.d"
chmod 755 "$settings" "$settings/conf.d"

# private UID FILE: from standard input
private() {
    if [ -e "$secrets/$2" ]; then cat > /dev/null; return; fi
    cat > "$secrets/$2.draft"
    chown "$1" "$secrets/$2.draft"
    chmod 400 "$secrets/$2.draft"
    mv "$secrets/$2.draft" "$secrets/$2"
}
drawn() { od -An -tx1 -N32 /dev/urandom | tr -d ' \n'; }

drawn | private 70 postgres_password
drawn | private 472 grafana_password
drawn | private 0 redis_password
database=postgresql://consilium:$(cat "$secrets/postgres_password")@postgres:5432/consilium
broker=redis://consilium:$(cat "$secrets/redis_password")@redis:6379/0
# Who has no password may ask whether it lives.
private 999 redis.acl <<ACL
user default on nopass resetkeys resetchannels -@all +ping
user consilium on #$(printf %s "$(cat "$secrets/redis_password")" | sha256sum | cut -d' ' -f1) ~* &* +@all -@admin -@dangerous +info
ACL

common="chain_url = \"${CHAIN_URL:?HTTP endpoint of a chain node}\"
deployment = \"/etc/consilium/deployment.json\"
artifacts = [\"/srv/artifacts\"]
database_url = \"$database\""
private 10001 api.toml <<TOML
home = "/var/lib/consilium/api"
host = "0.0.0.0"
origin = "https://${API_NAME:?name of the API and the dashboard, as consilium.example.org}"
proxies = ["172.30.92.10"]
$common
TOML
private 10001 worker.toml <<TOML
home = "/var/lib/consilium/worker"
$common
broker_url = "$broker"
TOML
private 10001 aggregator.toml <<TOML
home = "/var/lib/consilium/aggregator"
$common
broker_url = "$broker"
keystore = "/run/secrets/key.json"
password_file = "/run/secrets/password"
TOML

private 10001 key.json < "${KEYSTORE:?encrypted key file of the account that aggregates}"
private 10001 password < "${PASSWORD_FILE:?file with the key file's password}"
private 101 certificate.pem < "${TLS_CERTIFICATE:?PEM file with the names certificate and its chain}"
private 101 certificate.key < "${TLS_KEY:?PEM file with its key}"
install -m 644 "${ADDRESS_BOOK:?address book of the contracts, from consilium chain deploy}" "$settings/deployment.json"

cat > "$settings/proxy.env" <<ENV
LISTEN=8443
CERTIFICATE=/run/secrets/certificate.pem
CERTIFICATE_KEY=/run/secrets/certificate.key
API_NAME=$API_NAME
API=172.30.92.20:8080
ENV
"$here/../../proxy/render" "$settings/proxy.env" "$settings/conf.d" api
sed "s/\${ARTIFACTS_NAME}/${ARTIFACTS_NAME:?name of the artifact store, as artifacts.example.org}/" \
    "$here/artifacts.conf.template" > "$settings/conf.d/artifacts.conf"
chmod 644 "$settings"/conf.d/*.conf
echo "written: $settings"
