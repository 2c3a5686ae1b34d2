#!/usr/bin/env bash
# deb.sh [FOLDER]: Debian packages of this tree, for the machine's own architecture, into FOLDER, which is build/ unless
# told. What is built on the way stays in FOLDER/deb.
#
#   neap          the command, the library that it loads into programs, the Python module, the documents
#   libneap0.1    the shared library, by the version of its interface
#   libneap-dev   the header, the static library, the files of pkg-config and CMake
#
# Flags are those of Debian itself; what a package depends on is read from its programs (dpkg-shlibdeps). No script runs
# at installation. The same tree gives the same bytes: SOURCE_DATE_EPOCH is the time of all files, the last commit's
# unless told. DEBFULLNAME and DEBEMAIL name who is to be written to.
set -eu
umask 022
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "${1:-$root/build}"
out=$(cd "${1:-$root/build}" && pwd)
work=$out/deb
cd "$root"

for program in cmake strip dpkg-buildflags dpkg-shlibdeps dpkg-deb; do
    command -v $program >/dev/null || { echo "deb.sh: $program is not there (apt-get install cmake dpkg-dev)" >&2; exit 2; }
done
version=$(sed -n 's/^#define NEAP_VERSION_STRING "\(.*\)"$/\1/p' include/neap.h)
series=${version%.*} # before 1.0 the next minor version may change the interface
next=${series%.*}.$((${series#*.} + 1))
shared=libneap$series # libneap.so.$series is in it
package_version=$version-1
architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-The neap authors} <${DEBEMAIL:-authors@neap.invalid}>"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH
export DEB_BUILD_MAINT_OPTIONS=hardening=+all

quietly() { # quietly COMMAND...: its output only where it fails
    "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}

# ---- the build, and all it installs, in $work/all ----

mkdir -p "$work"
build=$work/build
if ! grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt" ||
    ! grep -qsxF "CMAKE_CACHEFILE_DIR:INTERNAL=$build" "$build/CMakeCache.txt"; then # none yet, or a copied folder
    rm -rf "$build"
    generator=
    command -v ninja >/dev/null && generator=Ninja
    CFLAGS="$(DEB_CFLAGS_STRIP=-g dpkg-buildflags --get CFLAGS) $(dpkg-buildflags --get CPPFLAGS)" \
        LDFLAGS="$(dpkg-buildflags --get LDFLAGS)" \
        quietly cmake -S . -B "$build" ${generator:+-G "$generator"} -DCMAKE_INSTALL_PREFIX=/usr \
        -DCMAKE_BUILD_TYPE=Release -DNEAP_BUILD_TESTS=OFF -DNEAP_BUILD_BENCH=OFF
fi
quietly cmake --build "$build" -j "$(nproc 2>/dev/null || echo 2)" --target product
rm -rf "$work/all" "$work/neap" "$work/$shared" "$work/libneap-dev"
DESTDIR=$work/all quietly cmake --install "$build"
libraries=$(cd "$work/all" && dirname "$(find usr/lib -name libneap.a)")

# ---- which file belongs to which package ----

take() { # take PACKAGE PATH...: out of what was installed
    local package=$1 path
    shift
    for path in "$@"; do
        mkdir -p "$work/$package/$(dirname "$path")"
        mv "$work/all/$path" "$work/$package/$path"
    done
}

cd "$work/all"
for path in usr/bin usr/lib/neap usr/share; do
    [ ! -e $path ] || take neap $path
done
take "$shared" "$libraries"/libneap.so.*
take libneap-dev usr/include/neap.h "$libraries"/{libneap.so,libneap.a,pkgconfig/neap.pc,cmake/neap}
left=$(find . ! -type d)
[ -z "$left" ] || { echo "deb.sh: no package has $left" >&2; exit 1; }
cd "$root"

find "$work/neap" "$work/$shared" -type f \( -path '*/bin/*' -o -name '*.so*' \) \
    -exec strip --strip-unneeded -R .comment -R .note {} +
find "$work/neap" "$work/$shared" -name '*.so*' -type f -exec chmod 644 {} +
strip --strip-debug --enable-deterministic-archives -R .comment -R .note "$work/libneap-dev/$libraries/libneap.a"
modules=$work/neap/usr/lib/python3/dist-packages
install -d "$modules/neap" "$modules/neap-$version.dist-info"
install -m 644 python/neap/*.py python/neap/py.typed "$modules/neap"
printf 'Metadata-Version: 2.1\nName: neap\nVersion: %s\n' "$version" >"$modules/neap-$version.dist-info/METADATA"

install -d "$work/neap/usr/share/doc/neap"
install -m 644 README.md "$work/neap/usr/share/doc/neap"
cp -R --no-preserve=mode docs "$work/neap/usr/share/doc/neap"
gzip -9n <CHANGELOG.md >"$work/neap/usr/share/doc/neap/changelog.gz"
find "$work/neap/usr/share" -path '*/man/man1/*.1' -exec gzip -9n {} +
completions=$work/neap/usr/share/zsh # Debian's zsh looks elsewhere
[ ! -d "$completions" ] || mv "$completions/site-functions" "$completions/vendor-completions"

# ---- the packages ----

needs() { # needs PACKAGE: the packages that its programs need
    local files
    mapfile -t files < <(find "$work/$1" -type f \( -path '*/bin/*' -o -name '*.so*' \))
    mkdir -p "$work/needs/debian"
    printf 'Source: neap\n\nPackage: %s\nArchitecture: any\n' "$1" >"$work/needs/debian/control"
    (cd "$work/needs" && quietly dpkg-shlibdeps -Tneeds "${files[@]}" && sed -n 's/^shlibs:Depends=//p' needs)
}

pack() { # pack PACKAGE SECTION DEPENDS SUMMARY [FIELD...] <DESCRIPTION
    local package=$1 section=$2 depends=$3 summary=$4 dir=$work/$1
    shift 4
    install -d "$dir/DEBIAN" "$dir/usr/share/doc/$package"
    cat >"$dir/usr/share/doc/$package/copyright" <<EOF
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: neap

Files: *
Copyright: $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y) The neap authors
License: Apache-2.0
 On Debian systems the text of this license is in /usr/share/common-licenses/Apache-2.0.
EOF
    printf 'neap (%s) unstable; urgency=medium\n\n  * neap %s, as its own scripts/deb.sh packs it.\n\n -- %s  %s\n' \
        "$package_version" "$version" "$maintainer" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" |
        gzip -9n >"$dir/usr/share/doc/$package/changelog.Debian.gz"
    {
        printf '%s\n' "Package: $package" "Source: neap" "Version: $package_version" "Architecture: $architecture" \
            "Maintainer: $maintainer" "Installed-Size: $(du -sk --apparent-size "$dir/usr" | cut -f 1)" \
            "Depends: $depends" "Section: $section" "Priority: optional" "$@" "Description: $summary"
        sed -e 's/^$/./' -e 's/^/ /'
    } >"$dir/DEBIAN/control"
    (cd "$dir" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    find "$dir" -exec touch --no-dereference -d "@$SOURCE_DATE_EPOCH" {} +
    rm -f "$out/${package}"_*_"$architecture.deb"
    quietly dpkg-deb --root-owner-group -Zxz --build "$dir" "$out"
    echo "${out#"$root"/}/${package}_${package_version}_$architecture.deb"
}

mkdir -p "$work/neap/DEBIAN" "$work/$shared/DEBIAN"
install -m 755 /dev/stdin "$work/neap/DEBIAN/prerm" <<'EOF'
#!/bin/sh
# What Python has compiled there is no file of the package.
set -e
rm -rf /usr/lib/python3/dist-packages/neap/__pycache__
EOF
echo "libneap $series $shared (>= $series), $shared (<< $next~)" >"$work/$shared/DEBIAN/shlibs"
echo "activate-noawait ldconfig" >"$work/$shared/DEBIAN/triggers"

pack neap utils "$(needs neap)" "lowers the high-water mark of GPU memory" "Suggests: python3" <<'EOF'
neap runs programs that repeat themselves, deep-learning training above all, in
less GPU memory, and changes nothing in them: it watches a few iterations,
plans where every block of memory stands and when it can be away, and serves
memory from the plan.

This package has the neap command, which also plans recorded runs, and a Python
module that tells a program what neap does with its memory.
EOF
pack "$shared" libs "$(needs "$shared")" "plans device memory (shared library)" "Multi-Arch: same" <<'EOF'
A device for programs in C: it watches what a program allocates and executes,
plans where every block of memory stands and when it can be away, and serves
memory from the plan.
EOF
pack libneap-dev libdevel "$shared (= $package_version), zlib1g-dev" "plans device memory (development files)" \
    "Multi-Arch: same" <<'EOF'
A device for programs in C: it watches what a program allocates and executes,
plans where every block of memory stands and when it can be away, and serves
memory from the plan.

This package has the header, the static library, and the files by which
pkg-config and CMake find it.
EOF
