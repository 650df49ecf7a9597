#!/bin/sh
# Writes the keys and settings of an SSH server and its client, and a file to copy, to the current folder. SetEnv preloads the
# library into the sessions too.
capabilities=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
for one in 6:SETGID 7:SETUID 18:SYS_CHROOT 29:AUDIT_WRITE; do
    [ $((0x$capabilities >> ${one%:*} & 1)) = 1 ] || { echo "sshd needs CAP_${one#*:}" >&2; exit 77; }
done
ssh-keygen -q -t ed25519 -N '' -f host_key && ssh-keygen -q -t ed25519 -N '' -f user_key && cp user_key.pub authorized || exit 1
echo "[127.0.0.1]:$PORT $(cut -d' ' -f1,2 host_key.pub)" > known_hosts
cat > sshd_config <<END
ListenAddress 127.0.0.1:$PORT
HostKey $RUN/host_key
PidFile $RUN/pid
AuthorizedKeysFile $RUN/authorized
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
RekeyLimit 4M
Subsystem sftp /usr/lib/openssh/sftp-server
SetEnv RUN=$RUN${LIBRARY:+ LD_PRELOAD=$LIBRARY}
END
cat > ssh_config <<END
Host there
    HostName 127.0.0.1
    Port $PORT
    IdentityFile $RUN/user_key
    IdentitiesOnly yes
    UserKnownHostsFile $RUN/known_hosts
    BatchMode yes
    Compression yes
    RekeyLimit 4M
END
awk 'BEGIN { for (i = 0; i < 600000; i++) printf "%d line %d\n", i * 7919 % 10007, i }' > sent
