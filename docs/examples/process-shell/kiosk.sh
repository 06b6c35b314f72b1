#!/bin/sh
# An adapter that is a program, in POSIX shell with awk: a folder in, JSON out.
#
# The till is a folder: menu.tsv (id, name and price, separated by tabs) and tickets/, which takes
# orders. The bridge writes its lines without blanks and in one order of keys, so that a shell can
# take them apart without a JSON parser.
set -u
LC_ALL=C
export LC_ALL

answer() { printf '{"type":"answer","id":%s,"result":%s}\n' "$id" "$1"; }
fail() { printf '{"type":"answer","id":%s,"error":{"kind":"%s","message":"%s"%s}}\n' "$id" "$1" "$2" "${3:-}"; }

unreadable() {
    fail ExportUnreadable "$1" ',"place":"menu.tsv","fix":"Nothing to do while the till writes it.","passing":true'
}

read_catalogue() {
    menu=$(mktemp) || return
    if ! cp "$folder/menu.tsv" "$menu" 2>/dev/null; then
        unreadable "menu.tsv is not there."
    elif [ "$(tail -c 1 "$menu" | od -An -tx1 | tr -d ' ')" != 0a ]; then
        unreadable "menu.tsv is still being written."
    else
        answer "$(catalogue "$menu")"
    fi
    rm -f "$menu"
}

catalogue() {
    awk -F '\t' -v decimals="$decimals" '
        BEGIN { printf "{\"items\":[" }
        function quoted(text,    at, each, out) {
            for (at = 1; at <= length(text); at++) {
                each = substr(text, at, 1)
                if (each == "\\" || each == "\"") out = out "\\" each
                else out = out (each < " " ? " " : each)
            }
            return "\"" out "\""
        }
        function bad(text) {
            rows = rows (rows ? "," : "") "{\"place\":\"menu.tsv, row " NR "\",\"text\":" quoted(text) \
                ",\"fix\":\"Correct the item in the till.\",\"external_id\":" quoted($1) "}"
        }
        NF != 3 || $1 == "" || $2 == "" { bad("It is not: id, name, price."); next }
        $3 !~ /^[0-9]+(\.[0-9]+)?$/ { bad("Its price is no amount."); next }
        {
            # Minor units by text: binary fractions get 1.15 wrong.
            split($3 ".", part, ".")
            fraction = part[2]
            while (length(fraction) < decimals) fraction = fraction "0"
            if (length(fraction) > decimals) { bad("Its price has too many decimals."); next }
            minor = part[1] fraction
            sub(/^0+/, "", minor)
            printf "%s{\"external_id\":%s,\"name\":%s,\"price\":%s}", \
                (count++ ? "," : ""), quoted($1), quoted($2), (minor == "" ? "0" : minor)
        }
        END { printf "],\"bad_rows\":[%s]}", rows }
    ' "$1"
}

# Sets key; fails for one that could lead out of the folder.
take_key() {
    rest=${params#'{"key":"'}
    key=${rest%%'"'*}
    case $key in
        '' | .* | *[!A-Za-z0-9._-]*) fail PosFailure "This till cannot keep the order's id."; return 1 ;;
    esac
    [ -d "$folder/tickets" ] || { fail PosOffline "The folder tickets is not there."; return 1; }
}

# Writes stdin to a file atomically.
put() {
    part=$folder/tickets/.$$.part
    cat >"$part" && sync "$part" && mv -f "$part" "$1"
}

write_ticket() {
    take_key || return
    if [ ! -e "$folder/tickets/$key.json" ]; then
        order=${rest#*'"order":'}
        if ! printf '%s\n' "${order%'}'}" | put "$folder/tickets/$key.json"; then
            fail PosOffline "The order cannot be written."
            return
        fi
    fi
    answer "{\"reference\":\"$key.json\"}"
}

find_ticket() {
    take_key || return
    if [ -e "$folder/tickets/$key.json" ]; then answer "{\"reference\":\"$key.json\"}"; else answer null; fi
}

cancel_ticket() {
    take_key || return
    if [ -e "$folder/tickets/$key.json" ]; then
        printf 'cancelled\n' | put "$folder/tickets/$key.cancelled" || { fail PosOffline "It cannot be cancelled."; return; }
    fi
    answer null
}

health() {
    if [ -d "$folder/tickets" ]; then
        answer '{"online":true}'
    else
        answer '{"online":false,"detail":"The folder tickets is not there."}'
    fi
}

IFS= read -r hello || exit 0
rest=${hello#*'"decimals":'}
decimals=${rest%%,*}
rest=${hello#*'"base_dir":"'}
base=${rest%%'"'*}
rest=${hello#*'"folder":"'}
folder=${rest%%'"'*}
if [ "$rest" = "$hello" ]; then
    echo '{"type":"refuse","message":"options.folder is missing: where is the till?"}'
    exit 0
fi
case $folder in /*) ;; *) folder=$base/$folder ;; esac
case $folder in
    *\\*) echo '{"type":"refuse","message":"The path of the folder must be plain ASCII."}'; exit 0 ;;
esac
echo '{"type":"hello","protocol":1,"name":"kiosk","version":"1.0","capabilities":["catalogue","tickets","cancel","health"]}'

while IFS= read -r line; do
    rest=${line#'{"type":"request","id":'}
    id=${rest%%,*}
    rest=${rest#*'"method":"'}
    method=${rest%%'"'*}
    params=${rest#*'"params":'}
    params=${params%'}'}
    case $method in
        read_catalogue | write_ticket | find_ticket | cancel_ticket | health) "$method" ;;
        *) fail PosFailure "This till cannot do that." ;;
    esac
done
