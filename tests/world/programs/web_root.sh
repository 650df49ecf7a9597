#!/bin/sh
# Pages and the servers' settings in the folder where it is called.
echo '<html><body>small</body></html>' > small.html
awk 'BEGIN { srand(7); for (i = 0; i < 20000; i++) printf "<p>%d line %d</p>\n", i * 7919 % 10007, int(rand() * 1000) }' > big.html
mkdir -p tmp
cat > nginx.conf <<END
events { worker_connections 256; }
http {
    access_log off;
    client_body_temp_path $RUN/tmp; proxy_temp_path $RUN/tmp; fastcgi_temp_path $RUN/tmp; uwsgi_temp_path $RUN/tmp; scgi_temp_path $RUN/tmp;
    gzip on;
    server { listen 127.0.0.1:$PORT; root $RUN; }
}
END
cat > apache.conf <<END
ServerName localhost
Listen 127.0.0.1:$PORT
PidFile $RUN/apache.pid
ErrorLog $RUN/error.log
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule authz_core_module modules/mod_authz_core.so
LoadModule mime_module modules/mod_mime.so
LoadModule filter_module modules/mod_filter.so
LoadModule deflate_module modules/mod_deflate.so
Mutex posixsem
TypesConfig /etc/mime.types
AddOutputFilterByType DEFLATE text/html
StartServers 2
ThreadsPerChild 16
MaxConnectionsPerChild 700
DocumentRoot $RUN
<Directory $RUN>
    Require all granted
</Directory>
END
touch "$RUN/tmp/none"
