# The Debian packages, installed by dpkg into roots that have only what they depend on, and used from within: whatever a
# package needs and does not say is missing there. They go as they came.
set -eu
for program in dpkg dpkg-deb dpkg-query dpkg-shlibdeps dpkg-buildflags; do
    command -v $program >/dev/null || { echo "$program is not there (dpkg-dev)"; exit 77; }
done
if [ "$(id -u)" != 0 ]; then
    unshare --map-root-user true 2>/dev/null || { echo "neither root nor user namespaces: no root can be made"; exit 77; }
    exec unshare --map-root-user bash "$0"
fi
. "$NEAP_SOURCE_DIR/tests/install/consumer.sh"
export PATH=$PATH:/usr/sbin:/sbin
chroot=$(command -v chroot)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }

"$NEAP_SOURCE_DIR/scripts/deb.sh" "$NEAP_BUILD_DIR" >"$work/made"
cd "$NEAP_BUILD_DIR"
version=$(sed -n 's/^#define NEAP_VERSION_STRING "\(.*\)"$/\1/p' "$NEAP_SOURCE_DIR/include/neap.h")
neap=$(grep -o "neap_$version-1_[a-z0-9]*\.deb$" "$work/made")
shared=$(grep -o "libneap[0-9.]*_$version-1_[a-z0-9]*\.deb$" "$work/made")
dev=$(grep -o "libneap-dev_$version-1_[a-z0-9]*\.deb$" "$work/made")

# ---- roots: $root is the one at hand ----

depends() { # depends TEXT: the names in a Depends field, alternatives too
    tr ',|' '\n\n' <<<"$1" | sed -E 's/^ *//; s/[ (:].*//' | sed '/^$/d'
}

# closure PACKAGE...: those that this machine has, and all that they depend on
closure() {
    local todo=("$@") package
    declare -A seen
    while [ ${#todo[@]} -gt 0 ]; do
        package=${todo[0]}
        todo=("${todo[@]:1}")
        [ -z "${seen[$package]:-}" ] || continue
        seen[$package]=1
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || continue
        echo "$package"
        mapfile -t -O ${#todo[@]} todo < <(depends "$(dpkg-query -W -f '${Pre-Depends}, ${Depends}\n' "$package")")
    done
}

begin_root() { # begin_root FOLDER: bare, but for what makes it a root
    local path
    root=$1
    mkdir -p "$root"/{tmp,dev} "$root"/var/lib/dpkg/{info,updates,triggers}
    : >"$root/dev/null"
    : >"$root/var/lib/dpkg/status"
    for path in /bin /sbin /lib*; do
        if [ -L "$path" ]; then # into usr/
            mkdir -p "$root/$(readlink "$path")"
            ln -s "$(readlink "$path")" "$root$path"
        fi
    done
}

# furnish PACKAGE...: copies them and all they depend on from this machine into the root, files and dpkg's records
furnish() {
    local package path
    for package in $(closure "$@"); do
        if grep -qx "Package: $package" "$root/var/lib/dpkg/status"; then continue; fi
        { dpkg-query -s "$package" && echo; } >>"$root/var/lib/dpkg/status"
        find /var/lib/dpkg/info \( -name "$package.list" -o -name "$package:*.list" \) \
            -exec cp -t "$root/var/lib/dpkg/info" {} +
        dpkg-query -L "$package" | grep '^/' | grep -vE '^/(\.|usr/share/(doc|man|locale|info|lintian)/.*)$' |
            while read -r path; do
                if [ -e "$path" ] || [ -L "$path" ]; then echo ".$path"; fi
            done >"$work/files"
        tar -C / --no-recursion -cf - -T "$work/files" | tar -C "$root" --no-same-owner --skip-old-files -xf -
    done
    # Links that packages make at installation, through /etc/alternatives.
    find /usr/lib -lname '/etc/alternatives/*' 2>/dev/null | while read -r path; do
        if [ -e "$root$(readlink -f "$path")" ] && [ ! -e "$root$path" ]; then
            ln -s "$(readlink -f "$path")" "$root$path"
        fi
    done
}

install_deb() { # install_deb DEB: and what it depends on, nothing else
    # shellcheck disable=SC2046  # a list of names
    furnish $(depends "$(dpkg-deb -f "$1" Depends)")
    say_log "$work/log" dpkg --root="$root" --install "$1"
}

inside() { env -i PATH=/usr/bin:/bin HOME=/tmp "$chroot" "$root" "$@"; }

# purge PACKAGE...: nothing stays
purge() {
    local left
    furnish dash coreutils # its scripts need them
    say_log "$work/log" dpkg --root="$root" --purge "$@"
    left=$(find "$root" -path "$root/tmp" -prune -o -path "$root/var/lib/dpkg" -prune -o -name '*neap*' -print)
    [ -z "$left" ] || fail "the packages left $left"
}

# ---- the command and the module ----

begin_root "$work/command"
install_deb "$neap"
inside neap --version | grep -qF "$version" || fail "neap --version does not say $version"
cp "$NEAP_SOURCE_DIR/tests/data/traces/vgg16-100-32.neap.gz" "$root/tmp"
inside neap plan /tmp/vgg16-100-32.neap.gz --no-baselines >"$work/log" || { cat "$work/log"; fail "neap plan"; }
[ -s "$root/usr/share/man/man1/neap.1.gz" ] || fail "there is no man page"
if [ -n "${NEAP_HOOK_LIBRARY:-}" ]; then
    [ -e "$root/usr/bin/../lib/neap/libneap_hook.so" ] || fail "libneap_hook.so is in no package"
fi

furnish python3 # nothing where this machine has another Python than Debian's
if [ -e "$root/usr/bin/python3" ]; then
    inside python3 -W error -c "
import neap
assert neap.stats() is None and 'not run under neap' in neap.summary()
assert neap.__version__ == '$version', neap.__version__" || fail "import neap"
    [ "$(inside python3 -m neap --version)" = "$(inside neap --version)" ] || fail "python -m neap is not the command"
fi
purge neap

# ---- the library ----

dpkg-deb -x "$shared" "$work/dev"
dpkg-deb -x "$dev" "$work/dev"
build_consumers "$work/dev/usr" "$work/user"
begin_root "$work/library"
install_deb "$shared"
for program in pkg pkg-static cmake cmake-static; do
    cp "$work/user/$program" "$root/tmp"
    inside "/tmp/$program" || fail "the program made by $program does not work"
done
install_deb "$dev"
purge libneap-dev libneap${version%.*}
