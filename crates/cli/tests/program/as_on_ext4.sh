# Access control lists and set-group-id bits, in the current directory: what it prints must be the same on any file
# system of the kernel. Users 1000 and 1001, groups 2000 and 2001.

exec 2>&1
as() { user=$1 group=$2 more=$3; shift 3; setpriv --reuid "$user" --regid "$group" $more sh -c "$*"; }
lists() { getfacl --numeric --omit-header "$@" | grep -v '^$'; stat -c '%n %a' "$@"; }

echo "== a list changes the mode, and the mode the list"
touch a
chmod 640 a
setfacl -m u:1000:rw,g:2001:r a && lists a
chmod 600 a && lists a
chmod 777 a && lists a
setfacl -m m::r a && lists a
setfacl -x u:1000 a && lists a
setfacl -b a && lists a
setfacl -m u::rwx,g::r,o::- a && lists a
getfattr -m - a
setfacl -m u:1000:rw a
getfattr -m - a
setfacl -m d:u:1000:rw a || echo "a file hands nothing down"
chown 1001:2000 a && lists a

echo "== it is what is checked"
echo secret > b
chmod 600 b
as 1000 2000 --clear-groups 'cat b'
setfacl -m u:1000:r b
as 1000 2000 --clear-groups 'cat b; echo more >> b'
as 1001 2000 --clear-groups 'cat b'
setfacl -m g:2001:r b
as 1001 2000 --clear-groups 'cat b'
as 1001 2001 --clear-groups 'cat b'
as 1001 2000 '--groups 2001' 'cat b'
as 1000 2000 --clear-groups 'setfacl -m u:1000:rw b'

echo "== a directory hands its list down, instead of the umask"
mkdir d
umask 077
touch d/before && lists d/before
setfacl -d -m u:1000:rwx,g:2001:rx,o::r d
touch d/file
mkdir d/directory
mkfifo d/pipe
mknod d/device c 1 3
ln -s file d/link
install -m 751 /dev/null d/installed
(umask 0; touch d/open; mkdir d/open-directory)
touch d/directory/below
lists d d/file d/directory d/pipe d/device d/installed d/open d/open-directory d/directory/below
ln d/file d/hard && lists d/hard
mv d/before d/directory/moved && lists d/directory/moved
cp -p d/file outside && lists outside
setfacl -d -m u::rwx,g::rx,o::rx d
setfacl -k d && lists d
touch d/after && lists d/after
mkdir e
setfacl -d -m u::rwx,g::rwx,o::r e
touch e/file && lists e e/file
getfattr -m - e e/file
umask 022

echo "== many entries"
touch many
setfacl -m "$(seq -s, -f 'u:%.0f:rw' 10000 10200)" many && lists many | wc -l
chmod 444 many && lists many | tail -3
mkdir deep
setfacl -d -m "$(seq -s, -f 'u:%.0f:rwx' 10000 10200)" deep
mkdir deep/one
lists deep/one | wc -l

echo "== who writes takes set-id bits away"
for mode in 2767 2777 4767 6767 6777; do
    for who in '0 0 --clear-groups' '1000 2000 --clear-groups' '1000 2001 --clear-groups' '1000 2000 --groups=2001' \
        '1001 2000 --clear-groups'; do
        for how in 'echo x >> f' 'truncate -s 3 f' ': > f' 'fallocate -l 9000 f' 'dd if=/dev/zero of=f bs=4k count=1 oflag=direct conv=notrunc status=none'; do
            rm -f f
            echo something > f
            chown 1001:2001 f
            chmod "$mode" f
            as $who "$how"
            echo "$mode, $who, $how: $(stat -c %a f)"
        done
    done
done

echo "== who gives away takes set-id bits away"
for mode in 2767 2777 4767 6777; do
    for who in '0 0 --clear-groups' '1001 2001 --clear-groups' '1001 2000 --groups=2001' '1001 2000 --groups=2003'; do
        for how in 'chgrp 2000 f' 'chgrp 2001 f' 'chown 1001 f' 'chmod g+r f' 'setfacl -m u:7:r f'; do
            rm -f f
            echo something > f
            chown 1001:2001 f
            chmod "$mode" f
            as $who "$how"
            echo "$mode, $who, $how: $(stat -c '%a %u %g' f)"
        done
    done
done
