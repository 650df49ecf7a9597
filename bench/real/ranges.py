"""ranges.py PORT SECONDS: serves the files of its folder in ranges, as downloads in parts ask for; ends by itself."""

import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Files(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self._head()

    def do_GET(self) -> None:
        first, last = self._head()
        with open(os.path.basename(self.path), "rb") as file:
            file.seek(first)
            try:
                self.wfile.write(file.read(last - first + 1))
            except OSError:  # who asked has enough
                pass

    def _head(self) -> tuple[int, int]:
        size = os.path.getsize(os.path.basename(self.path))
        first, last = 0, size - 1
        if asked := self.headers.get("Range", ""):
            low, _, high = asked.partition("=")[2].partition("-")
            first, last = int(low), min(last, int(high or last))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        else:
            self.send_response(200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        return first, last

    def log_message(self, *_) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Files)
threading.Timer(float(sys.argv[2]), lambda: os._exit(0)).start()
server.serve_forever()
