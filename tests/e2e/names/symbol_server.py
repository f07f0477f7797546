#!/usr/bin/env python3
"""Plays symbol server and debuginfod on 127.0.0.1, with all that can go wrong.

usage: symbol_server.py ROOT PORT-FILE LOG
Files are under ROOT as on the servers: /ssqp/FILE/ID/FILE, /dbg/buildid/ID/debuginfo. If the first part of a path is a key of
WAYS, it selects the response to the rest. So /half/ssqp/... sends the first half of the file at /ssqp/.... Each request is a
line of LOG. A request to it as a proxy gets the same response, and its line begins with PROXY.
"""
import gzip
import http.server
import os
import sys
import threading
import time
import urllib.parse
import zlib

ROOT, PORT_FILE, LOG = sys.argv[1:4]
GIB = 1 << 30
tries = {}
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def note(self, line):
        with lock, open(LOG, "a", encoding="utf-8") as log:
            log.write(line + "\n")

    def respond(self, status, body=b"", **headers):
        self.send_response(status)
        length = headers.pop("Content_Length", len(body))
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if length is None or length != len(body):
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(body)

    def endless(self, chunk, pause=0.0):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        while True:
            self.wfile.write(chunk)
            self.wfile.flush()
            time.sleep(pause)

    def do_GET(self):
        path = self.path
        if path.startswith("http://"):
            path = urllib.parse.urlsplit(path).path
            self.note("PROXY " + path)
        else:
            self.note(path + " " + self.headers.get("X-Team", ""))
        _, way, rest = path.split("/", 2)
        way, rest = (way, "/" + rest) if way in WAYS else ("", path)
        full = os.path.join(ROOT, urllib.parse.unquote(rest).lstrip("/"))
        body = None
        if os.path.isfile(full):
            with open(full, "rb") as f:
                body = f.read()
        try:
            WAYS[way](self, rest, body)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def plain(self, _, body):
        if body is None:
            self.respond(404, b"<html>not found</html>", Content_Type="text/html")
        else:
            self.respond(200, body)

    def html(self, *_):
        self.respond(200, b"<html><body>Sign in to continue</body></html>", Content_Type="text/html")

    def half(self, _, body):
        self.respond(200, body[: len(body) // 2], Content_Length=len(body))

    def cut(self, _, body):  # half of the file, without Content-Length
        self.respond(200, body[: len(body) // 2], Content_Length=None)

    def large(self, *_):
        self.respond(200, b"\x7fELF", Content_Length=10 * GIB)

    def bomb(self, *_):  # a small body that unpacks to 10 GiB
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        chunk = bytes(1 << 24)
        for _ in range(640):
            self.wfile.write(packer.compress(chunk))

    def drip(self, *_):
        self.endless(b"x", 0.3)

    def silent(self, *_):
        time.sleep(3600)

    def circle(self, rest, _):
        self.respond(302, Location="/circle" + rest)

    def away(self, *_):
        self.respond(302, Location="file:///etc/passwd")

    def hop(self, rest, _):
        self.respond(302, Location=rest)

    def flaky(self, rest, body):
        with lock:
            tries[rest] = tries.get(rest, 0) + 1
        if tries[rest] < 3:
            self.respond(503 if tries[rest] == 1 else 408, b"later")
        else:
            self.plain(rest, body)

    def busy(self, *_):
        self.respond(503, b"later")

    def refused(self, *_):
        self.respond(403, b"no")

    def gzip(self, _, body):
        self.respond(200, gzip.compress(body), Content_Encoding="gzip")

    def deflate(self, _, body):
        self.respond(200, zlib.compress(body), Content_Encoding="deflate")

    def hangup(self, *_):
        self.close_connection = True
        self.connection.close()


WAYS = {"": Handler.plain}
for name in "html half cut large bomb drip silent circle away hop flaky busy refused gzip deflate hangup".split():
    WAYS[name] = getattr(Handler, name)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", 0), Handler)
with open(PORT_FILE + ".new", "w", encoding="utf-8") as f:
    f.write(str(server.server_address[1]))
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
