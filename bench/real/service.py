"""service.py PORT: a web service of Python's own server, a thread for each connection. POST /orders takes JSON, keeps
the newest 2,000 in an SQLite database in memory, and answers with sums; GET /total says how many came."""

import json
import signal
import sqlite3
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_lock = threading.Lock()
_database = sqlite3.connect(":memory:", check_same_thread=False)
_database.execute("CREATE TABLE orders(id INTEGER PRIMARY KEY, customer TEXT, amount INT, body TEXT)")


class Service(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        amount = sum(line["price"] * line["count"] for line in order["lines"])
        with _lock:
            last = _database.execute(
                "INSERT INTO orders(customer, amount, body) VALUES (?, ?, ?)", (order["customer"], amount, json.dumps(order))
            ).lastrowid
            _database.execute("DELETE FROM orders WHERE id <= ?", (last - 2000,))
            rows = _database.execute(
                "SELECT amount, body FROM orders WHERE customer = ? ORDER BY id DESC LIMIT 20", (order["customer"],)
            ).fetchall()
        recent = [json.loads(body) for _, body in rows]
        self._answer({"amount": amount, "recent": len(recent), "sum": sum(amount for amount, _ in rows)})

    def do_GET(self) -> None:
        with _lock:
            self._answer({"total": _database.execute("SELECT max(id) FROM orders").fetchone()[0] or 0})

    def _answer(self, content: dict) -> None:
        text = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_) -> None:
        pass


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
