#!/lab/busybox sh
# The guest's first process: prepares the machine as asked for, runs the program with its output on
# serial lines of its own, says on them that it ended and how, and switches the machine off.
# The lab writes the values into /lab/settings.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/lab/bin
bb=/lab/busybox
. /lab/settings

$bb mkdir -p /proc /sys /dev /tmp /run /lab/bin
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mkdir -p /dev/shm /lab/shm
$bb mount --bind /dev/shm /lab/shm # what goes along from there must not vanish under /dev
$bb mount -t devtmpfs devtmpfs /dev
$bb mkdir -p /dev/shm /dev/pts
$bb mount --bind /lab/shm /dev/shm
$bb mount -t devpts devpts /dev/pts
$bb chmod 1777 /tmp /dev/shm
$bb ln -sf /proc/self/fd /dev/fd
$bb --install -s /lab/bin
$bb ifconfig lo up

for line in $streams; do
    $bb stty -F $line raw -echo -opost
done
exec 5>${streams% *} 6>${streams#* }

set_to() { # FILE VALUE: a switch that this kernel lacks must not go unnoticed
    echo "$2" >"$1" 2>/dev/null || echo "lab: the guest's kernel refuses '$2' for $1" >&6
}

set_to /sys/kernel/mm/transparent_hugepage/enabled "$thp"
set_to /proc/sys/kernel/numa_balancing "$autonuma"
set_to /proc/sys/vm/overcommit_memory "$overcommit"
while read -r name value; do
    [ -n "$name" ] && set_to "/proc/sys/$name" "$value"
done </lab/sysctl

if [ -n "$cpuset_cpus$cpuset_mems" ]; then
    $bb mount -t cgroup2 cgroup2 /sys/fs/cgroup
    set_to /sys/fs/cgroup/cgroup.subtree_control +cpuset
    $bb mkdir /sys/fs/cgroup/lab
    [ -n "$cpuset_cpus" ] && set_to /sys/fs/cgroup/lab/cpuset.cpus "$cpuset_cpus"
    [ -n "$cpuset_mems" ] && set_to /sys/fs/cgroup/lab/cpuset.mems "$cpuset_mems"
fi

(
    if [ -n "$cpuset_cpus$cpuset_mems" ]; then
        echo 0 >/sys/fs/cgroup/lab/cgroup.procs
    fi
    exec /lab/busybox sh /lab/command
) </lab/stdin >&5 2>&6 5>&- 6>&-
status=$?

# What the program left behind must not write after the end mark.
$bb kill -9 -1
# The lab ends the machine when it has read both marks. Switching it off at once would lose a mark that is still on its
# way: closing a line does not wait for it where a process that was killed has the line open a moment longer.
for _ in 1 2 3; do
    echo "$end_mark $status" >&5
    echo "$end_mark $status" >&6
    $bb sleep 5
done
$bb poweroff -f
