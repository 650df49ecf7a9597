#!/bin/sh
# Apache's settings and a page in the folder where it is called: event workers, as Debian's package has them.
awk 'BEGIN { for (i = 0; i < 400; i++) printf "<p>%d line %d</p>\n", i * 7919 % 10007, i }' > page.html
cat > apache.conf <<END
ServerName localhost
Listen 127.0.0.1:$PORT
PidFile $RUN/apache.pid
ErrorLog $RUN/error.log
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule authz_core_module modules/mod_authz_core.so
LoadModule mime_module modules/mod_mime.so
Mutex posixsem
TypesConfig /etc/mime.types
StartServers 2
ServerLimit 2
MinSpareThreads 1
MaxSpareThreads $((THREADS * 2))
ThreadsPerChild $THREADS
MaxRequestWorkers $((THREADS * 2))
MaxConnectionsPerChild 0
DocumentRoot $RUN
<Directory $RUN>
    Require all granted
</Directory>
END
